import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@testable import HTTPSession

/// Objects that a user's closures capture may use the task and the session when they are deinitialized.
@Suite(.timeLimit(.minutes(5))) struct ReleaseTests {
    private final class DeinitProbe: Sendable {
        let end: @Sendable () -> Void
        init(_ end: @escaping @Sendable () -> Void) { self.end = end }
        deinit { end() }
    }

    @Test func `an object captured by a progress callback can use its task in deinit`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession()
        let (ends, ended) = AsyncStream.makeStream(of: TransferTask.State.self)
        for _ in 0..<20 {
            let tasks = (0..<20).map { _ in session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: false) }
            for task in tasks {
                let held = DeinitProbe { ended.yield(task.state) }
                task.respond(
                    with: HTTPResponseSerializer(), on: .global(), progress: { _ in withExtendedLifetime(held) {} },
                    success: { _, _ in }, failure: { _, _ in })
            }
            for task in tasks { task.resume() }
            for task in tasks { _ = try await task.response }
        }
        var states = ends.makeAsyncIterator()
        for _ in 0..<400 { await expectEqual(states.next(), .finished) }
    }

    @Test(arguments: ["handler", "body", "session"])
    func `closures of a task are released off the session's thread, so that deinit can read the session's tasks`(_ place: String)
        async throws
    {
        let server = try TestServer { request in
            request.path == "/redirect" ? .redirect(to: "/") : StubResponse(body: "x")
        }
        let (ends, ended) = AsyncStream.makeStream(of: String.self)
        var session: HTTPSessionManager? = try localSession { $0.name = "release" }
        for number in 0..<200 {
            let held = DeinitProbe { [weak session] in
                let name = threadName()
                guard let session else { return _ = ended.yield(name) }
                Task {
                    _ = await session.tasks
                    ended.yield(name)
                }
            }
            var request = TransferRequest(url: server.url(number % 2 == 0 ? "/" : "/redirect"))
            var handlers = TransferHandlers()
            if place == "body" {
                request.method = .put
                request.body = .stream(length: 1) {
                    withExtendedLifetime(held) {
                        AsyncThrowingStream {
                            $0.yield(Data([1])); $0.finish()
                        }
                    }
                }
            } else {
                handlers.response = { _ in withExtendedLifetime(held) { .allow } }
            }
            // Only the session references this task.
            _ = session?.dataTask(for: request, handlers: handlers)
        }
        if place == "session" { session?.cancel() }
        if place == "session" { session = nil }
        var threads = ends.makeAsyncIterator()
        for _ in 0..<200 { #expect(await threads.next() != "release") }
    }

    @Test func `the objects of a finished task are released while another task is under way`() async throws {
        let gate = try Gate()
        let server = try TestServer {
            $0.path == "/slow" ? StubResponse(body: .texts(["", "x"], between: .gate(gate))) : StubResponse()
        }
        let session = try localSession()
        let slow = session.dataTask(for: TransferRequest(url: server.url("/slow")))
        let (ends, ended) = AsyncStream.makeStream(of: Void.self)
        var released = ends.makeAsyncIterator()
        for _ in 0..<20 {
            let held = DeinitProbe { ended.yield() }
            var handlers = TransferHandlers()
            handlers.response = { _ in withExtendedLifetime(held) { .allow } }
            _ = try await session.dataTask(for: TransferRequest(url: server.url()), handlers: handlers).response
        }
        for _ in 0..<20 { await released.next() }
        expectNil(slow.result)
        gate.open()
        _ = try await slow.response
    }

    /// A monitor, interceptor or capture of a handler, whose release a test observes by a weak reference.
    private final class Captured: EventMonitor, RequestInterceptor {
        func handle(_ event: SessionEvent) {}
    }

    @Test(arguments: ["response", "redirect", "challenge", "serverTrust", "clientCertificate", "didContinue"], [true, false])
    func `a finished task releases its handlers`(_ name: String, succeeds: Bool) async throws {
        let server = try TestServer { _ in succeeds ? StubResponse(body: "x") : .none() }
        let session = try localSession()
        weak var captured: Captured?
        let task: TransferTask
        do {
            let object = Captured()
            captured = object
            var handlers = TransferHandlers()
            switch name {
            case "response": handlers.response = { _ in withExtendedLifetime(object) { .allow } }
            case "redirect": handlers.redirect = { _ in withExtendedLifetime(object) { .follow } }
            case "challenge": handlers.challenge = { _ in withExtendedLifetime(object) { .cancel } }
            case "serverTrust": handlers.serverTrust = { _ in withExtendedLifetime(object) { .performDefaultHandling } }
            case "clientCertificate": handlers.clientCertificate = { _ in withExtendedLifetime(object) { .cancel } }
            default: handlers.didContinue = { _, _ in withExtendedLifetime(object) {} }
            }
            task = session.dataTask(for: TransferRequest(url: server.url()), handlers: handlers)
        }
        await expectEqual(failure(task)?.code, succeeds ? nil : .connectionLost)
        while captured != nil { await Task.yield() }
        // A task that never starts releases them as well.
        let unstarted: TransferTask
        do {
            let object = Captured()
            captured = object
            unstarted = session.dataTask(
                for: TransferRequest(url: server.url()),
                handlers: TransferHandlers(response: { _ in withExtendedLifetime(object) { .allow } }), startsImmediately: false)
        }
        #expect(captured != nil)
        unstarted.cancel()
        while captured != nil { await Task.yield() }
        withExtendedLifetime((task, unstarted, session)) {}
    }

    @Test(arguments: ["close", "invalidate", "finish"])
    func `a session that has ended releases its monitors, handlers and interceptors`(_ end: String) async throws {
        let gate = try Gate()
        let server = try TestServer { $0.path == "/held" ? StubResponse(body: "x").held(by: gate) : StubResponse(body: "x") }
        weak var monitor: Captured?
        weak var handler: Captured?
        weak var interceptor: Captured?
        weak var ownInterceptor: Captured?
        let session: HTTPSessionManager
        let (finished, held): (TransferTask, TransferTask)
        do {
            let objects = (0..<4).map { _ in Captured() }
            (monitor, handler, interceptor, ownInterceptor) = (objects[0], objects[1], objects[2], objects[3])
            let handlers = TransferHandlers(
                response: { [handler = objects[1]] _ in withExtendedLifetime(handler) { .allow } }, interceptors: [objects[2]])
            session = try HTTPSessionManager(configuration: localConfiguration(), handlers: handlers, eventMonitors: [objects[0]])
            finished = session.dataTask(
                for: TransferRequest(url: server.url()), handlers: TransferHandlers(interceptors: [objects[3]]))
            _ = try await finished.response
            held = session.dataTask(for: TransferRequest(url: server.url("/held")))
        }
        try await server.awaitRequests(2)
        // The task under way, and a serializer of the finished one, may still ask them.
        #expect(monitor != nil && handler != nil && interceptor != nil && ownInterceptor != nil)
        switch end {
        case "close":
            session.cancel()
            await session.waitUntilEnded()
        case "invalidate":
            session.cancel()
            while monitor != nil || handler != nil || interceptor != nil || ownInterceptor != nil { await Task.yield() }
        default:
            session.cancel(afterTasks: true)
            #expect(monitor != nil && handler != nil)
            gate.open()
            try await expectEqual(held.data(), Data("x".utf8))
            while monitor != nil || handler != nil || interceptor != nil || ownInterceptor != nil { await Task.yield() }
        }
        expectNil(monitor)
        expectNil(handler)
        expectNil(interceptor)
        expectNil(ownInterceptor)
        expectNil(session.handlers.response)
        withExtendedLifetime((session, finished, held)) {}
    }

    @Test func `a task that has finished is released while another task is under way`() async throws {
        let gate = try Gate()
        let server = try TestServer {
            $0.path == "/slow" ? StubResponse(body: .texts(["", "x"], between: .gate(gate))) : StubResponse(body: "x")
        }
        let session = try localSession()
        let slow = session.dataTask(for: TransferRequest(url: server.url("/slow")))
        for _ in 0..<20 {
            weak var finished: TransferTask?
            do {
                let task = session.dataTask(for: TransferRequest(url: server.url()))
                finished = task
                try await expectEqual(task.response.data, Data("x".utf8))
            }
            while finished != nil { await Task.yield() }
        }
        expectNil(slow.result)
        gate.open()
        _ = try await slow.response
    }

    @Test func `a session that only its tasks reference ends after them`() async throws {
        for _ in 0..<20 {
            let gate = try Gate()
            let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
            do {
                let session = try localSession()
                for number in 0..<8 {
                    // Half of the tasks have a handler, and so an object of the user.
                    let handlers = number % 2 == 0 ? nil : TransferHandlers(response: { _ in .allow })
                    _ = session.dataTask(for: TransferRequest(url: server.url()), handlers: handlers)
                }
            }
            try await server.awaitRequests(6)
            gate.open()
            try await server.awaitOpenConnections(0)
        }
    }

    @Test func `a callback of progress that is added to a finished task is called once and released`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let task = try localSession().dataTask(for: TransferRequest(url: server.url()))
        _ = try await task.response
        let (ends, ended) = AsyncStream.makeStream(of: Int64.self)
        do {
            let held = DeinitProbe { ended.yield(-1) }
            task.onProgress { progress in withExtendedLifetime(held) { _ = ended.yield(progress.bytesReceived) } }
        }
        var values = ends.makeAsyncIterator()
        await expectEqual(values.next(), 1)
        await expectEqual(values.next(), -1)
        withExtendedLifetime(task) {}
    }

    @Test func `a task that was never resumed is released with its callbacks and session`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let (released, group) = (Signal(), DispatchGroup())
        weak var forgotten: TransferTask?
        do {
            let held = DeinitProbe { released.fire() }
            let session = try localSession()
            let task = session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: false)
            forgotten = task
            task.respond(
                with: HTTPResponseSerializer(), on: .global(), group: group,
                success: { _, _ in withExtendedLifetime(held) {} }, failure: { _, _ in })
        }
        await released.wait()
        expectNil(forgotten)
        expectEqual(group.wait(timeout: .now()), .success)
    }

    @Test func `readers of progress are released when they stop reading`() async throws {
        let server = try TestServer { _ in .never }
        let task = try localSession().dataTask(for: TransferRequest(url: server.url()))
        for _ in 0..<100 { for await _ in task.progress { break } }
        expectEqual(task.progressReaderCount, 0)
        task.cancel()
        _ = await failure(task)
    }
}

private func threadName() -> String {
    let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
    return name?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
}
