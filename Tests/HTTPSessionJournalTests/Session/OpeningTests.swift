import Dispatch
import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import NetworkLab
import Testing

@testable import HTTPSessionJournal

/// `DurableSession.open`: its executor, its cancellation and its errors.
@Suite(.timeLimit(.minutes(20))) struct OpeningTests {
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory() }

    private func session(environment: TaskCoordinator.Environment = .init()) async throws(DurableSessionError) -> DurableSession {
        try await DurableSession.open(
            identifier: "test", directory: folder.url("state"), configuration: localConfiguration(), environment: environment)
    }

    @Test func `opening a journal leaves the executor of the caller free`() async throws {
        let executor = OneThreadExecutor()
        let (hasRun, otherWork) = (Locked(false), DispatchSemaphore(value: 0))
        var environment = TaskCoordinator.Environment()
        // The opening waits here until other work of the same executor has run.
        environment.didReadJournal = {
            executor.queue.async { otherWork.signal() }
            let result = otherWork.wait(timeout: .now() + .seconds(60))
            hasRun.withLock { $0 = result == .success }
        }
        let opening = Task(executorPreference: executor) { [environment] in try await session(environment: environment) }
        let opened = try await opening.value
        #expect(hasRun.withLock { $0 })
        await opened.close()
    }

    @Test func `a task that is canceled before it opens a session gets an error, and no file is created`() async throws {
        let opening = Task { () throws(DurableSessionError) in
            withUnsafeCurrentTask { $0?.cancel() }
            return try await session()
        }
        let error = await #expect(throws: DurableSessionError.self) { try await opening.value }
        expectEqual(error?.code, .cancelled)
        #expect(!FileManager.default.fileExists(atPath: folder.file("state")))
    }

    @Test func `a task that is canceled while it opens a session releases the journal and starts no task`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let first = try await session()
        try await first.downloadTask(for: TransferRequest(url: server.url("/")), to: .init(folder.url("file")))
        try await server.awaitRequests(1)
        await first.close()

        let (hasRead, isCancelled) = (AsyncStream<Void>.makeStream(), DispatchSemaphore(value: 0))
        var environment = TaskCoordinator.Environment()
        environment.didReadJournal = {
            hasRead.continuation.yield()
            isCancelled.wait()
        }
        let opening = Task { [environment] () throws(DurableSessionError) in try await session(environment: environment) }
        for await _ in hasRead.stream { break }
        opening.cancel()
        isCancelled.signal()
        let error = await #expect(throws: DurableSessionError.self) { try await opening.value }
        expectEqual(error?.code, .cancelled)
        expectEqual(server.requests.count, 1)

        gate.open()
        let last = try await session()
        await expectEqual(last.events.first { _ in true }?.outcome.summary, "finished")
        await last.close()
    }

    @Test func `a configuration that is refused releases the journal`() async throws {
        var configuration = localConfiguration()
        configuration.requestTimeout = .seconds(-1)
        let error = await #expect(throws: DurableSessionError.self) {
            try await DurableSession.open(
                identifier: "test", directory: folder.url("state"), configuration: configuration, environment: .init())
        }
        expectEqual(error?.code, .invalidConfiguration)
        expectEqual((error?.underlying as? HTTPSessionError)?.code, .invalidConfiguration)
        await (try await session()).close()
    }

    @Test func `a damaged journal is renamed, and the session names its new path`() async throws {
        await (try await session()).close()
        try Data("no database at all, and long enough to be one".utf8).write(to: folder.url("state/test/journal.sqlite"))
        let next = try await session()
        let damaged = try #require(next.damagedJournal)
        #expect(damaged.lastPathComponent.hasPrefix("journal.sqlite.damaged-"))
        #expect(FileManager.default.fileExists(atPath: damaged.path))
        await next.close()
        let last = try await session()
        expectNil(last.damagedJournal)
        await last.close()
    }
}

/// Runs its jobs on one thread at a time.
private final class OneThreadExecutor: TaskExecutor {
    let queue = DispatchQueue(label: "executor")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
