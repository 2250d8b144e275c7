import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Reachability
import Testing

/// Losses of the network that are short, come twice, or are nobody's, on the real kernel.
@Suite(.requiresNamespaces, .timeLimit(.minutes(20))) struct LossTests {
    private let lab: ConnectivityLab

    init() throws {
        lab = try ConnectivityLab()
        try lab.route("10.9.1.1")
    }

    /// Takes the default route away and brings it back. - Returns: how long it was gone at most.
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

    @Test func `a loss shorter than a quarter of a second is left to TCP`() async throws {
        let gate = try Gate()
        let server = try lab.server { request in
            request.path == "/late" ? StubResponse(body: "late").held(by: gate) : ConnectivityLab.half(request, until: gate)
        }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor)
        var file = lab.folder.url("file")
        var task = session.download(TransferRequest(url: server.url()), to: DownloadDestination(file))
        await task.awaitProgress { $0.received == 500_000 }
        // A machine that has more to do than this may make it a longer one.
        while try await flap(monitor) > .milliseconds(200) {
            task.cancel()
            file = lab.folder.url("file-\(UUID())")
            task = session.download(TransferRequest(url: server.url()), to: DownloadDestination(file))
            await task.awaitProgress { $0.received == 500_000 }
        }
        // On the session's own thread, behind what it may have had to do.
        var brief = TransferRequest(url: server.url("/late"))
        brief.options.resourceTimeout = .milliseconds(400)
        #expect(await failure(session.data(brief))?.code == .timedOut)
        gate.open()
        let response = try await task.value
        #expect(try Data(contentsOf: file) == pattern(1_000_000))
        #expect(response.metrics.transactions.count == 1)
        #expect(response.metrics.retryCount == 0 && response.metrics.bytesResumed == 0)
    }

    @Test func `a task that was let go waits again when the network is lost again, and counts no try`() async throws {
        let (first, second) = (try Gate(), try Gate())
        let count = Counter()
        let server = try lab.server { request in
            switch count.add() {
            case 1: ConnectivityLab.half(request, until: first)
            // It is let go, and has no answer yet.
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
        let response = try await task.value
        #expect(try Data(contentsOf: lab.folder.url("file")) == pattern(1_000_000))
        #expect(response.metrics.retryCount == 0)
        #expect(response.metrics.bytesResumed == 500_000)
        for gate in [first, second] { gate.open() }
    }

    @Test func `that a task waits is posted, with the reason`() async throws {
        let server = try lab.server { _ in StubResponse(body: "well") }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor)
        try lab.client.ip("link set one down")
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
        let task = session.data(TransferRequest(url: server.url()), startsNow: false)
        let (posted, signal) = (Locked<[HTTPSessionError]>([]), Signal())
        let token = NotificationCenter.default.addObserver(of: task, for: .taskIsWaitingForConnectivity) { message in
            posted.withLock { $0.append(message.error) }
            signal.fire()
        }
        task.resume()
        await signal.wait()
        try lab.client.ip("link set one up")
        try lab.route("10.9.1.1")
        #expect(try await task.value.statusCode == 200)
        NotificationCenter.default.removeObserver(token)
        let errors = posted.withLock { $0 }
        #expect(errors.map(\.code) == [.notConnected])
        #expect(errors.first?.cause?.layer == .link)
    }

    @Test func `behind a proxy on this machine nobody waits for a network`() async throws {
        var options = TestServer.Options()
        options.namespace = lab.client.path
        let proxy = try TestServer(options: options) { StubResponse(body: .text("by proxy: \($0.target)")) }
        let monitor = try await lab.settledMonitor()
        let session = try lab.session(monitor) { $0.proxy = .explicit("http://127.0.0.1:\(proxy.port)") }
        try lab.client.ip("link set one down")
        for await update in monitor.updates where update.path.status == .unsatisfied { break }
        let request = TransferRequest(url: try #require(URL(string: "http://203.0.113.9/x")))
        #expect(try await session.data(request).value.data == Data("by proxy: http://203.0.113.9/x".utf8))
        // Nor where it is not there: what it could reach is its own to say.
        proxy.stop()
        #expect(await failure(session.data(request))?.code == .proxyFailed)
        await lab.log.await("failed proxy-failed")
        #expect(!lab.log.names.contains("waiting for connectivity"))
    }
}
