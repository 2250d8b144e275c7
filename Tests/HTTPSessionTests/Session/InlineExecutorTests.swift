import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import Testing

/// Runs jobs on the thread that enqueues them, as an executor may: resuming a continuation runs its task's code immediately.
private final class InlineExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) { job.runSynchronously(on: asUnownedTaskExecutor()) }
}

/// No lock is held while a waiting task is resumed, because an executor may run its code immediately, on the same thread.
@Suite(.timeLimit(.minutes(20))) struct InlineExecutorTests {
    private let executor = InlineExecutor()

    private func drain(_ task: TransferTask, _ hasStarted: Signal) -> Task<Int, any Error> {
        Task(executorPreference: executor) {
            var count = 0
            var chunks = task.chunks.makeAsyncIterator()
            hasStarted.fire()
            while let chunk = try await chunks.next() { count += chunk.count }
            return count
        }
    }

    @Test func `code resumed by the end of a transfer can invalidate the session and start another transfer`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let session = try localSession()
        let task = session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: false)
        let refusal = Task(executorPreference: executor) {
            _ = try? await task.response
            session.cancel()
            return await failure(session.dataTask(for: task.request))
        }
        task.resume()
        await expectEqual(refusal.value?.code, .sessionInvalidated)
    }

    @Test func `a reader of the progress can read the task's state`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: .texts(["one", "two"], between: .gate(gate))).chunked() }
        let task = try localSession().dataTask(for: TransferRequest(url: server.url()), startsImmediately: false)
        let hasStarted = Signal()
        let states = Task(executorPreference: executor) {
            var states: Set<TransferTask.State> = []
            for await _ in task.progress {
                states.insert(task.state)
                hasStarted.fire()
            }
            return states
        }
        await hasStarted.wait()
        task.resume()
        gate.open()
        _ = try await task.response
        #expect(await states.value.contains(.finished))
    }

    @Test func `two readers of one stream receive all chunks between them`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: .texts(["one", "two"], between: .gate(gate))).chunked() }
        let task = try localSession().streamTask(for: TransferRequest(url: server.url()))
        let (first, second) = (Signal(), Signal())
        let one = drain(task, first)
        await first.wait()
        let other = drain(task, second)
        await second.wait()
        gate.open()
        try await expectEqual(one.value + other.value, 6)
    }
}
