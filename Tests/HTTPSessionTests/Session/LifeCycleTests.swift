import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionCompatibility
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@Suite(.timeLimit(.minutes(20))) struct LifeCycleTests {
    private func request(_ server: TestServer, _ path: String = "/") -> TransferRequest {
        TransferRequest(url: server.url(path))
    }

    @Test func `invalidating a session with its tasks cancels running and queued tasks`() async throws {
        let server = try TestServer { _ in .never }
        let log = EventLog()
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.maximumConnectionsPerHost = 1 }, eventMonitors: [log])
        let (running, waiting) = (session.dataTask(for: request(server)), session.dataTask(for: request(server)))
        try await server.awaitRequests(1)
        session.cancel()
        await expectEqual(failure(running)?.code, .cancelled)
        await expectEqual(failure(waiting)?.code, .cancelled)
        await expectEqual(failure(session.dataTask(for: request(server)))?.code, .sessionInvalidated)
        let events = await log.awaitInvalidation()
        expectEqual(events.count { $0 == "invalidated" }, 1)
        try await server.awaitOpenConnections(0)
    }

    @Test func `invalidating a session without canceling lets its tasks finish`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let log = EventLog()
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.maximumConnectionsPerHost = 1 }, eventMonitors: [log])
        let tasks = [session.dataTask(for: request(server)), session.dataTask(for: request(server))]
        session.cancel(afterTasks: true)
        session.cancel(afterTasks: true)
        await expectEqual(failure(session.dataTask(for: request(server)))?.code, .sessionInvalidated)
        gate.open()
        for task in tasks { try await expectEqual(task.response.data, Data("x".utf8)) }
        await expectEqual(log.awaitInvalidation().last, "invalidated")
        try await server.awaitOpenConnections(0)
    }

    @Test(arguments: [true, false])
    func `close returns after the session's tasks finished, its connections closed and its files were written`(
        cancelsTasks: Bool
    ) async throws {
        let folder = try ScratchDirectory()
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(body: "x").field("Set-Cookie", "a=1; Max-Age=3600").held(by: gate)
        }
        let log = EventLog()
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.cookies = .file(folder.url("cookies")) }, eventMonitors: [log])
        let task = session.dataTask(for: request(server))
        try await server.awaitRequests(1)
        if !cancelsTasks { gate.open() }
        session.cancel(afterTasks: !cancelsTasks)
        await session.waitUntilEnded()
        #expect((try? task.result?.get()) == nil ? cancelsTasks : !cancelsTasks)
        expectEqual(log.names.last, "invalidated")
        expectEqual(folder.names, (cancelsTasks ? [] : ["cookies"]))
        // A second call returns immediately.
        session.cancel()
        await session.waitUntilEnded()
        gate.open()
        try await server.awaitOpenConnections(0)
    }

    @Test func `a session manager that is released leaves its tasks running, and its connections close after them`() async throws
    {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        var task: TransferTask? = try localSession().dataTask(for: request(server))
        try await server.awaitRequests(1)
        gate.open()
        try await expectEqual(task?.response.data, Data("x".utf8))
        task = nil
        try await server.awaitOpenConnections(0)
    }

    @Test func `events of redirects, challenges and responses are delivered in their order`() async throws {
        let server = try TestServer { request in
            switch request.path {
            case "/": .redirect(to: "/locked")
            case "/locked" where request["authorization"] == nil: .unauthorized("Basic realm=r")
            default: StubResponse(body: "x").interim(103)
            }
        }
        let log = EventLog()
        let handlers = TransferHandlers(challenge: { _ in .useCredential(Credential(user: "u", password: "p")) })
        let session = try HTTPSessionManager(configuration: localConfiguration(), handlers: handlers, eventMonitors: [log])
        _ = try await session.dataTask(for: request(server)).response
        session.cancel(afterTasks: true)
        await expectEqual(
            log.awaitInvalidation(),
            [
                "created", "resumed", "started 1", "response 302", "transaction 302", "redirected 302", "started 2",
                "response 401",
                "transaction 401", "challenged basic", "started 3", "interim 103", "response 200", "transaction 200", "completed",
                "invalidated",
            ])
    }

    @Test func `events of suspend, resume, retry and failure are delivered in their order`() async throws {
        let gate = try Gate()
        let folder = try ScratchDirectory()
        let server = try TestServer { request in
            request.arrival == 1 ? StubResponse(body: "x").endingOnNextRequest() : StubResponse(404, body: "no").held(by: gate)
        }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        _ = try await session.dataTask(for: request(server)).response
        let task = session.downloadTask(for: request(server, "/second"), to: .init(folder.url("file")))
        try await server.awaitRequests(2)
        task.suspend()
        task.suspend()
        task.resume()
        task.resume()
        // The third one: each task was resumed when it was made.
        await log.await("resumed", times: 3)
        gate.open()
        await expectEqual(failure(task)?.code, .unacceptableStatus)
        session.cancel(afterTasks: true)
        let events = await log.awaitInvalidation()
        expectEqual(
            Array(events.drop { $0 != "completed" }.dropFirst()),
            [
                "created", "resumed", "started 1", "transaction 0", "retry connection-lost", "started 2", "suspended", "resumed",
                "response 404", "transaction 404", "failed unacceptable-status", "invalidated",
            ])
    }

    @Test func `Foundation notifications are posted when a task resumes, moves its file and completes`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [NotificationMonitor()])
        let task = session.downloadTask(for: request(server), to: .init(folder.url("file")), startsImmediately: false)
        let recorded = Locked<[String]>([])
        let end = Signal()
        @Sendable func record(_ text: String) {
            // The order varies, because Foundation delivers each message in a task of its own.
            let count = recorded.withLock { recorded in
                recorded.append(text)
                return recorded.count
            }
            if count == 3 { end.fire() }
        }
        let center = NotificationCenter.default
        let tokens = [
            center.addObserver(of: task, for: .taskDidResume) { _ in record("resume") },
            center.addObserver(of: task, for: .taskDidMoveFile) { record("moved \($0.file.lastPathComponent)") },
            center.addObserver(of: task, for: .taskDidComplete) { message in
                if case .success = message.result { record("complete") } else { record("complete with error") }
            },
        ]
        task.resume()
        await end.wait()
        expectEqual(Set(recorded.withLock { $0 }), ["resume", "moved file", "complete"])
        for token in tokens { center.removeObserver(token) }
    }

    @Test(arguments: [true, false])
    func `Foundation notifications of a session's invalidation and tasks are posted if the session has a NotificationMonitor`(
        _ isWanted: Bool
    ) async throws {
        let server = try TestServer { _ in .never }
        let recorded = Locked<[String]>([])
        let log = EventLog()
        let (stream, posted) = AsyncStream.makeStream(of: Void.self)
        var notifications = stream.makeAsyncIterator()
        var session: HTTPSessionManager? = try HTTPSessionManager(
            configuration: localConfiguration(), eventMonitors: isWanted ? [log, NotificationMonitor()] : [log])
        let center = NotificationCenter.default
        let task = try #require(session?.dataTask(for: request(server)))
        let tokens = [
            center.addObserver(of: task, for: .taskDidComplete) { _ in
                recorded.withLock { $0.append("task") }
                posted.yield()
            },
            center.addObserver(of: try #require(session), for: .sessionDidInvalidate) { _ in
                recorded.withLock { $0.append("session") }
                posted.yield()
            },
        ]
        try await server.awaitRequests(1)
        session?.cancel()
        session?.cancel()
        weak var gone: HTTPSessionManager?
        gone = session
        // The session needs no owner for that.
        session = nil
        _ = await log.awaitInvalidation()
        // Foundation delivers each notification in a task of its own.
        for _ in 0..<(isWanted ? 2 : 0) { _ = await notifications.next() }
        expectEqual(recorded.withLock { $0.sorted() }, (isWanted ? ["session", "task"] : []))
        for token in tokens { center.removeObserver(token) }
        while gone != nil { await Task.yield() }
    }

    @Test func `the shared session is one object and cannot be invalidated`() async throws {
        let session = try HTTPSessionManager.shared
        #expect(try HTTPSessionManager.shared === session)
        session.cancel()
        session.cancel()
        await session.waitUntilEnded()
        let server = try TestServer { _ in StubResponse() }
        // The shared session refuses insecure http like any other; it is not invalidated.
        await expectEqual(failure(session.dataTask(for: request(server)))?.code, .insecureConnectionRefused)
        try expectEmpty(session.store.cookies)
    }

    @Test func `an ephemeral session writes nothing to disk`() async throws {
        // The exit test has its own process, because environment and working directory belong to the process.
        await #expect(processExitsWith: .success) {
            let folder = try ScratchDirectory()
            let path = folder.path
            for name in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] { setenv(name, path, 1) }
            try #require(chdir(path) == 0)
            let certificate = try SelfSignedCertificate(names: ["named.example"])
            let server = try TestServer(tls: certificate.serverTLS) { request in
                StubResponse(body: .text(request["cookie"] ?? "-")).field("Set-Cookie", "a=1; Max-Age=1000")
                    .field("Strict-Transport-Security", "max-age=1000")
            }
            let policy = try SecurityPolicy.trusting(certificate)
            for keptBefore in ["-", "-"] {
                let log = EventLog()
                var configuration = SessionConfiguration.ephemeral
                configuration.securityPolicy = policy
                configuration.proxy = .none
                configuration.hostOverrides = [.init(host: "named.example", port: Int(server.port), addresses: ["127.0.0.1"])]
                let session = try HTTPSessionManager(configuration: configuration, eventMonitors: [log])
                let url = try #require(URL(string: "https://named.example:\(server.port)/"))
                for cookie in [keptBefore, "a=1"] {
                    try #require(try await session.dataTask(for: TransferRequest(url: url)).response.data == Data(cookie.utf8))
                }
                session.cancel(afterTasks: true)
                _ = await log.awaitInvalidation()
            }
            try #require(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
        }
    }

    @Test func `metrics have one transaction with times and sizes for each redirect and response`() async throws {
        let server = try TestServer { request in
            request.path == "/" ? .redirect(to: "/next") : StubResponse(body: .pattern(10_000)).delayed(.milliseconds(20))
        }
        let session = try localSession()
        let before = Date()
        let metrics = try await session.dataTask(
            for: TransferRequest(url: server.url("/?secret=1"), method: .put, body: .data(Data(count: 5_000)))
        ).response.metrics
        expectEqual(metrics.redirectCount, 1)
        expectEqual(metrics.retryCount, 0)
        #expect(metrics.taskInterval.start >= before && metrics.taskInterval.end <= Date())
        expectEqual(metrics.transactions.count, 2)
        let (first, second) = (metrics.transactions[0], metrics.transactions[1])
        expectEqual(first.url, server.url("/").absoluteString)
        expectEqual(first.method, "PUT")
        expectEqual(second.method, "PUT")
        expectEqual(first.statusCode, 302)
        expectEqual(second.statusCode, 200)
        #expect(!first.isReusedConnection && second.isReusedConnection)
        #expect(first.connectEnd != nil && second.connectEnd == nil)
        expectEqual(second.countOfResponseBodyBytesReceived, 10_000)
        expectEqual(second.countOfRequestBodyBytesSent, 5_000)
        #expect(second.countOfRequestHeaderBytesSent > 50 && second.countOfResponseHeaderBytesReceived > 30)
        expectEqual(second.networkProtocolName, "http/1.1")
        #expect(second.remoteAddress == "127.0.0.1" && second.remotePort == Int(server.port))
        #expect(second.localAddress == "127.0.0.1" && second.localPort != nil)
        #expect(second.negotiatedTLSProtocolVersion == nil && second.secureConnectionStart == nil && !second.isProxyConnection)
        let (start, answer, end) = (
            try #require(second.requestStart), try #require(second.responseStart), try #require(second.responseEnd)
        )
        #expect(second.fetchStart <= start && start <= answer && answer <= end)
        #expect(answer.timeIntervalSince(start) >= 0.015)
        #expect(second.fetchStart >= first.fetchStart)
    }

    @Test func `metrics of a TLS connection have its version, cipher suite and handshake times`() async throws {
        let certificate = try SelfSignedCertificate()
        let server = try TestServer(tls: certificate.serverTLS) { _ in StubResponse(body: "x") }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try HTTPSessionManager(configuration: localConfiguration { $0.securityPolicy = policy })
        let transaction = try #require(try await session.dataTask(for: request(server)).response.metrics.transactions.first)
        expectEqual(transaction.negotiatedTLSProtocolVersion, "TLSv1.3")
        #expect(transaction.negotiatedTLSCipherSuite?.hasPrefix("TLS_") == true)
        let (start, end) = (try #require(transaction.secureConnectionStart), try #require(transaction.secureConnectionEnd))
        #expect(start <= end)
    }

    @Test func `a failed task has a transaction in its metrics and a URL without query in its error`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(1_000)).cut(afterBodyBytes: 10) }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        let error = await failure(session.dataTask(for: TransferRequest(url: server.url("/?password=x"), method: .delete)))
        expectEqual(error?.context.method, "DELETE")
        expectEqual(error?.context.url, server.url("/").absoluteString)
        expectEqual(error?.context.statusCode, 200)
        session.cancel(afterTasks: true)
        #expect(await log.awaitInvalidation().contains("transaction 200"))
    }

    @Test func `a task that was never resumed does not keep its session alive`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let log = EventLog()
        var session: HTTPSessionManager? = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        _ = try await session?.dataTask(for: request(server)).response
        _ = session?.dataTask(for: request(server), startsImmediately: false)
        session = nil
        _ = await log.awaitInvalidation()
        try await server.awaitOpenConnections(0)
    }

    @Test func `the task's completion is posted after its callbacks`() async throws {
        let server = try TestServer { _ in StubResponse(fields: ["Content-Type": "application/json"], body: "{}") }
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [NotificationMonitor()])
        for _ in 0..<100 {
            let (recorded, end) = (Locked<[String]>([]), Signal())
            let task = session.dataTask(for: TransferRequest(url: server.url()), startsImmediately: false)
            let token = NotificationCenter.default.addObserver(of: task, for: .taskDidComplete) { _ in
                recorded.withLock { $0.append("posted") }
                end.fire()
            }
            session.respond(
                to: task, success: { _, _ in recorded.withLock { $0.append("called") } },
                failure: { _, error in recorded.withLock { $0.append("\(error)") } })
            task.resume()
            await end.wait()
            expectEqual(recorded.withLock { $0 }, ["called", "posted"])
            NotificationCenter.default.removeObserver(token)
        }
    }
}
