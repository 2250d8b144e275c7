import EventLoop
import Foundation
import HTTPSessionTestKit
import Testing

@testable import HTTPSession

/// What happens while a session's delivery queue stands still.
@Suite(.timeLimit(.minutes(20))) struct StallTests {
    @Test func `progress that nobody takes does not gather`() async throws {
        let gates = try (0..<20).map { _ in try Gate() }
        let server = try TestServer { _ in
            StubResponse(body: StubBody(gates.flatMap { [.wait(.gate($0)), .bytes([1])] }))
        }
        let stall = Stall()
        let session = try HTTPSessionManager(configuration: localConfiguration(), monitors: [stall])
        let task = session.data(TransferRequest(url: server.url()), startsNow: false)
        let told = Locked<[Int64]>([])
        task.onProgress { progress in told.withLock { $0.append(progress.received) } }
        task.resume()
        for (number, gate) in gates.dropLast().enumerated() {
            gate.open()
            // Each is published; the queue that would tell of it is held.
            await task.awaitProgress { $0.received > number }
        }
        stall.end()
        gates.last?.open()
        _ = try await task.value
        session.invalidate(cancelsTasks: false)
        await stall.log.await("invalidated")
        let progress = told.withLock { $0 }
        #expect(progress.count <= 5 && progress.last == 20 && progress == progress.sorted(), "\(progress)")
    }

    @Test func `while a monitor stands still transfers go on, and afterwards it hears of everything in order`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let stall = Stall()
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.maximumConnectionsPerHost = 1 }, monitors: [stall])
        for _ in 0..<50 { _ = try await session.data(TransferRequest(url: server.url())).value }
        #expect(stall.log.names.isEmpty)
        session.invalidate(cancelsTasks: false)
        stall.end()
        let one = ["created", "resumed", "started 1", "response 200", "transaction 200", "completed"]
        #expect(await stall.log.awaitInvalidation() == (0..<50).flatMap { _ in one } + ["invalidated"])
    }

    /// Holds the delivery queue at its first event, until told.
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
