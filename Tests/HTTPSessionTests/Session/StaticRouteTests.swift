import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Reachability
import Testing

/// Servers with a route of their own, which is added, removed and changed without a change of the path.
@Suite(.requiresNamespaces, .timeLimit(.minutes(20))) struct StaticRouteTests {
    private let lab: ConnectivityLab

    init() throws {
        lab = try ConnectivityLab()
        try lead("one", "10.9.1.1")
    }

    private func lead(_ interface: String, _ gateway: String) throws {
        try lab.client.ip("route replace 203.0.113.0/24 via \(gateway) dev \(interface)")
    }

    private func half(_ gate: Gate) throws -> TestServer {
        try lab.server { ConnectivityLab.half($0, until: gate) }
    }

    private func check(_ response: TransferResponse, came address: String) throws {
        try expectEqual(Data(contentsOf: lab.folder.url("file")), pattern(1_000_000))
        expectEqual(response.metrics.bytesContinued, 500_000)
        expectEqual(response.metrics.transactions.last?.localAddress, address)
    }

    @Test(arguments: ["before", "meanwhile"])
    func `losing the default route before or during an attempt does not interrupt a server with its own route`(
        _ moment: String
    )
        async throws
    {
        let server = try lab.server { _ in StubResponse(body: "well") }
        try lab.route("10.9.2.1")
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor)
        // The first SYN is dropped; the kernel retransmits it after a second.
        let rule = "tcp dport \(server.port) tcp flags & (syn | ack) == syn quota until 70 bytes drop"
        try lab.site.run(
            "nft", "-f", "-", input: "table inet t { chain c { type filter hook input priority 0; \(rule)\n }\n }\n")
        if moment == "before" {
            try lab.client.ip("route del default")
            for await update in monitor.updates where update.path.status == .unsatisfied { break }
        }
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        await lab.log.await("started 1")
        if moment == "meanwhile" { try lab.client.ip("route del default") }
        let metrics = try await task.response.metrics
        let transaction = try #require(metrics.transactions.first)
        #expect(try #require(transaction.connectEnd).timeIntervalSince(#require(transaction.connectStart)) > 0.9)
        expectEqual(lab.log.names.count { $0.hasPrefix("started") }, 1)
        #expect(metrics.retryCount == 0 && metrics.timeWaitingForConnectivity == .zero)
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
    }

    @Test(arguments: [false, true]) func `a download continues over the interface to which its server's route has moved`(
        _ hasPath: Bool
    )
        async throws
    {
        // This path belongs to all other destinations.
        if hasPath { try lab.route("10.9.1.1") }
        let gate = try Gate()
        let server = try half(gate)
        let task = try await lab.halfDownload(server, over: try await lab.settledMonitor(hasPath: hasPath))
        try lead("two", "10.9.2.1")
        try check(await task.response, came: "10.9.2.2")
        gate.open()
    }

    @Test func `a download whose server's route was removed waits for connectivity, uses no retry and continues`() async throws {
        let gate = try Gate()
        let server = try half(gate)
        let task = try await lab.halfDownload(server, over: try await lab.settledMonitor(hasPath: false))
        try lab.client.ip("route del 203.0.113.0/24")
        await lab.log.await("waiting for connectivity")
        expectEqual(task.state, .waitingForConnectivity)
        try lead("one", "10.9.1.1")
        let response = try await task.response
        try check(response, came: "10.9.1.2")
        expectEqual(response.metrics.retryCount, 0)
        #expect(response.metrics.timeWaitingForConnectivity > .zero)
        gate.open()
    }

    @Test func `a download without a route waits for connectivity although the path is satisfied`() async throws {
        try lab.client.ip("addr add 2001:db8:1::2/64 dev one nodad")
        try lab.client.ip("-6 route add default via 2001:db8:1::1 dev one")
        let gate = try Gate()
        let server = try half(gate)
        let monitor = try await lab.settledMonitor()
        let task = try await lab.halfDownload(server, over: monitor)
        try lab.client.ip("route del 203.0.113.0/24")
        await lab.log.await("waiting for connectivity")
        expectEqual(monitor.currentPath?.status, .satisfied)
        try lead("one", "10.9.1.1")
        let response = try await task.response
        try check(response, came: "10.9.1.2")
        expectEqual(response.metrics.retryCount, 0)
        gate.open()
    }

    @Test func `a download whose link has no carrier waits for connectivity although the path is satisfied`() async throws {
        try lab.route("10.9.2.1")
        let gate = try Gate()
        let server = try half(gate)
        let monitor = try await lab.settledMonitor()
        let task = try await lab.halfDownload(server, over: monitor)
        try lab.site.ip("link set one down")
        await lab.log.await("waiting for connectivity")
        expectEqual(monitor.currentPath?.interface?.name, "two")
        try lab.site.ip("link set one up")
        let response = try await task.response
        try check(response, came: "10.9.1.2")
        expectEqual(response.metrics.retryCount, 0)
        gate.open()
    }

    @Test func `a refused connection over a server's own route fails as cannotConnectToHost without a default route`()
        async throws
    {
        let server = try lab.server { _ in StubResponse(body: "well") }
        let monitor = try await lab.settledMonitor(hasPath: false)
        let session = try lab.session(monitor) { $0.retryPolicy.maximumRetries = 0 }
        // No server listens on port 1.
        var refused = try #require(URLComponents(url: server.url(), resolvingAgainstBaseURL: false))
        refused.port = 1
        let error = await failure(session.dataTask(for: TransferRequest(url: try #require(refused.url))))
        #expect(error?.code == .cannotConnectToHost && error?.cause == nil, "\(error as Any)")
        expectEqual(monitor.currentPath?.status, .unsatisfied)
    }

    @Test func `added and removed routes to other destinations do not interrupt a download`() async throws {
        let gate = try Gate()
        let server = try half(gate)
        let task = try await lab.halfDownload(server, over: try await lab.settledMonitor(hasPath: false))
        try lab.client.ipBatch(
            (0..<200).map { "route add 192.0.2.\($0)/32 via 10.9.2.1" } + (0..<200).map { "route del 192.0.2.\($0)/32" })
        try lab.route("10.9.2.1")
        try lab.client.ip("route del default")
        // Waits for a timeout, so that the session has time to handle the changes.
        let silent = try lab.server { _ in StubResponse(body: "late").held(by: gate) }
        var brief = TransferRequest(url: silent.url())
        brief.options.resourceTimeout = .milliseconds(400)
        let monitor = try await lab.settledMonitor(hasPath: false)
        await expectEqual(failure(try lab.session(monitor).dataTask(for: brief))?.code, .timedOut)
        gate.open()
        try await expectEqual(task.response.metrics.transactions.count, 1)
    }

    @Test func `a connection that was idle when its route moved is not reused`() async throws {
        try lab.allowDetours()
        let server = try lab.server { _ in StubResponse(body: "x") }
        let session = try lab.session(try await lab.settledMonitor(hasPath: false))
        func get() async throws -> TransactionMetrics? {
            try await session.dataTask(for: TransferRequest(url: server.url())).response.metrics.transactions.last
        }
        _ = try await get()
        try await expectEqual(get()?.isReusedConnection, true)
        try lead("two", "10.9.2.1")
        // The session receives the change a little later.
        var address: String?
        for _ in 0..<10_000 where address != "10.9.2.2" { address = try await get()?.localAddress }
        expectEqual(address, "10.9.2.2")
        try await expectEqual(get()?.isReusedConnection, true)
    }
}
