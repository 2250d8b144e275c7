import Expectations
import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPSessionCompatibility
import HTTPSessionTestKit
import HTTPTypes
import Testing

@Suite struct DataTaskTests {
    @Test func `a data task returns the response's status, fields and body`() async throws {
        let server = try TestServer { _ in StubResponse(body: "hello").field("X-Kind", "greeting") }
        let session = try localSession()
        let response = try await session.dataTask(for: TransferRequest(url: server.url("/a?b=c"))).response
        expectEqual(response.statusCode, 200)
        expectEqual(response.data, Data("hello".utf8))
        expectEqual(response.httpResponse.headerFields[HTTPField.Name("X-Kind")!], "greeting")
        expectEqual(server.requests.map(\.target), ["/a?b=c"])
        expectEqual(response.metrics.transactions.count, 1)
        expectEqual(response.metrics.transactions.first?.remotePort, Int(server.port))
    }

    @Test func `a request body is sent with Content-Length`() async throws {
        let server = try TestServer { StubResponse(body: "\($0.method) \($0["content-length"] ?? "-") \($0.text)") }
        let session = try localSession()
        let request = TransferRequest(url: server.url(), method: .post, body: .data(Data("abc".utf8)))
        try await expectEqual(session.dataTask(for: request).response.data, Data("POST 3 abc".utf8))
    }

