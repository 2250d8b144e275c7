import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import Reachability
import Testing

/// Observers of Reachability's notifications.
@Suite(.timeLimit(.minutes(5))) struct ObserverTests {
    @Test func `statusDidChange is posted with its update when a server goes away`() async throws {
        let server = Locked<MisbehavingServer?>(try MisbehavingServer { _ in Reply() })
        let port = try #require(server.withLock { $0?.port })
        let settings = ProbeSettings(interval: .milliseconds(100), timeout: .seconds(60), failAfter: 1, recoverAfter: 1)
        let watched = try ServerMonitor("127.0.0.1:\(port)", settings: settings)
        for await update in watched.updates where update.state == .up { break }

        let (updates, posted) = AsyncStream.makeStream(of: ServerUpdate.self)
        let observer = NotificationCenter.default.addObserver(of: watched, for: .statusDidChange) { posted.yield($0.update) }
        defer { NotificationCenter.default.removeObserver(observer) }
        let former = server.withLock { $0.take() }
        former?.stop()
        for await update in updates where update.state == .down {
            #expect(update.cause?.code == .refused && update.endpoint == watched.endpoint)
            break
        }
    }
}
