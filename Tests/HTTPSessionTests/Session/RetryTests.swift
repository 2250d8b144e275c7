import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Four retries, at most a millisecond apart.
private let soon = RetryPolicy(baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))

private func patientSession(_ policy: RetryPolicy = soon, eventMonitors: [any EventMonitor] = []) throws -> HTTPSessionManager {
    try HTTPSessionManager(configuration: localConfiguration { $0.retryPolicy = policy }, eventMonitors: eventMonitors)
}

@Suite(.timeLimit(.minutes(20))) struct RetryTests {
    /// A server that fails the given number of times, and then sends a good response.
    private func server(failing times: Int, with reply: StubResponse) throws -> TestServer {
        let count = Counter()
        return try TestServer { _ in count.add() <= times ? reply : StubResponse(body: "well") }
    }

    // RetryMachineTests have the other statuses.
    @Test func `a GET with a 503 is retried`() async throws {
        let server = try server(failing: 2, with: StubResponse(503, body: "ill"))
        let response = try await patientSession().dataTask(for: TransferRequest(url: server.url())).response
        expectEqual(response.data, Data("well".utf8))
        expectEqual(response.metrics.retryCount, 2)
        #expect(response.metrics.timeBackingOff > .zero)
        expectEqual(response.metrics.transactions.map(\.statusCode), [503, 503, 200])
        #expect(response.metrics.timeBackingOff > .zero && response.metrics.timeBackingOff <= .milliseconds(2))
        expectEqual(server.requests.count, 3)
    }

    @Test func `if a redirect's target resets connections, the original URL is requested again for another target`() async throws
    {
        let (dead, alive) = (try TestServer { _ in .none(.reset) }, try TestServer { _ in StubResponse(body: "well") })
        let asked = Counter()
        let first = try TestServer { _ in .redirect(to: (asked.add() == 1 ? dead : alive).url("/file").absoluteString) }
        let response = try await patientSession().dataTask(for: TransferRequest(url: first.url())).response
        expectEqual(response.data, Data("well".utf8))
        expectEqual(first.requests.count, 2)
        expectEqual(dead.requests.count, 2)
        expectEqual(alive.requests.count, 1)
        expectEqual(response.metrics.retryCount, 2)
    }

    @Test func `if a redirect's target fails during a download, the file restarts from another target`() async throws {
        let folder = try ScratchDirectory()
        let replies = Counter()
        let dying = try TestServer { _ in
            replies.add() == 1
                ? StubResponse(body: .pattern(300_000)).field("ETag", "\"1\"").cut(afterBodyBytes: 200_000, .reset)
                : .none(.reset)
        }
        let alive = try TestServer { _ in StubResponse(body: .pattern(300_000)).field("ETag", "\"1\"") }
        let asked = Counter()
        let first = try TestServer { _ in .redirect(to: (asked.add() == 1 ? dying : alive).url("/file").absoluteString) }
        let file = folder.url("file")
        _ = try await patientSession().downloadTask(for: TransferRequest(url: first.url()), to: .init(file)).response
        try expectEqual(Data(contentsOf: file), pattern(300_000))
        expectEqual(first.requests.count, 2)
        expectEqual(dying.requests.count, 3)
        expectEqual(alive.requests.count, 1)
    }

    @Test func `timeToNextAttempt is the time until the next retry`() async throws {
        let server = try server(failing: 1, with: StubResponse(503, fields: ["Retry-After": "60"]))
        let log = EventLog()
        let task = try patientSession(eventMonitors: [log]).dataTask(for: TransferRequest(url: server.url()))
        await log.await("retry unacceptable-status")
        let wait = try #require(task.timeToNextAttempt)
        #expect(wait > .seconds(10) && wait < .seconds(61))
        task.cancel()
        _ = await failure(task)
        expectNil(task.timeToNextAttempt)
    }

    @Test func `after the last retry its response is the result`() async throws {
        let server = try server(failing: 9, with: StubResponse(503, body: "ill"))
        let response = try await patientSession().dataTask(for: TransferRequest(url: server.url())).response
        expectEqual(response.statusCode, 503)
        expectEqual(response.data, Data("ill".utf8))
        expectEqual(server.requests.count, 5)
    }

    @Test(arguments: [
        StubResponse.none(.reset), .none(), StubResponse(body: .pattern(100_000)).cut(afterBodyBytes: 50_000, .reset),
    ])
    func `a lost connection is retried and the body is complete`(_ reply: StubResponse) async throws {
        let server = try server(failing: 3, with: reply)
        let response = try await patientSession().dataTask(for: TransferRequest(url: server.url())).response
        expectEqual(response.data, Data("well".utf8))
        expectEqual(response.metrics.retryCount, 3)
    }

    @Test func `a silent server fails a task after the request timeout, without a second attempt`() async throws {
        let server = try server(failing: 1, with: .never)
        let clock = ManualClock()
        let session = try localSession { ($0.retryPolicy, $0.transport) = (soon, clock) }
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        try await server.awaitRequests(1)
        clock.advance(by: .seconds(600))
        await expectEqual(failure(task)?.code, .timedOut)
        expectEqual(task.metrics?.retryCount, 0)
        expectEqual(server.requests.count, 1)
    }

    @Test func `without a limit of retries a request timeout fails one attempt, and the next one succeeds`() async throws {
        let server = try server(failing: 1, with: .never)
        let clock = ManualClock()
        let unlimited = RetryPolicy(maximumRetries: nil, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        let session = try localSession { ($0.retryPolicy, $0.transport) = (unlimited, clock) }
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        try await server.awaitRequests(1)
        clock.advance(by: .seconds(600))
        let response = try await task.response
        expectEqual(response.data, Data("well".utf8))
        expectEqual(response.metrics.transactions.map(\.statusCode), [nil, 200])
        expectEqual(server.requests.count, 2)
    }

    @Test func `a refused connection is retried until the server listens`() async throws {
        let folder = try ScratchDirectory()
        let path = folder.file("socket")
        let log = EventLog()
        let configuration = localConfiguration { configuration in
            configuration.retryPolicy = RetryPolicy(
                maximumRetries: nil, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
            configuration.unixSocketPath = path
        }
        let session = try HTTPSessionManager(configuration: configuration, eventMonitors: [log])
        let url = try #require(URL(string: "http://localhost/"))
        let task = session.dataTask(for: TransferRequest(url: url, method: .post))
        await log.await("retry cannot-connect-to-host")
        let server = try TestServer(at: .unix(path)) { _ in StubResponse(body: "well") }
        // No attempt was sent before, so even a POST can be retried.
        try await expectEqual(task.response.data, Data("well".utf8))
        expectEqual(server.requests.map(\.method), ["POST"])
    }

    @Test func `a POST that may have been executed is not retried, one with an Idempotency-Key is`() async throws {
        let server = try server(failing: 1, with: .none(.reset))
        let session = try patientSession()
        let post = TransferRequest(url: server.url(), method: .post, body: .data(Data("pay".utf8)))
        await expectEqual(failure(session.dataTask(for: post))?.code, .connectionLost)
        expectEqual(server.requests.count, 1)

        let second = try self.server(failing: 1, with: .none(.reset))
        var keyed = TransferRequest(url: second.url(), method: .post, body: .data(Data("pay".utf8)))
        keyed.headerFields[try #require(HTTPField.Name("Idempotency-Key"))] = "1"
        try await expectEqual(session.dataTask(for: keyed).response.statusCode, 200)
        expectEqual(second.requests.map(\.body), [Array("pay".utf8), Array("pay".utf8)])
    }

    @Test func `a POST with a 503 is not retried`() async throws {
        let server = try server(failing: 1, with: StubResponse(503))
        let post = TransferRequest(url: server.url(), method: .post, body: .data(Data("pay".utf8)))
        try await expectEqual(patientSession().dataTask(for: post).response.statusCode, 503)
        expectEqual(server.requests.count, 1)
    }

    @Test func `a Retry-After of more than a minute ends the task, and the error has its delay`() async throws {
        let server = try server(failing: 1, with: StubResponse(429, fields: ["Retry-After": "3000"]))
        let task = try patientSession().dataTask(for: TransferRequest(url: server.url()))
        let error = await #expect(throws: HTTPSessionError.self) { try await task.data() }
        expectEqual(error?.code, .unacceptableStatus)
        expectEqual(error?.context.retryAfter, .seconds(3_000))
        expectEqual(server.requests.count, 1)
    }

    @Test func `a Retry-After beyond the resource timeout ends the task with the 503`() async throws {
        let server = try server(failing: 1, with: StubResponse(503, fields: ["Retry-After": "3600"]))
        var request = TransferRequest(url: server.url())
        request.options.resourceTimeout = .seconds(1_800)
        request.options.retryPolicy = .persistent
        try await expectEqual(patientSession().dataTask(for: request).response.statusCode, 503)
        expectEqual(server.requests.count, 1)
    }

    @Test func `a task that waits for its retry can be suspended and canceled`() async throws {
        let server = try server(failing: 9, with: StubResponse(503, fields: ["Retry-After": "60"]))
        let log = EventLog()
        let session = try patientSession(eventMonitors: [log])
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        await log.await("retry unacceptable-status")
        expectEqual(task.state, .backingOff)
        task.suspend()
        await log.await("suspended")
        expectEqual(task.state, .suspended)
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
    }

    @Test func `suspending a task that waits for its retry does not shorten the wait`() async throws {
        let server = try server(failing: 9, with: StubResponse(503, fields: ["Retry-After": "60"]))
        let log = EventLog()
        let session = try patientSession(eventMonitors: [log])
        let task = session.dataTask(for: TransferRequest(url: server.url()))
        await log.await("retry unacceptable-status")
        task.suspend()
        await log.await("suspended")
        task.resume()
        _ = try await session.dataTask(for: TransferRequest(url: server.url(), method: .post)).response
        expectEqual(task.state, .backingOff)
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
        expectEqual(server.requests.map(\.method), ["GET", "POST"])
    }

    @Test func `a redirect on a reused connection that closes is retried once`() async throws {
        let server = try TestServer { request in
            switch request.target {
            case "/first": StubResponse().endingOnNextRequest()
            case "/start": .redirect(to: "/end")
            default: StubResponse(body: "end")
            }
        }
        let session = try patientSession()
        _ = try await session.dataTask(for: TransferRequest(url: server.url("/first"))).response
        let response = try await session.dataTask(for: TransferRequest(url: server.url("/start"))).response
        expectEqual(response.data, Data("end".utf8))
        expectEqual(response.metrics.retryCount, 1)
        expectEqual(response.metrics.transactions.last?.isReusedConnection, true)
    }

    @Test func `if a redirect's target has expired before any bytes arrived, the original URL is requested again`() async throws {
        let signatures = Counter()
        let server = try TestServer { request in
            switch request.target {
            case "/start": .redirect(to: "/file?\(signatures.add())")
            case "/file?1": request.arrival == 2 ? .none(.reset) : StubResponse(403)
            case "/file?2": StubResponse(body: "well")
            default: StubResponse(500)
            }
        }
        let response = try await patientSession().dataTask(for: TransferRequest(url: server.url("/start"))).response
        expectEqual(response.data, Data("well".utf8))
        expectEqual(server.requests.map(\.target), ["/start", "/file?1", "/file?1", "/start", "/file?2"])
    }

    @Test func `a 404 from a redirect's new target, or a 410 after a redirected POST, is the result`() async throws {
        let server = try TestServer { request in
            request.path.hasPrefix("/start")
                ? .redirect(303, to: "/gone") : request.arrival % 3 == 2 ? .none(.reset) : StubResponse(410)
        }
        let session = try patientSession()
        let post = TransferRequest(url: server.url("/start"), method: .post, body: .data(Data("pay".utf8)))
        try await expectEqual(session.dataTask(for: post).response.statusCode, 410)
        expectEqual(server.requests.map(\.method), ["POST", "GET", "GET"])

        let other = try TestServer { $0.path == "/start" ? .redirect(to: "/gone") : StubResponse(404) }
        try await expectEqual(session.dataTask(for: TransferRequest(url: other.url("/start"))).response.statusCode, 404)
        expectEqual(other.requests.count, 2)
    }

    @Test func `a stream that has delivered chunks is not retried`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(
                body: StubBody([.pattern(from: 0, count: 10_000), .wait(.gate(gate)), .pattern(from: 10_000, count: 90_000)])
            )
            .cut(afterBodyBytes: 50_000, .reset)
        }
        let task = try patientSession().streamTask(for: TransferRequest(url: server.url()))
        var received = 0
        do {
            for try await chunk in task.chunks {
                received += chunk.count
                gate.open()
            }
            Issue.record("the stream ended without an error")
        } catch {
            expectEqual(error.code, .connectionLost)
        }
        #expect(received >= 10_000)
        expectEqual(server.requests.count, 1)
    }

    @Test func `a stream that has delivered no chunk is retried`() async throws {
        let server = try server(failing: 2, with: .none(.reset))
        let task = try patientSession().streamTask(for: TransferRequest(url: server.url()))
        var text = Data()
        for try await chunk in task.chunks { text += chunk }
        expectEqual(text, Data("well".utf8))
    }

    @Test func `a stream whose head has been delivered is not retried`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(body: .pattern(1_000)).bodyHeld(by: gate).cut(afterBodyBytes: 0, .reset)
        }
        let task = try patientSession().streamTask(for: TransferRequest(url: server.url()))
        try await expectEqual(task.response.statusCode, 200)
        gate.open()
        await expectEqual(errorCode { for try await _ in task.chunks {} }, .connectionLost)
        expectEqual(server.requests.count, 1)
    }

    @Test func `an upload from a file is retried from the beginning of the file`() async throws {
        let folder = try ScratchDirectory()
        try pattern(300_000).write(to: folder.url("body"))
        let server = try server(failing: 2, with: StubResponse(500))
        let request = TransferRequest(url: server.url(), method: .put, body: .file(folder.url("body")))
        let response = try await patientSession().dataTask(for: request).response
        expectEqual(response.statusCode, 200)
        expectEqual(server.requests.map { Data($0.body) }, Array(repeating: pattern(300_000), count: 3))
    }

    @Test func `tasks that fail at one server share a retry budget`() async throws {
        let server = try TestServer { _ in StubResponse(503) }
        let session = try patientSession(RetryPolicy(maximumRetries: 100, baseDelay: .zero, maximumDelay: .zero))
        let start = ContinuousClock.now
        let tasks = (0..<30).map { _ in session.dataTask(for: TransferRequest(url: server.url())) }
        // 30 attempts, ten retries of the minimum budget, and retries earned by a fifth of the requests.
        try await server.awaitRequests(40)
        for task in tasks { task.cancel() }
        for task in tasks { _ = await failure(task) }
        // Each second of run time adds one retry.
        let seconds = Int((ContinuousClock.now - start).components.seconds)
        #expect(server.requests.count <= 30 + 10 + 6 + seconds + 1)
    }
}
