import Foundation
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Reachability
import Synchronization
import Testing

/// A task that an observer of Reachability's notifications pauses and resumes.
@Suite(.requiresNamespaces, .timeLimit(.minutes(5))) struct ObserverTests {
    @Test func `statusDidChange pauses a download without a route, then it resumes and retries`() async throws {
        let lab = try ConnectivityLab()
        try lab.route("10.9.1.1")
        let gate = try Gate()
        let continuations = Atomic<Int>(0)
        let server = try lab.server { request in
            let reply = ConnectivityLab.half(request, until: gate)
            guard request["range"] != nil, continuations.add(1, ordering: .relaxed).newValue == 1 else { return reply }
            return reply.cut(afterBodyBytes: 0, .reset)
        }
        let monitor = try await lab.settledMonitor()
        let task = try await lab.halfDownload(server, over: monitor)

        let settings = ProbeSettings(interval: .milliseconds(100), timeout: .seconds(1), failAfter: 1, recoverAfter: 1)
        let port = try #require(server.url().port)
        let watched = try ServerMonitor("\(Uplinks.server):\(port)", settings: settings, on: monitor)
        let (updates, update) = AsyncStream.makeStream(of: ServerUpdate.self)
        let observer = NotificationCenter.default.addObserver(of: watched, for: .statusDidChange) { message in
            switch message.update.status {
            case .reachable: task.resume()
            case .unreachable: task.suspend()
            case .unknown: break
            }
            update.yield(message.update)
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        var seen = updates.makeAsyncIterator()
        // The first state may have been posted before anybody observed.
        for await update in watched.updates where update.state == .up { break }

        try lab.client.ip("link set one down")
        var lost = await seen.next()
        while let update = lost, update.cause == nil { lost = await seen.next() }
        #expect(lost?.state == .unreachable && lost?.endpoint == watched.endpoint)
        await lab.log.await("suspended")
        #expect(task.state == .suspended)

        try lab.client.ip("link set one up")
        try lab.route("10.9.1.1")
        while let update = await seen.next(), update.state != .up {}
        let response = try await task.value
        #expect(try Data(contentsOf: lab.folder.url("file")) == pattern(1_000_000))
        #expect(response.metrics.bytesResumed == 500_000)
        #expect(lab.log.names.contains { $0.hasPrefix("retry ") } && lab.log.names.contains("resumed"))
        gate.open()
    }
}
