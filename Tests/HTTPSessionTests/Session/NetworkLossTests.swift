import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionCompatibility
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Reachability
import Testing

/// Network losses that are short, repeated, or irrelevant to the task, on the real kernel.
@Suite(.requiresNamespaces, .timeLimit(.minutes(20))) struct NetworkLossTests {
    private let lab: ConnectivityLab

    init() throws {
        lab = try ConnectivityLab()
        try lab.route("10.9.1.1")
    }

    /// Removes the default route and adds it again. - Returns: the longest time that the route may have been missing.
    private func flap(_ monitor: PathMonitor) async throws -> Duration {
        var paths = monitor.updates.makeAsyncIterator()
        while let update = await paths.next(), update.path.status != .satisfied {}
        let start = ContinuousClock.now
        try lab.client.ip("route del default")
        while let update = await paths.next(), update.path.status != .unsatisfied {}
        try lab.route("10.9.1.1")
        while let update = await paths.next(), update.path.status != .satisfied {}
        return ContinuousClock.now - start
    }

    @Test func `a network loss shorter than a quarter of a second does not interrupt a download`() async throws {
        let gate = try Gate()
        let server = try lab.server { request in
            request.path == "/late" ? StubResponse(body: "late").held(by: gate) : ConnectivityLab.half(request, until: gate)
        }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor)
        var file = lab.folder.url("file")
        var task = session.downloadTask(for: TransferRequest(url: server.url()), to: DownloadDestination(file))
        await task.awaitProgress { $0.bytesReceived == 500_000 }
        // On a busy machine the loss may last longer.
        while try await flap(monitor) > .milliseconds(200) {
            task.cancel()
            file = lab.folder.url("file-\(UUID())")
            task = session.downloadTask(for: TransferRequest(url: server.url()), to: DownloadDestination(file))
            await task.awaitProgress { $0.bytesReceived == 500_000 }
        }
        // This timeout fires on the session's thread, after any work that the loss has caused there.
        var brief = TransferRequest(url: server.url("/late"))
        brief.options.resourceTimeout = .milliseconds(400)
        await expectEqual(failure(session.dataTask(for: brief))?.code, .timedOut)
        gate.open()
        let response = try await task.response
        try expectEqual(Data(contentsOf: file), pattern(1_000_000))
        expectEqual(response.metrics.transactions.count, 1)
        #expect(response.metrics.retryCount == 0 && response.metrics.bytesContinued == 0)
    }

    @Test func `a task that resumed after a network loss waits again after another, and uses no retry`() async throws {
        let (first, second) = (try Gate(), try Gate())
        let count = Counter()
        let server = try lab.server { request in
            switch count.add() {
            case 1: ConnectivityLab.half(request, until: first)
            // The task runs again, and has no response yet.
            case 2: StubResponse(body: "late").held(by: second)
            default: ConnectivityLab.half(request, until: first)
            }
        }
        let task = try await lab.halfDownload(server)
        for loss in 1...2 {
            try lab.client.ip("addr flush dev one")
            await lab.log.await("waiting for connectivity", times: loss)
            try lab.client.ip("addr add 10.9.1.\(loss + 6)/24 dev one")
            try lab.route("10.9.1.1")
            try await server.awaitRequests(loss + 1)
        }
        let response = try await task.response
        try expectEqual(Data(contentsOf: lab.folder.url("file")), pattern(1_000_000))
        expectEqual(response.metrics.retryCount, 0)
        expectEqual(response.metrics.bytesContinued, 500_000)
        for gate in [first, second] { gate.open() }
    }

    @Test func `a notification with the cause is posted when a task waits for connectivity`() async throws {
        let server = try lab.server { _ in StubResponse(body: "well") }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor, eventMonitors: [NotificationMonitor()])
        try lab.client.ip("link set one down")
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
        let task = session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: false)
        let (posted, signal) = (Locked<[HTTPSessionError]>([]), Signal())
        let token = NotificationCenter.default.addObserver(of: task, for: .taskIsWaitingForConnectivity) { message in
            posted.withLock { $0.append(message.error) }
            signal.fire()
        }
        task.resume()
        await signal.wait()
        try lab.client.ip("link set one up")
        try lab.route("10.9.1.1")
        try await expectEqual(task.response.statusCode, 200)
        NotificationCenter.default.removeObserver(token)
        let errors = posted.withLock { $0 }
        expectEqual(errors.map(\.code), [.notConnected])
        expectEqual(errors.first?.cause?.layer, .link)
    }

    @Test func `a task behind a proxy on this machine does not wait for connectivity`() async throws {
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(lab.client.path)
        let proxy = try TestServer(configuration: configuration) { StubResponse(body: .text("by proxy: \($0.target)")) }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor) { $0.proxy = .explicit("http://127.0.0.1:\(proxy.port)") }
        try lab.client.ip("link set one down")
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
        let request = TransferRequest(url: try #require(URL(string: "http://203.0.113.9/x")))
        try await expectEqual(session.dataTask(for: request).response.data, Data("by proxy: http://203.0.113.9/x".utf8))
        // This also holds if the proxy is unreachable: its network is unknown to the session.
        proxy.stop()
        await expectEqual(failure(session.dataTask(for: request))?.code, .proxyFailed)
        await lab.log.await("failed proxy-failed")
        #expect(!lab.log.names.contains("waiting for connectivity"))
    }
}
