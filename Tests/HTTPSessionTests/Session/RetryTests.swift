import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Four retries, a millisecond apart at most.
private let soon = RetryPolicy(baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))

private func patientSession(_ policy: RetryPolicy = soon, monitors: [any EventMonitor] = []) throws -> HTTPSessionManager {
    try HTTPSessionManager(configuration: localConfiguration { $0.retryPolicy = policy }, monitors: monitors)
}

@Suite(.timeLimit(.minutes(20))) struct RetryTests {
    /// Fails so many times as told, and then answers.
    private func server(failing times: Int, with reply: StubResponse) throws -> TestServer {
        let count = Counter()
        return try TestServer { _ in count.add() <= times ? reply : StubResponse(body: "well") }
    }

    @Test(arguments: [408, 429, 500, 502, 503, 504]) func `a server in trouble is asked again`(_ status: Int) async throws {
        let server = try server(failing: 2, with: StubResponse(status, body: "ill"))
        let response = try await patientSession().data(TransferRequest(url: server.url())).value
        #expect(response.data == Data("well".utf8))
        #expect(response.metrics.retryCount == 2)
        #expect(response.metrics.timeBackingOff > .zero)
        #expect(response.metrics.transactions.map(\.statusCode) == [status, status, 200])
        #expect(response.metrics.timeBackingOff > .zero && response.metrics.timeBackingOff <= .milliseconds(2))
        #expect(server.requests.count == 3)
    }

    @Test func `a mirror that is dead is left for the one that the first address names next`() async throws {
        let (dead, alive) = (try TestServer { _ in .none(.reset) }, try TestServer { _ in StubResponse(body: "well") })
        let asked = Counter()
        let first = try TestServer { _ in .redirect(to: (asked.add() == 1 ? dead : alive).url("/file").absoluteString) }
        let response = try await patientSession().data(TransferRequest(url: first.url())).value
        #expect(response.data == Data("well".utf8))
        #expect((first.requests.count, dead.requests.count, alive.requests.count) == (2, 2, 1))
        #expect(response.metrics.retryCount == 2)
    }

    @Test func `so is one that goes away in the middle of a file, and the file is the new one's`() async throws {
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
        _ = try await patientSession().download(TransferRequest(url: first.url()), to: .init(file)).value
        #expect(try Data(contentsOf: file) == pattern(300_000))
        #expect((first.requests.count, dying.requests.count, alive.requests.count) == (2, 3, 1))
    }

    @Test func `a task says when it tries again`() async throws {
        let server = try server(failing: 1, with: StubResponse(503, fields: ["Retry-After": "1000"]))
        let log = EventLog()
        let task = try patientSession(monitors: [log]).data(TransferRequest(url: server.url()))
        await log.await("retry unacceptable-status")
        let wait = try #require(task.timeToNextAttempt)
        #expect(wait > .seconds(900) && wait < .seconds(1001))
        task.cancel()
        _ = await failure(task)
        #expect(task.timeToNextAttempt == nil)
    }

    @Test func `what the last try brings is the result`() async throws {
        let server = try server(failing: 9, with: StubResponse(503, body: "ill"))
        let response = try await patientSession().data(TransferRequest(url: server.url())).value
        #expect(response.statusCode == 503)
        #expect(response.data == Data("ill".utf8))
        #expect(server.requests.count == 5)
    }

    @Test(arguments: [
        StubResponse.none(.reset), .none(), StubResponse(body: .pattern(100_000)).cut(afterBodyBytes: 50_000, .reset),
    ])
    func `a connection that is lost is made again, and the body is whole`(_ reply: StubResponse) async throws {
        let server = try server(failing: 3, with: reply)
        let response = try await patientSession().data(TransferRequest(url: server.url())).value
        #expect(response.data == Data("well".utf8))
        #expect(response.metrics.retryCount == 3)
    }

    @Test func `a silent server costs an attempt, not the task`() async throws {
        let server = try server(failing: 1, with: .never)
        var request = TransferRequest(url: server.url())
        request.options.requestTimeout = .milliseconds(200)
        let response = try await patientSession().data(request).value
        #expect(response.data == Data("well".utf8))
        #expect(response.metrics.transactions.map(\.statusCode) == [nil, 200])
        #expect(server.requests.count == 2)
    }

    @Test func `a server that is not there yet is found when it is`() async throws {
        let folder = try ScratchDirectory()
        let path = folder.file("socket")
        let log = EventLog()
        let configuration = localConfiguration { configuration in
            configuration.retryPolicy = RetryPolicy(
                maximumRetries: nil, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
            configuration.unixSocketPath = path
        }
        let session = try HTTPSessionManager(configuration: configuration, monitors: [log])
        let url = try #require(URL(string: "http://localhost/"))
        let task = session.data(TransferRequest(url: url, method: .post))
        await log.await("retry cannot-connect-to-host")
        let server = try TestServer(at: .unix(path)) { _ in StubResponse(body: "well") }
        // Nothing was sent before: even a POST could be tried again.
        #expect(try await task.value.data == Data("well".utf8))
        #expect(server.requests.map(\.method) == ["POST"])
    }

    @Test func `a POST that may have been executed is not repeated, one with a key is`() async throws {
        let server = try server(failing: 1, with: .none(.reset))
        let session = try patientSession()
        let post = TransferRequest(url: server.url(), method: .post, body: .data(Data("pay".utf8)))
        #expect(await failure(session.data(post))?.code == .connectionLost)
        #expect(server.requests.count == 1)

        let second = try self.server(failing: 1, with: .none(.reset))
        var keyed = TransferRequest(url: second.url(), method: .post, body: .data(Data("pay".utf8)))
        keyed.headerFields[try #require(HTTPField.Name("Idempotency-Key"))] = "1"
        #expect(try await session.data(keyed).value.statusCode == 200)
        #expect(second.requests.map(\.body) == [Array("pay".utf8), Array("pay".utf8)])
    }

    @Test func `a 503 to a POST is the answer`() async throws {
        let server = try server(failing: 1, with: StubResponse(503))
        let post = TransferRequest(url: server.url(), method: .post, body: .data(Data("pay".utf8)))
        #expect(try await patientSession().data(post).value.statusCode == 503)
        #expect(server.requests.count == 1)
    }

    @Test func `a Retry-After beyond the task's time ends it with the answer`() async throws {
        let server = try server(failing: 1, with: StubResponse(503, fields: ["Retry-After": "3600"]))
        var request = TransferRequest(url: server.url())
        request.options.resourceTimeout = .seconds(1_800)
        #expect(try await patientSession().data(request).value.statusCode == 503)
        #expect(server.requests.count == 1)
    }

    @Test func `a task that backs off can be stopped, and cancelled`() async throws {
        let server = try server(failing: 9, with: StubResponse(503, fields: ["Retry-After": "3600"]))
        let log = EventLog()
        let session = try patientSession(monitors: [log])
        let task = session.data(TransferRequest(url: server.url()))
        await log.await("retry unacceptable-status")
        #expect(task.state == .backingOff)
        task.suspend()
        await log.await("suspended")
        #expect(task.state == .suspended)
        task.cancel()
        #expect(await failure(task)?.code == .cancelled)
    }

    @Test func `stopping a task that backs off does not shorten its wait`() async throws {
        let server = try server(failing: 9, with: StubResponse(503, fields: ["Retry-After": "3600"]))
        let log = EventLog()
        let session = try patientSession(monitors: [log])
        let task = session.data(TransferRequest(url: server.url()))
        await log.await("retry unacceptable-status")
        task.suspend()
        await log.await("suspended")
        task.resume()
        _ = try await session.data(TransferRequest(url: server.url(), method: .post)).value
        #expect(task.state == .backingOff)
        task.cancel()
        #expect(await failure(task)?.code == .cancelled)
        #expect(server.requests.map(\.method) == ["GET", "POST"])
    }

    @Test func `the way from a dead connection to a new one is gone once`() async throws {
        let server = try TestServer { request in
            switch request.target {
            case "/first": StubResponse().endingOnNextRequest()
            case "/start": .redirect(to: "/end")
            default: StubResponse(body: "end")
            }
        }
        let session = try patientSession()
        _ = try await session.data(TransferRequest(url: server.url("/first"))).value
        let response = try await session.data(TransferRequest(url: server.url("/start"))).value
        #expect(response.data == Data("end".utf8))
        #expect(response.metrics.retryCount == 1)
        #expect(response.metrics.transactions.last?.isReusedConnection == true)
    }

    @Test func `an address that held for a while only is asked for anew, also where nothing had come from it`() async throws {
        let signatures = Counter()
        let server = try TestServer { request in
            switch request.target {
            case "/start": .redirect(to: "/file?\(signatures.add())")
            case "/file?1": request.arrival == 2 ? .none(.reset) : StubResponse(403)
            case "/file?2": StubResponse(body: "well")
            default: StubResponse(500)
            }
        }
        let response = try await patientSession().data(TransferRequest(url: server.url("/start"))).value
        #expect(response.data == Data("well".utf8))
        #expect(server.requests.map(\.target) == ["/start", "/file?1", "/file?1", "/start", "/file?2"])
    }

    @Test func `of an address that has just been led to, the answer is meant; and nothing is sent twice for it`() async throws {
        let server = try TestServer { request in
            request.path.hasPrefix("/start")
                ? .redirect(303, to: "/gone") : request.arrival % 3 == 2 ? .none(.reset) : StubResponse(410)
        }
        let session = try patientSession()
        let post = TransferRequest(url: server.url("/start"), method: .post, body: .data(Data("pay".utf8)))
        #expect(try await session.data(post).value.statusCode == 410)
        #expect(server.requests.map(\.method) == ["POST", "GET", "GET"])

        let other = try TestServer { $0.path == "/start" ? .redirect(to: "/gone") : StubResponse(404) }
        #expect(try await session.data(TransferRequest(url: other.url("/start"))).value.statusCode == 404)
        #expect(other.requests.count == 2)
    }

    @Test func `chunks that were handed on are not taken back`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(
                body: StubBody([.pattern(from: 0, count: 10_000), .wait(.gate(gate)), .pattern(from: 10_000, count: 90_000)])
            )
            .cut(afterBodyBytes: 50_000, .reset)
        }
        let task = try patientSession().stream(TransferRequest(url: server.url()))
        var received = 0
        do {
            for try await chunk in task.chunks {
                received += chunk.count
                gate.open()
            }
            Issue.record("the stream ended as if it were whole")
        } catch {
            #expect(error.code == .connectionLost)
        }
        #expect(received >= 10_000)
        #expect(server.requests.count == 1)
    }

    @Test func `a stream of which nothing came is asked for again`() async throws {
        let server = try server(failing: 2, with: .none(.reset))
        let task = try patientSession().stream(TransferRequest(url: server.url()))
        var text = Data()
        for try await chunk in task.chunks { text += chunk }
        #expect(text == Data("well".utf8))
    }

    @Test func `an upload from a file is sent again from its beginning`() async throws {
        let folder = try ScratchDirectory()
        try pattern(300_000).write(to: folder.url("body"))
        let server = try server(failing: 2, with: StubResponse(500))
        let request = TransferRequest(url: server.url(), method: .put, body: .file(folder.url("body")))
        let response = try await patientSession().data(request).value
        #expect(response.statusCode == 200)
        #expect(server.requests.map { Data($0.body) } == Array(repeating: pattern(300_000), count: 3))
    }

    @Test func `many tasks that fail at one server share a budget`() async throws {
        let server = try TestServer { _ in StubResponse(503) }
        let session = try patientSession(RetryPolicy(maximumRetries: 100, baseDelay: .zero, maximumDelay: .zero))
        let start = ContinuousClock.now
        let tasks = (0..<30).map { _ in session.data(TransferRequest(url: server.url())) }
        // 30 attempts, the ten retries of the floor, and some that a fifth of the requests paid for.
        try await server.awaitRequests(40)
        for task in tasks { task.cancel() }
        for task in tasks { _ = await failure(task) }
        // And one for each second that the machine took.
        let seconds = Int((ContinuousClock.now - start).components.seconds)
        #expect(server.requests.count <= 30 + 10 + 6 + seconds + 1)
    }
}
