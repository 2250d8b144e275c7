import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Whoever waits for a task hears of its end, whatever becomes of its session.
@Suite(.timeLimit(.minutes(20))) struct EndingTests {
    @Test(arguments: [true, false]) func `a task that was never started ends with its session`(_ cancelsTasks: Bool) async throws
    {
        let server = try MisbehavingServer { _ in Reply() }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), monitors: [log])
        let task = session.data(TransferRequest(url: server.url()), startsNow: false)
        let stream = session.stream(TransferRequest(url: server.url()), startsNow: false)
        async let result = failure(task)
        async let pieces: Data? = try await stream.chunks.first { _ in true }
        session.invalidate(cancelsTasks: cancelsTasks)
        #expect(await result?.code == .sessionInvalidated)
        await #expect(throws: HTTPSessionError.self) { try await pieces }
        #expect(task.state == .finished)
        // What is made afterwards ends as well, and is not started by any word.
        let late = session.data(TransferRequest(url: server.url()), startsNow: false)
        #expect(await failure(late)?.code == .sessionInvalidated)
        for task in [task, late] {
            task.resume()
            task.cancel()
            #expect(await failure(task)?.code == .sessionInvalidated)
        }
        #expect(await log.awaitInvalidation().count { $0 == "failed session-invalidated" } >= 2)
        #expect(server.seen.connections == 0)
    }

    @Test func `a task that nobody holds and nobody started is gone`() async throws {
        let server = try MisbehavingServer { _ in Reply(body: "x") }
        let session = try localSession()
        weak var forgotten: TransferTask?
        for number in 0..<1_000 {
            let task = session.data(TransferRequest(url: server.url("/\(number)")), startsNow: false)
            if number == 0 { forgotten = task }
            if number == 999 {
                task.resume()
                _ = try await task.value
            }
        }
        #expect(forgotten == nil)
        #expect(server.requests.map(\.path) == ["/999"])
    }

    @Test func `starting, stopping and ending at once leave nobody waiting`() async throws {
        let server = try MisbehavingServer { _ in Reply(body: .pattern(10_000)) }
        let ends = Counter()
        for round in 0..<50 {
            let session = try localSession()
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    let task = session.data(TransferRequest(url: server.url()), startsNow: number % 2 == 0)
                    group.addTask {
                        if await failure(task)?.code ?? .cancelled == .cancelled || task.result != nil { ends.add() }
                    }
                    group.addTask { task.resume() }
                    if number % 4 == 1 { group.addTask { task.cancel() } }
                    if number % 4 == 2 {
                        group.addTask {
                            task.suspend()
                            task.resume()
                        }
                    }
                }
                group.addTask { _ = session.tasks }
                group.addTask { session.invalidate(cancelsTasks: round % 2 == 0) }
            }
            #expect(session.tasks.isEmpty)
        }
        #expect(ends.count == 400)
    }

    @Test func `a task cancelled while it is being started is cancelled`() async throws {
        let server = try MisbehavingServer { _ in .never }
        let session = try localSession()
        for _ in 0..<200 {
            let task = session.data(TransferRequest(url: server.url()), startsNow: false)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { task.resume() }
                group.addTask { task.cancel() }
            }
            #expect(await failure(task)?.code == .cancelled)
        }
    }
}
