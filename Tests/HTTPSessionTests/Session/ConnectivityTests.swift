import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Logging
import NetworkLab
import Reachability
import Testing
import TestServers

/// A session's transfers while networks appear and disappear: a client with two uplinks to the server's host, on the real kernel.
@Suite(.requiresNamespaces, .timeLimit(.minutes(20))) struct ConnectivityTests {
    private let lab: ConnectivityLab
    private var client: LabHost { lab.client }
    private var site: LabHost { lab.site }
    private var folder: ScratchDirectory { lab.folder }
    private var log: EventLog { lab.log }

    init() throws {
        lab = try ConnectivityLab()
        try lab.route("10.9.1.1")
    }

    @Test func `a task without a network waits for connectivity, uses no retry and runs when a network appears`() async throws {
        let server = try lab.server { _ in StubResponse(body: "well") }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor) { $0.retryPolicy = .never }
        try client.ip("link set one down")
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        await log.await("waiting for connectivity")
        expectEqual(task.state, .waitingForConnectivity)
        try client.ip("link set one up")
        try lab.route("10.9.1.1")
        let response = try await task.response
        expectEqual(response.data, Data("well".utf8))
        expectEqual(response.metrics.retryCount, 0)
        #expect(response.metrics.timeWaitingForConnectivity > .zero)
    }

    @Test func `without a network a data task fails after its connectivity timeout, a download waits, and each logs it once`()
        async throws
    {
        let server = try lab.server { _ in StubResponse(body: "well") }
        let monitor = try await lab.settledMonitor()
        let lines = Locked<[String]>([])
        let session = try lab.session(monitor) { configuration in
            configuration.connectivityTimeout = .milliseconds(300)
            configuration.logger = Logger(label: "test") { _ in LogLines(lines: lines, isComplete: true, logLevel: .notice) }
        }
        try client.ip("link set one down")
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
        let download = session.downloadTask(for: TransferRequest(url: server.url()), to: folder.url("file"))
        await log.await("waiting for connectivity")
        let error = try #require(
            await #expect(throws: HTTPSessionError.self) {
                try await session.dataTask(for: TransferRequest(url: server.url())).response
            })
        expectEqual(error.code, .notConnected)
        expectEqual(error.cause?.code, .interfaceDown)
        #expect(error.reason.hasSuffix("; waited 0.3 seconds for a network"))
        expectEqual(download.state, .waitingForConnectivity)
        try client.ip("link set one up")
        try lab.route("10.9.1.1")
        _ = try await download.response
        expectEqual(lines.withLock { $0.count { $0.hasPrefix("notice task waits for the network") } }, 2)
    }

    @Test func `after the carrier is lost all tasks of the same server wait for connectivity, not for TCP timeouts`() async throws
    {
        let server = try lab.server { _ in StubResponse(body: "well") }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor) { configuration in
            configuration.retryPolicy = .never
            configuration.maximumConnectionsPerHost = 2
        }
        // The cable is unplugged: addresses and routes stay, and TCP would wait for a minute.
        try site.ip("link set one down")
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
        let tasks = (0..<50).map { _ in session.dataTask(for: TransferRequest(url: server.url())) }
        await log.await("waiting for connectivity", times: tasks.count)
        #expect(tasks.allSatisfy { $0.state == .waitingForConnectivity })
        try site.ip("link set one up")
        for task in tasks {
            let response = try await task.response
            #expect(response.data == Data("well".utf8) && response.metrics.retryCount == 0)
            #expect(response.metrics.timeWaitingForConnectivity > .zero)
        }
        expectEqual(server.requests.count, 50)
        #expect(server.seen.peakConnections <= 2)
    }

    @Test func `a download continues over the interface that takes over the default route`() async throws {
        let gate = try Gate()
        let server = try lab.server { ConnectivityLab.half($0, until: gate) }
        let task = try await lab.halfDownload(server)
        try lab.route("10.9.2.1", metric: 1)
        let response = try await task.response
        try expectEqual(Data(contentsOf: folder.url("file")), pattern(1_000_000))
        expectEqual(response.metrics.bytesContinued, 500_000)
        expectEqual(response.metrics.transactions.last?.localAddress, "10.9.2.2")
        gate.open()
    }

    @Test func `closing a connection on a link without carrier does not start neighbor discovery on that link`() async throws {
        let gate = try Gate()
        let server = try lab.server { ConnectivityLab.half($0, until: gate) }
        let task = try await lab.halfDownload(server)
        // Wait until all data is acknowledged, so that neither kernel has anything to send.
        while try site.run("ss", "-tnHo", "state", "established").split(separator: "\n").contains(where: {
            $0.split(separator: " ").dropFirst().first != "0"
        }) {}
        try site.ip("link set one down")
        await log.await("waiting for connectivity")
        // A connect after the link returns would otherwise wait up to a second for the next neighbor solicitation.
        try expectEqual(client.ip("neigh show dev one nud incomplete"), "")
        try site.ip("link set one up")
        try await expectEqual(task.response.metrics.bytesContinued, 500_000)
        gate.open()
    }

    @Test(.requires(Nginx.program))
    func `a session's first HTTP/2 download continues over a new connection after the carrier returns`() async throws {
        let nginx = try Nginx(on: site, address: Uplinks.server)
        let policy = try SecurityPolicy.trusting(nginx.identity)
        let session = try lab.session(await lab.settledMonitor()) { $0.securityPolicy = policy }
        // The file is so long that the download cannot end before the carrier is lost, even on a slow machine.
        let request = TransferRequest(url: try nginx.tlsURL("/slow/huge?rate=400k"))
        let task = session.downloadTask(for: request, to: DownloadDestination(folder.url("file")))
        await task.awaitProgress { $0.bytesReceived > 0 }
        try site.ip("link set one down")
        await log.await("waiting for connectivity")
        let before = task.currentProgress.bytesReceived
        try site.ip("link set one up")
        await log.await("response 206")
        await task.awaitProgress { $0.bytesReceived > before }
        // The abandoned transaction is reported too.
        await log.await("transaction 200")
        task.cancel()
        await log.await("failed cancelled")
    }

    /// Silently drops packets to the other end of the interface.
    private func dropPackets(_ interface: String, _ gateway: String) throws {
        try client.ip("neigh replace \(gateway) lladdr 02:00:00:00:00:99 dev \(interface) nud permanent")
    }

    @Test func `an attempt that has no connection yet restarts over the interface that takes over and uses no retry`()
        async throws
    {
        let server = try lab.server { StubResponse(body: .text($0.method)) }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor) { $0.retryPolicy = .never }
        try dropPackets("one", "10.9.1.1")
        let task = session.dataTask(for: TransferRequest(url: server.url(), method: .post, body: .data(Data("pay".utf8))))
        await log.await("started 1")
        try lab.route("10.9.2.1", metric: 1)
        let response = try await task.response
        expectEqual(response.data, Data("POST".utf8))
        expectEqual(response.metrics.retryCount, 0)
        expectEqual(response.metrics.transactions.last?.localAddress, "10.9.2.2")
        expectEqual(server.requests.count, 1)
    }

    @Test func `a request that cannot be repeated stays on its connection when another interface takes over`() async throws {
        try lab.allowDetours()
        let (file, paid) = (try Gate(), try Gate())
        let server = try lab.server {
            $0.method == "POST" ? StubResponse(body: "paid").held(by: paid) : ConnectivityLab.half($0, until: file)
        }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor)
        let task = session.dataTask(for: TransferRequest(url: server.url(), method: .post, body: .data(Data("pay".utf8))))
        let download = session.downloadTask(for: TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file")))
        await download.awaitProgress { $0.bytesReceived == 500_000 }
        try await server.awaitRequests(2)
        try lab.route("10.9.2.1", metric: 1)
        // The download continues over the other interface, the POST stays on the first.
        try await expectEqual(download.response.metrics.transactions.last?.localAddress, "10.9.2.2")
        paid.open()
        let response = try await task.response
        expectEqual(response.data, Data("paid".utf8))
        expectEqual(response.metrics.transactions.map(\.localAddress), ["10.9.1.2"])
        file.open()
    }

    @Test func `attempts that fail before an unreachable gateway is detected use no retry`() async throws {
        // Neighbor resolution gives up after a tenth of a second instead of three seconds.
        try client.set("ipv4.neigh.one.retrans_time_ms", "40")
        let count = Counter()
        let server = try lab.server { _ in count.add() <= 6 ? StubResponse(503) : StubResponse(body: "well") }
        let monitor = try await lab.settledMonitor()
        let policy = RetryPolicy(maximumRetries: 6, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        let session = try lab.session(monitor) { $0.retryPolicy = policy }
        try site.ip("addr del 10.9.1.1/24 dev one")
        try client.ip("neigh flush dev one")
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        await log.await("waiting for connectivity")
        try site.ip("addr add 10.9.1.1/24 dev one")
        // All retries are still available for the server's 503 responses.
        let response = try await task.response
        expectEqual(response.data, Data("well".utf8))
    }

    @Test func `a task that never retries waits for a network, but fails when its connection is lost`() async throws {
        let gate = try Gate()
        let server = try lab.server { ConnectivityLab.half($0, until: gate) }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor) { $0.retryPolicy = .never }
        let task = session.downloadTask(for: TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file")))
        await task.awaitProgress { $0.bytesReceived == 500_000 }
        // Another task causes the silent gateway to be detected.
        try client.set("ipv4.neigh.one.retrans_time_ms", "40")
        try site.ip("addr del 10.9.1.1/24 dev one")
        try client.ip("neigh flush dev one")
        var patient = TransferRequest(url: server.url())
        patient.options.retryPolicy = RetryPolicy(
            maximumRetries: nil, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        let other = session.dataTask(for: patient)
        await log.await("waiting for connectivity")
        try client.ip("addr flush dev one")
        await expectEqual(failure(task)?.code, .connectionLost)
        expectEqual(other.state, .waitingForConnectivity)
        other.cancel()
        gate.open()
    }

    @Test func `a download whose local address is removed waits for another and continues there`() async throws {
        let gate = try Gate()
        let server = try lab.server { ConnectivityLab.half($0, until: gate) }
        let task = try await lab.halfDownload(server)
        try client.ip("addr flush dev one")
        await log.await("waiting for connectivity")
        try client.ip("addr add 10.9.1.7/24 dev one")
        try lab.route("10.9.1.1")
        let response = try await task.response
        try expectEqual(Data(contentsOf: folder.url("file")), pattern(1_000_000))
        expectEqual(response.metrics.bytesContinued, 500_000)
        expectEqual(response.metrics.transactions.last?.localAddress, "10.9.1.7")
        gate.open()
    }

    @Test(arguments: [UploadProtocol.tus, .draft])
    func `an upload whose local address is removed waits for another and continues there`(
        _ kind: UploadProtocol
    ) async throws {
        let gate = try Gate()
        var configuration = UploadServer.Configuration()
        (configuration.namespace, configuration.address) = (NetworkNamespace(site.path), .ip("203.0.113.9", port: 0))
        let server = try UploadServer(kind == .tus ? .tus : .draft, configuration: configuration) { turn in
            let isFirst = turn.request.method == (kind == .tus ? "PATCH" : "POST") && turn.number <= 2
            return isFirst ? .hold(afterBodyBytes: 500_000, .gate(gate)) : nil
        }
        let monitor = try await lab.settledMonitor()
        let body = RequestBody.data(pattern(32 << 20))
        let task = try lab.session(monitor).uploadTask(
            for: TransferRequest(url: server.url, method: .post, body: body), resumableUsing: kind)
        try await server.awaitBodyBytes(500_000)
        try client.ip("addr flush dev one")
        await log.await("waiting for connectivity")
        try client.ip("addr add 10.9.1.7/24 dev one")
        try lab.route("10.9.1.1")
        let response = try await task.response
        expectEqual(server.uploads.map { Data($0.bytes) }, [pattern(32 << 20)])
        #expect(response.metrics.bytesContinued >= 500_000)
        expectEqual(response.metrics.transactions.last?.localAddress, "10.9.1.7")
        gate.open()
    }

    @Test func `a task that does not wait for connectivity fails as notConnected without a network`() async throws {
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor) { $0.waitsForConnectivity = false }
        try client.ip("link set one down")
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
        let url = try #require(URL(string: "http://203.0.113.9:1/"))
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: url)))?.code, .notConnected)
        // The same applies if a proxy's name cannot be resolved. A proxy on this machine fails as a proxy, with or without a
        // network.
        for (proxy, code) in [
            ("http://proxy.invalid:1", HTTPSessionError.Code.notConnected), ("http://127.0.0.1:1", .proxyFailed),
        ] {
            let through = try lab.session(monitor) { ($0.waitsForConnectivity, $0.proxy) = (false, .explicit(proxy)) }
            let error = await failure(through.dataTask(for: TransferRequest(url: url)))
            expectEqual(error?.code, code, "\(proxy): \(String(describing: error))")
        }
    }

    @Test func `a task that waits for connectivity can be canceled and ends at its resource timeout`() async throws {
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor)
        try client.ip("link set one down")
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
        let url = try #require(URL(string: "http://203.0.113.9:1/"))
        let task = session.dataTask(for: TransferRequest(url: url))
        await log.await("waiting for connectivity")
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
        var brief = TransferRequest(url: url)
        brief.options.resourceTimeout = .milliseconds(300)
        await expectEqual(failure(session.dataTask(for: brief))?.code, .timedOut)
    }

    @Test func `a refused connection follows the retry policy and does not wait for connectivity`() async throws {
        let monitor = try await lab.settledMonitor()
        let url = try #require(URL(string: "http://203.0.113.9:1/"))
        let error = await failure(try lab.session(monitor).dataTask(for: TransferRequest(url: url)))
        expectEqual(error?.code, .cannotConnectToHost)
        await log.await("failed cannot-connect-to-host")
        #expect(!log.names.contains("waiting for connectivity"))
    }

    @Test func `without a default route, servers with a route of their own are contacted and their errors count`() async throws {
        let gate = try Gate()
        let server = try lab.server { ConnectivityLab.half($0, until: gate) }
        let monitor = try await lab.settledMonitor()
        try client.ip("route add 203.0.113.0/24 via 10.9.1.1")
        try client.ip("route del default")
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
        let session = try lab.session(monitor)
        let url = try #require(URL(string: "http://203.0.113.9:1/"))
        let error = try #require(await failure(session.dataTask(for: TransferRequest(url: url))))
        await log.await("failed \(error.code.rawValue)")
        #expect(!log.names.contains("waiting for connectivity"))
        // A transfer over that route is not interrupted.
        let task = session.downloadTask(for: TransferRequest(url: server.url()), to: DownloadDestination(folder.url("file")))
        await task.awaitProgress { $0.bytesReceived == 500_000 }
        gate.open()
        let response = try await task.response
        expectEqual(response.metrics.transactions.count, 1)
    }

    @Test func `a connection that was idle when the network changed is not reused`() async throws {
        let server = try lab.server { StubResponse(body: .text($0.target)) }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor)
        _ = try await session.dataTask(for: TransferRequest(url: server.url("/1"))).response
        let reused = try await session.dataTask(for: TransferRequest(url: server.url("/2"))).response
        expectEqual(reused.metrics.transactions.last?.isReusedConnection, true)
        try lab.route("10.9.2.1", metric: 1)
        for await update in monitor.updates where update.path.interface?.name == "two" { break }
        // The session receives the update at about the same time as this test.
        var isReused: Bool? = true
        for _ in 0..<100 where isReused == true {
            let response = try await session.dataTask(for: TransferRequest(url: server.url("/3"))).response
            isReused = response.metrics.transactions.last?.isReusedConnection
        }
        expectEqual(isReused, false)
    }
}
