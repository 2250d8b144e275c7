import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// What Foundation's notification centre is told of tasks.
@Suite(.timeLimit(.minutes(20))) struct NotificationTests {
    /// Notes what is posted of a task, in order; `end` is its completion.
    private final class Observer: Sendable {
        private let told = Locked<[String]>([])
        let end = Signal()
        private let tokens = Locked<[NotificationCenter.ObservationToken]>([])

        init(_ task: TransferTask) {
            let center = NotificationCenter.default
            tokens.withLock {
                $0 = [
                    center.addObserver(of: task, for: .taskDidResume) { [self] _ in tell("resumed") },
                    center.addObserver(of: task, for: .taskDidSuspend) { [self] _ in tell("suspended") },
                    center.addObserver(of: task, for: .taskDidMoveFile) { [self] in tell("moved \($0.file.lastPathComponent)") },
                    center.addObserver(of: task, for: .taskDidFailToMoveFile) { [self] in
                        tell("not moved: \($0.error.code.rawValue) \($0.error.context.systemError ?? 0)")
                    },
                    center.addObserver(of: task, for: .taskDidComplete) { [self] message in
                        if case .failure(let error) = message.result {
                            tell("failed \(error.code.rawValue)")
                        } else {
                            tell("completed")
                        }
                        end.fire()
                    },
                ]
            }
        }

        private func tell(_ text: String) { told.withLock { $0.append(text) } }

        /// What was told until the end.
        func untilEnd() async -> [String] {
            await end.wait()
            for token in tokens.withLock({ $0 }) { NotificationCenter.default.removeObserver(token) }
            return told.withLock { $0 }
        }
    }

    @Test func `a download that loses its place is told of, before its end`() async throws {
        let (folder, gate) = (try ScratchDirectory(), try Gate())
        let server = try MisbehavingServer { _ in
            Reply(body: ReplyBody([.pattern(from: 0, count: 1_000), .wait(.gate(gate)), .bytes([1])]))
        }
        let task = try localSession().download(
            TransferRequest(url: server.url()), to: .init(folder.url("file"), existingFile: .fail), startsNow: false)
        let observer = Observer(task)
        task.resume()
        await task.awaitProgress { $0.received > 0 }
        try Data("other".utf8).write(to: folder.url("file"))
        gate.open()
        let told = await observer.untilEnd()
        #expect(told == ["resumed", "not moved: cannot-move-file \(EEXIST)", "failed cannot-move-file"])
        #expect(folder.names == ["file"])
    }

    @Test func `a download whose place is taken from the beginning is told of too`() async throws {
        let folder = try ScratchDirectory()
        let server = try MisbehavingServer { _ in Reply(body: "x") }
        try Data("other".utf8).write(to: folder.url("file"))
        let end = Signal()
        // Whoever wants to hear of such a task listens before it is there.
        let token = NotificationCenter.default.addObserver(of: TransferTask.self, for: .taskDidFailToMoveFile) { message in
            if message.error.context.url == server.url().absoluteString { end.fire() }
        }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), monitors: [log])
        let task = session.download(TransferRequest(url: server.url()), to: .init(folder.url("file"), existingFile: .fail))
        #expect(await failure(task)?.code == .cannotMoveFile)
        await end.wait()
        session.invalidate(cancelsTasks: false)
        #expect(
            await log.awaitInvalidation() == [
                "created", "move failed cannot-move-file", "failed cannot-move-file", "invalidated",
            ])
        #expect(server.seen.connections == 0)
        NotificationCenter.default.removeObserver(token)
    }

    @Test func `stops and starts are told once each, and a file before the end`() async throws {
        let (folder, gate) = (try ScratchDirectory(), try Gate())
        let server = try MisbehavingServer { _ in Reply(body: "x").held(by: gate) }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), monitors: [log])
        let task = session.download(TransferRequest(url: server.url()), to: .init(folder.url("file")), startsNow: false)
        let observer = Observer(task)
        for _ in 0..<2 { task.resume() }
        try await server.awaitRequests(1)
        for _ in 0..<2 { task.suspend() }
        for _ in 0..<2 { task.resume() }
        await log.await("resumed", times: 2)
        gate.open()
        #expect(await observer.untilEnd() == ["resumed", "suspended", "resumed", "moved file", "completed"])
    }
}
