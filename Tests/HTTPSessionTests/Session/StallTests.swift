import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import Testing

@testable import HTTPSession

/// Transfers while a session's delivery queue is blocked.
@Suite(.timeLimit(.minutes(20))) struct StallTests {
    @Test func `progress values are coalesced while the delivery queue is blocked`() async throws {
        let gates = try (0..<20).map { _ in try Gate() }
        let server = try TestServer { _ in
            StubResponse(body: StubBody(gates.flatMap { [.wait(.gate($0)), .bytes([1])] }))
        }
        let stall = Stall()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [stall])
        let task = session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: false)
        let recorded = Locked<[Int64]>([])
        task.onProgress { progress in recorded.withLock { $0.append(progress.bytesReceived) } }
        task.resume()
        for (number, gate) in gates.dropLast().enumerated() {
            gate.open()
            // Each value is published, but the blocked queue delivers none.
            await task.awaitProgress { $0.bytesReceived > number }
        }
        stall.end()
        gates.last?.open()
        _ = try await task.response
        session.cancel(afterTasks: true)
        await stall.log.await("invalidated")
        let progress = recorded.withLock { $0 }
        #expect(progress.count <= 5 && progress.last == 20 && progress == progress.sorted(), "\(progress)")
    }

    @Test func `transfers continue while an event monitor blocks, and it receives all events in order afterwards`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let stall = Stall()
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.maximumConnectionsPerHost = 1 }, eventMonitors: [stall])
        for _ in 0..<50 { _ = try await session.dataTask(for: TransferRequest(url: server.url())).response }
        expectEmpty(stall.log.names)
        session.cancel(afterTasks: true)
        stall.end()
        let one = ["created", "resumed", "started 1", "response 200", "transaction 200", "completed"]
        await expectEqual(stall.log.awaitInvalidation(), (0..<50).flatMap { _ in one } + ["invalidated"])
    }

    /// Blocks the delivery queue at its first event until `end` is called.
    private final class Stall: EventMonitor {
        let log = EventLog()
        private let gate = DispatchSemaphore(value: 0)
        private let isFirst = Locked(true)

        func end() { gate.signal() }

        func handle(_ event: SessionEvent) {
            let waits = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            if waits { gate.wait() }
            log.handle(event)
        }
    }
}
