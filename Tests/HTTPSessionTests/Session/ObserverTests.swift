import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Reachability
import Testing

/// Observers of Reachability's notifications.
@Suite(.timeLimit(.minutes(5))) struct ObserverTests {
    @Test func `statusDidChange is posted with its update when a server stops`() async throws {
        let server = Locked<TestServer?>(try TestServer { _ in StubResponse() })
        let port = try #require(server.withLock { $0?.port })
        let settings = ProbeSettings(interval: .milliseconds(100), timeout: .seconds(60), failAfter: 1, recoverAfter: 1)
        let watched = try ServerMonitor("127.0.0.1:\(port)", settings: settings)
        for await update in watched.updates where update.statusName == .up { break }

        let (updates, posted) = AsyncStream.makeStream(of: ServerUpdate.self)
        let observer = NotificationCenter.default.addObserver(of: watched, for: .statusDidChange) { posted.yield($0.update) }
        defer { NotificationCenter.default.removeObserver(observer) }
        let former = server.withLock { $0.take() }
        former?.stop()
        for await update in updates where update.statusName == .down {
            #expect(update.cause?.code == .refused && update.endpoint == watched.endpoint)
            break
        }
    }

    @Test(.requiresNamespaces)
    func `a session pauses, retries and resumes on the changes that pathDidChange and statusDidChange report`()
        async throws
    {
        let (lab, gate) = (try ConnectivityLab(), try Gate())
        try lab.route("10.9.1.1")
        let first = try lab.server { ConnectivityLab.half($0, until: gate) }
        let monitor = try await lab.settledMonitor()
        let settings = ProbeSettings(interval: .milliseconds(100), timeout: .seconds(60), failAfter: 1, recoverAfter: 1)
        let watched = try ServerMonitor("\(Uplinks.server):\(first.port)", settings: settings, monitor: monitor)
        for await update in watched.updates where update.statusName == .up { break }
        let session = try lab.session(monitor) {
            $0.retryPolicy = RetryPolicy(maximumRetries: nil, baseDelay: .milliseconds(50), maximumDelay: .milliseconds(200))
        }
        let task = session.downloadTask(for: TransferRequest(url: first.url()), to: DownloadDestination(lab.folder.url("file")))
        await task.awaitProgress { $0.bytesReceived == 500_000 }

        let (paths, path) = AsyncStream.makeStream(of: NetworkPath.Status.self)
        let (causes, cause) = AsyncStream.makeStream(of: Cause.Code?.self)
        let observers = [
            NotificationCenter.default.addObserver(of: monitor, for: .pathDidChange) { path.yield($0.update.path.status) },
            NotificationCenter.default.addObserver(of: watched, for: .statusDidChange) { cause.yield($0.update.cause?.code) },
        ]
        defer { for observer in observers { NotificationCenter.default.removeObserver(observer) } }

        // The cable is unplugged: the task pauses, and the attempt uses no retry.
        try lab.site.ip("link set one down")
        for await status in paths where status == .unsatisfied { break }
        await lab.log.await("waiting for connectivity")
        expectEqual(task.state, .waitingForConnectivity)
        // The cable is plugged in again, but no server listens: the task retries.
        first.stop()
        try lab.site.ip("link set one up")
        for await status in paths where status == .satisfied { break }
        for await code in causes where code == .refused { break }
        await lab.log.await("retry cannot-connect-to-host")
        // The server listens again: the task resumes with the second half.
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(lab.site.path)
        let second = try TestServer(at: .ip(Uplinks.server, port: first.port), configuration: configuration) {
            ConnectivityLab.half($0, until: gate)
        }
        for await code in causes where code == nil { break }
        let response = try await task.response
        expectEqual(response.metrics.bytesContinued, 500_000)
        #expect(response.metrics.timeWaitingForConnectivity > .zero && response.metrics.retryCount > 0)
        try expectEqual(Data(contentsOf: lab.folder.url("file")), pattern(1_000_000))
        expectEqual(second.requests.map { $0["range"] }, ["bytes=500000-"])
    }
}
