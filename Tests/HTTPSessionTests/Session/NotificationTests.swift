import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionCompatibility
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Messages of tasks that Foundation's notification center receives.
@Suite(.timeLimit(.minutes(20))) struct NotificationTests {
    /// A session that posts notifications.
    private func postingSession(_ eventMonitors: any EventMonitor...) throws -> HTTPSessionManager {
        try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: eventMonitors + [NotificationMonitor()])
    }

    /// Records the messages posted for a task. Foundation delivers each message in a task of its own, in no guaranteed order.
    private final class Observer: Sendable {
        private let recorded = AsyncStream.makeStream(of: String.self)
        private let tokens = Locked<[NotificationCenter.ObservationToken]>([])

        init(_ task: TransferTask) {
            let center = NotificationCenter.default
            tokens.withLock {
                $0 = [
                    center.addObserver(of: task, for: .taskDidResume) { [self] _ in record("resumed") },
                    center.addObserver(of: task, for: .taskDidSuspend) { [self] _ in record("suspended") },
                    center.addObserver(of: task, for: .taskDidMoveFile) { [self] in record("moved \($0.file.lastPathComponent)")
                    },
                    center.addObserver(of: task, for: .taskDidFailToMoveFile) { [self] in
                        record("not moved: \($0.error.code.rawValue) \($0.error.context.systemError ?? 0)")
                    },
                    center.addObserver(of: task, for: .taskDidComplete) { [self] message in
                        if case .failure(let error) = message.result {
                            record("failed \(error.code.rawValue)")
                        } else {
                            record("completed")
                        }
                    },
                ]
            }
        }

        private func record(_ text: String) { recorded.continuation.yield(text) }

        /// The first `count` messages, sorted.
        func messages(_ count: Int) async -> [String] {
            var messages: [String] = []
            for await message in recorded.stream {
                messages.append(message)
                if messages.count == count { break }
            }
            for token in tokens.withLock({ $0 }) { NotificationCenter.default.removeObserver(token) }
            return messages.sorted()
        }
    }

    @Test func `a notification is posted when a download cannot be moved because its destination was taken`() async throws {
        let (folder, gate) = (try ScratchDirectory(), try Gate())
        let server = try TestServer { _ in
            StubResponse(body: StubBody([.pattern(from: 0, count: 1_000), .wait(.gate(gate)), .bytes([1])]))
        }
        let task = try postingSession().downloadTask(
            for: TransferRequest(url: server.url()), to: .init(folder.url("file"), existingFile: .fail), startsImmediately: false)
        let observer = Observer(task)
        task.resume()
        await task.awaitProgress { $0.bytesReceived > 0 }
        await folder.awaitFile()
        try Data("other".utf8).write(to: folder.url("file"))
        gate.open()
        let recorded = await observer.messages(3)
        expectEqual(recorded, ["failed cannot-move-file", "not moved: cannot-move-file \(EEXIST)", "resumed"])
        expectEqual(folder.names, ["file"])
    }

    @Test func `a notification is posted for a download whose destination exists from the beginning`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { _ in StubResponse(body: "x") }
        try Data("other".utf8).write(to: folder.url("file"))
        let end = Signal()
        // The observer is registered before the task exists, because the task fails when it is created.
        let token = NotificationCenter.default.addObserver(of: TransferTask.self, for: .taskDidFailToMoveFile) { message in
            if message.error.context.url == server.url().absoluteString { end.fire() }
        }
        let log = EventLog()
        let session = try postingSession(log)
        let task = session.downloadTask(
            for: TransferRequest(url: server.url()), to: .init(folder.url("file"), existingFile: .fail))
        await expectEqual(failure(task)?.code, .cannotWriteFile)
        await end.wait()
        session.cancel(afterTasks: true)
        await expectEqual(
            log.awaitInvalidation(),
            [
                "created", "move failed cannot-write-file", "failed cannot-write-file", "invalidated",
            ])
        expectEqual(server.seen.connections, 0)
        NotificationCenter.default.removeObserver(token)
    }

    @Test func `a notification is posted for a download whose directory does not exist`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { _ in StubResponse(body: "x") }
        let task = try postingSession().downloadTask(
            for: TransferRequest(url: server.url()), to: .init(folder.url("none/file")), startsImmediately: false)
        let observer = Observer(task)
        task.resume()
        let recorded = await observer.messages(3)
        expectEqual(recorded, ["failed cannot-write-file", "not moved: cannot-write-file \(ENOENT)", "resumed"])
        expectEqual(folder.names, [])
    }

    @Test func `notifications of resume and suspend are posted once each, then the moved file and completion`() async throws {
        let (folder, gate) = (try ScratchDirectory(), try Gate())
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let log = EventLog()
        let session = try postingSession(log)
        let task = session.downloadTask(
            for: TransferRequest(url: server.url()), to: .init(folder.url("file")), startsImmediately: false)
        let observer = Observer(task)
        for _ in 0..<2 { task.resume() }
        try await server.awaitRequests(1)
        for _ in 0..<2 { task.suspend() }
        for _ in 0..<2 { task.resume() }
        await log.await("resumed", times: 2)
        gate.open()
        let recorded = await observer.messages(5)
        expectEqual(recorded, ["completed", "moved file", "resumed", "resumed", "suspended"])
    }

    // MARK: Content of the completion message

    /// The completion message of a task.
    private func end(
        of path: String, _ listen: (HTTPSessionManager, TransferTask) -> Void = { _, _ in }
    ) async throws -> TransferTask.DidComplete {
        let server = try TestServer { request in
            switch request.path {
            case "/lost": .none()
            case "/missing": StubResponse(404, fields: ["Content-Type": "application/json"], body: "{}")
            case "/broken": StubResponse(fields: ["Content-Type": "application/json"], body: "{")
            default: StubResponse(fields: ["Content-Type": "application/json"], body: "{\"a\":1}")
            }
        }
        let session = try postingSession()
        let task = session.dataTask(for: TransferRequest(url: server.url(path)), startsImmediately: false)
        let (message, signal) = (Locked<TransferTask.DidComplete?>(nil), Signal())
        let token = NotificationCenter.default.addObserver(of: task, for: .taskDidComplete) { posted in
            message.withLock { $0 = posted }
            signal.fire()
        }
        listen(session, task)
        task.resume()
        await signal.wait()
        NotificationCenter.default.removeObserver(token)
        return try #require(message.withLock { $0 })
    }

    @Test func `the completion is posted with the values that the callbacks received, in their order`() async throws {
        let end = try await end(of: "/") { session, task in
            session.respond(to: task, success: { _, _ in }, failure: { _, _ in })
            session.respond(to: task, with: StringResponseSerializer(), success: { _, _ in }, failure: { _, _ in })
        }
        try expectEqual(end.result.get().data, Data("{\"a\":1}".utf8))
        expectEqual(end.serializedResponse as? JSONValue, .object(["a": .integer(1)]))
        expectNil(end.error)
        expectEqual(
            end.callbackResults.map { "\(type(of: $0.serializer))" }, ["JSONResponseSerializer", "StringResponseSerializer"])
        try expectEqual(end.callbackResults.last?.result.get() as? String, "{\"a\":1}")
    }

    @Test(arguments: [
        ("/lost", HTTPSessionError.Code.connectionLost, false), ("/missing", .unacceptableStatus, true),
        ("/broken", .cannotDecodeContent, true),
    ]) func `the completion is posted with the error of the task, or of its serializer`(
        _ path: String, _ code: HTTPSessionError.Code, _ hasResponse: Bool
    ) async throws {
        let end = try await end(of: path) { session, task in
            session.respond(to: task, success: { _, _ in }, failure: { _, _ in })
        }
        expectEqual(end.error?.code, code)
        expectEqual(((try? end.result.get()) != nil), hasResponse)
        #expect(end.serializedResponse == nil && end.callbackResults.count == 1)
        let recorded = HTTPSessionError.thrown { try end.callbackResults.first?.result.get() }
        expectEqual(recorded?.code, code)
    }

    @Test func `without callbacks the completion is posted with the response`() async throws {
        let end = try await end(of: "/missing")
        try expectEqual(end.result.get().statusCode, 404)
        #expect(end.callbackResults.isEmpty && end.serializedResponse == nil && end.error == nil)
    }
}