    @Test func `a second request reuses the first one's connection`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession()
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        let second = try await session.dataTask(for: TransferRequest(url: server.url())).response
        expectEqual(second.metrics.transactions.first?.isReusedConnection, true)
        expectEqual(server.seen.connections, 1)
    }

    @Test func `a refused connection fails as cannotConnectToHost with ECONNREFUSED`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let url = server.url("/secret?token=1")
        server.stop()
        let session = try localSession()
        let error = await #expect(throws: HTTPSessionError.self) {
            try await session.dataTask(for: TransferRequest(url: url)).response
        }
        expectEqual(error?.code, .cannotConnectToHost)
        expectEqual(error?.context.systemError, ECONNREFUSED)
        #expect(error?.context.url?.contains("token") == false)
    }

    @Test func `an http URL is refused before anything is sent if insecure connections are not allowed`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let session = try HTTPSessionManager()
        let error = await #expect(throws: HTTPSessionError.self) {
            try await session.dataTask(for: TransferRequest(url: server.url())).response
        }
        expectEqual(error?.code, .insecureConnectionRefused)
        expectEqual(server.seen.connections, 0)
    }

    @Test func `a canceled task fails as cancelled`() async throws {
        let server = try TestServer { _ in .never }
        let session = try localSession()
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        _ = try await server.awaitRequests(1)
        task.cancel()
        let error = await #expect(throws: HTTPSessionError.self) { try await task.response }
        expectEqual(error?.code, .cancelled)
        await expectEmpty(session.tasks)
    }

    @Test func `canceling seven of eight awaiters at once leaves the task to the eighth`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession()
        for _ in 0..<100 {
            let gate = try Gate()
            let held = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
            let task = session.dataTask(for: TransferRequest(url: held.url()))
            let awaiters = (0..<8).map { _ in Task { try await task.response.statusCode } }
            while task.awaiterCount < 8 { await Task.yield() }
            await withTaskGroup(of: Void.self) { group in
                for awaiter in awaiters.dropLast() { group.addTask { awaiter.cancel() } }
            }
            gate.open()
            try await expectEqual(awaiters.last?.value, 200)
        }
        _ = server
    }

    @Test func `canceling the only awaiter leaves the task to a callback`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let session = try localSession()
        let (results, result) = AsyncStream.makeStream(of: String.self)
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        task.respond(
            with: StringResponseSerializer(), on: session.completionQueue, success: { _, text in result.yield(text) },
            failure: { _, error in result.yield(error.code.rawValue) })
        let awaiter = Task { try await task.response }
        while task.awaiterCount < 1 { await Task.yield() }
        awaiter.cancel()
        let error = await #expect(throws: HTTPSessionError.self) { try await awaiter.value }
        expectEqual(error?.code, .cancelled)
        gate.open()
        for await text in results {
            expectEqual(text, "x")
            break
        }
    }

    @Test func `canceling one of several awaiters leaves the task to the others`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let session = try localSession()
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        let (first, second) = (Task { try await task.response }, Task { try await task.string() })
        _ = try await server.awaitRequests(1)
        while task.awaiterCount < 2 { await Task.yield() }
        first.cancel()
        let error = await #expect(throws: HTTPSessionError.self) { try await first.value }
        expectEqual(error?.code, .cancelled)
        expectEqual(task.state, .running)
        gate.open()
        try await expectEqual(second.value, "x")
        try await expectEqual(task.response.statusCode, 200)
    }

    @Test func `canceling the only awaiter cancels the task`() async throws {
        let server = try TestServer { _ in .never }
        let session = try localSession()
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        let waiting = Task { try await task.response }
        _ = try await server.awaitRequests(1)
        waiting.cancel()
        let error = await #expect(throws: HTTPSessionError.self) { try await waiting.value }
        expectEqual(error?.code, .cancelled)
    }

    @Test func `a server that sends nothing fails after the request timeout, also if that is below a second`() async throws {
        let server = try TestServer { _ in .never }
        let session = try localSession { $0.requestTimeout = .milliseconds(100) }
        let error = await #expect(throws: HTTPSessionError.self) {
            try await session.dataTask(for: TransferRequest(url: server.url())).response
        }
        expectEqual(error?.code, .timedOut)
    }

    @Test func `a slow server does not trigger the request timeout if each piece arrives in time`() async throws {
        let gates = try (0..<6).map { _ in try Gate() }
        let body = StubBody(gates.indices.flatMap { [.pattern(from: Int64($0), count: 1), .wait(.gate(gates[$0]))] })
        let server = try TestServer { _ in StubResponse(body: body) }
        let clock = ManualClock()
        let session = try localSession { ($0.requestTimeout, $0.transport) = (.seconds(6_000), clock) }
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        for (index, gate) in gates.enumerated() {
            await task.awaitProgress { $0.bytesReceived == index + 1 }
            clock.advance(by: .seconds(5_000))
            gate.open()
        }
        try await expectEqual(task.response.data, pattern(6))
    }

    @Test func `the resource timeout ends a transfer that keeps receiving`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(1 << 20)).slow(bytesPerSecond: 2_000) }
        let session = try localSession { $0.resourceTimeout = .milliseconds(300) }
        let error = await #expect(throws: HTTPSessionError.self) {
            try await session.dataTask(for: TransferRequest(url: server.url())).response
        }
        expectEqual(error?.code, .timedOut)
        #expect(error?.reason.contains("not done within") == true)
    }

    @Test func `a response larger than the maximum size fails as responseTooLarge`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(100_000)) }
        let session = try localSession { $0.maximumResponseSize = 10_000 }
        let error = await #expect(throws: HTTPSessionError.self) {
            try await session.dataTask(for: TransferRequest(url: server.url())).response
        }
        expectEqual(error?.code, .responseTooLarge)
    }

    @Test func `a body that is cut off fails as connectionLost`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(10_000)).cut(afterBodyBytes: 5_000) }
        let session = try localSession()
        let error = await #expect(throws: HTTPSessionError.self) {
            try await session.dataTask(for: TransferRequest(url: server.url())).response
        }
        expectEqual(error?.code, .connectionLost)
    }

    @Test func `a POST on a reused connection that closes is not retried`() async throws {
        let server = try TestServer { request in
            request.method == "GET" ? StubResponse(body: "x").endingOnNextRequest() : StubResponse(body: "done")
        }
        let session = try localSession()
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        let error = await #expect(throws: HTTPSessionError.self) {
            try await session.dataTask(for: TransferRequest(url: server.url(), method: .post, body: .data(Data("pay".utf8))))
                .response
        }
        expectEqual(error?.code, .connectionLost)
        expectEmpty(server.requests.filter { $0.method == "POST" })
    }

    @Test func `a GET on a reused connection that closes is retried on a new connection`() async throws {
        let server = try TestServer { request in
            request.arrival <= 1 ? StubResponse(body: "x").endingOnNextRequest() : StubResponse(body: "second")
        }
        let session = try localSession()
        _ = try await session.dataTask(for: TransferRequest(url: server.url())).response
        let response = try await session.dataTask(for: TransferRequest(url: server.url("/again"))).response
        expectEqual(response.statusCode, 200)
        expectEqual(response.metrics.retryCount, 1)
    }

    @Test func `creating a task after the session is invalidated gives a failed task`() async throws {
        let session = try localSession()
        session.cancel()
        let error = await #expect(throws: HTTPSessionError.self) {
            try await session.dataTask(for: TransferRequest(url: URL(string: "http://127.0.0.1:1/")!)).response
        }
        expectEqual(error?.code, .sessionInvalidated)
    }

    @Test func `HEAD with a request body is refused as invalidRequest`() async throws {
        let server = try TestServer { _ in StubResponse(body: "hello") }
        let request = TransferRequest(url: server.url(), method: .head, body: .data(Data("x".utf8)))
        await expectEqual(failure(try localSession().dataTask(for: request))?.code, .invalidRequest)
    }

    @Test func `the Foundation progress of a body without Content-Length is finished at the end`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(50_000)).chunked() }
        let session = try localSession()
        let task = session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: false)
        let progress = task.foundationProgress(.download)
        expectEqual(progress.totalUnitCount, -1)
        let end = Signal()
        session.respond(
            to: task, with: StringResponseSerializer(), success: { _, _ in end.fire() }, failure: { _, _ in end.fire() })
        task.resume()
        await end.wait()
        expectEqual(progress.completedUnitCount, 50_000)
        #expect(progress.isFinished)
    }

    @Test(arguments: [Duration.zero, .seconds(-1), .seconds(Int64.min), .seconds(Int64.max), .seconds(-200 * 366 * 86_400)])
    func `a timeout or size option of a request outside the allowed range is refused`(_ timeout: Duration) async throws {
        let server = try TestServer { _ in .never }
        let session = try localSession()
        for option in [
            \TransferRequest.Options.connectTimeout, \TransferRequest.Options.requestTimeout,
            \TransferRequest.Options.resourceTimeout,
        ] {
            var request = TransferRequest(url: server.url())
            request.options[keyPath: option] = timeout
            let error = await failure(session.dataTask(for: request))
            #expect(error?.code == .invalidRequest && error?.reason.contains("10 years") == true)
        }
        var request = TransferRequest(url: server.url())
        request.options.maximumResponseSize = -1
        await expectEqual(failure(session.dataTask(for: request))?.code, .invalidRequest)
    }
}
