import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Suspending, resuming and canceling a task in every state.
@Suite(.timeLimit(.minutes(20))) struct ControlTests {
    private func request(_ server: TestServer, _ path: String = "/") -> TransferRequest {
        TransferRequest(url: server.url(path))
    }

    @Test func `a task that has not been resumed sends no request`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession()
        let task = session.dataTask(for: request(server), startsImmediately: false)
        expectEqual(task.state, .suspended)
        _ = try await session.dataTask(for: request(server, "/other")).response
        expectEqual(server.requests.map(\.path), ["/other"])
        task.resume()
        task.resume()
        try await expectEqual(task.response.data, Data("x".utf8))
        expectEqual(task.state, .finished)
        expectEqual(server.requests.count, 2)
    }

    @Test func `a task canceled before its first resume sends nothing`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let session = try localSession()
        let task = session.dataTask(for: request(server), startsImmediately: false)
        task.cancel()
        task.resume()
        await expectEqual(failure(task)?.code, .cancelled)
        expectEqual(server.seen.connections, 0)
    }

    @Test func `a task suspended in the queue gives its connection to the next task`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in
            request.path == "/first" ? StubResponse().held(by: gate) : StubResponse(body: "x")
        }
        let session = try localSession { $0.maximumConnectionsPerHost = 1 }
        let first = session.dataTask(for: request(server, "/first"))
        try await server.awaitRequests(1)
        let second = session.dataTask(for: request(server, "/second"))
        let third = session.dataTask(for: request(server, "/third"))
        // After suspend, resume and suspend the task is in the queue once, then not at all.
        second.suspend()
        second.resume()
        second.suspend()
        gate.open()
        _ = try await third.response
        _ = try await session.dataTask(for: request(server, "/fourth")).response
        expectEqual(server.requests.map(\.path), ["/first", "/third", "/fourth"])
        expectEqual(second.state, .suspended)
        second.resume()
        _ = try await second.response
        _ = try await first.response
        expectEqual(server.requests.last?.path, "/second")
    }

    @Test func `a task suspended while it waits for the response does not finish until it is resumed`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in
            request.path == "/other" ? StubResponse().delayed(.milliseconds(200)) : StubResponse(body: "late").held(by: gate)
        }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        let task = session.dataTask(for: request(server))
        try await server.awaitRequests(1)
        task.suspend()
        await log.await("suspended")
        gate.open()
        _ = try await session.dataTask(for: request(server, "/other")).response
        expectEqual(task.state, .suspended)
        expectNil(task.result)
        task.resume()
        try await expectEqual(task.response.data, Data("late".utf8))
    }

    @Test func `a task suspended in the middle of a body continues where it stopped`() async throws {
        let gate = try Gate()
        let server = try TestServer { request in
            guard request.path == "/" else { return StubResponse().delayed(.milliseconds(100)) }
            return StubResponse(
                body: StubBody([.pattern(from: 0, count: 50_000), .wait(.gate(gate)), .pattern(from: 50_000, count: 5_000_000)]))
        }
        let session = try localSession()
        let task = session.dataTask(for: request(server))
        await task.awaitProgress { $0.bytesReceived > 0 }
        task.suspend()
        _ = try await session.dataTask(for: request(server, "/other")).response
        expectEqual(task.state, .suspended)
        let before = task.currentProgress.bytesReceived
        gate.open()
        _ = try await session.dataTask(for: request(server, "/other")).response
        expectEqual(task.currentProgress.bytesReceived, before)
        task.resume()
        try await expectEqual(task.response.data, pattern(5_050_000))
    }

    @Test func `an upload that is suspended sends nothing more and continues when it is resumed`() async throws {
        let gate = try Gate()
        var configuration = TestServer.Configuration()
        configuration.receiveBuffer = 4_096
        configuration.onHead = { $0.path == "/" ? .readBody(after: [.gate(gate)]) : .readBody() }
        let server = try TestServer(configuration: configuration) { StubResponse(body: "\($0.bodyLength)") }
        let session = try localSession()
        let task = session.dataTask(for: TransferRequest(url: server.url(), method: .post, body: .data(Data(count: 32 << 20))))
        await task.awaitProgress { $0.bytesSent > 0 }
        task.suspend()
        gate.open()
        let other = try TestServer { _ in StubResponse().delayed(.milliseconds(200)) }
        _ = try await session.dataTask(for: request(other)).response
        expectEmpty(server.requests)
        task.resume()
        try await expectEqual(task.response.data, Data("\(32 << 20)".utf8))
    }

    @Test func `a download suspended and then canceled leaves no partial file`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { _ in
            StubResponse(body: StubBody([.pattern(from: 0, count: 500_000), .wait(.forever)])).chunked()
        }
        let task = try localSession().downloadTask(for: request(server), to: .init(folder.url("file")))
        await task.awaitProgress { $0.bytesReceived > 0 }
        task.suspend()
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
        expectEqual(folder.names, [])
        try await server.awaitOpenConnections(0)
    }

    @Test func `a task canceled in the queue is removed from it`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse().held(by: gate) }
        let session = try localSession { $0.maximumConnectionsPerHost = 1 }
        let first = session.dataTask(for: request(server, "/first"))
        try await server.awaitRequests(1)
        let second = session.dataTask(for: request(server, "/second"))
        second.cancel()
        await expectEqual(failure(second)?.code, .cancelled)
        gate.open()
        _ = try await first.response
        _ = try await session.dataTask(for: request(server, "/third")).response
        expectEqual(server.requests.map(\.path), ["/first", "/third"])
    }

    @Test func `cancel, suspend and resume have no effect on a finished task`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let task = try localSession().dataTask(for: request(server))
        _ = try await task.response
        task.cancel()
        task.suspend()
        task.resume()
        try await expectEqual(task.response.data, Data("x".utf8))
        expectEqual(task.state, .finished)
    }

    @Test func `the resource timeout ends a suspended task`() async throws {
        let server = try TestServer { _ in .never }
        let task = try localSession { $0.resourceTimeout = .milliseconds(300) }.dataTask(for: request(server))
        try await server.awaitRequests(1)
        task.suspend()
        await expectEqual(failure(task)?.code, .timedOut)
    }

    @Test func `canceling at any moment finishes the task exactly once`() async throws {
        let server = try TestServer { request in
            switch Int(request.query ?? "") ?? 0 {
            case 0: StubResponse(body: .pattern(200_000))
            case 1: .redirect(to: "/?0")
            case 2: StubResponse(body: .pattern(20_000)).delayed(.milliseconds(2))
            default: StubResponse(500, body: "x").chunked()
            }
        }
        let session = try localSession()
        let folder = try ScratchDirectory()
        let ends = Counter()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<300 {
                group.addTask {
                    let request = request(server, "/?\(number % 4)")
                    let task =
                        switch number % 3 {
                        case 0: session.dataTask(for: request)
                        case 1: session.downloadTask(for: request, to: .init(folder.url("\(number)"), existingFile: .replace))
                        default: session.streamTask(for: request)
                        }
                    for _ in 0..<number % 7 { await Task.yield() }
                    if number % 5 == 0 { task.suspend() }
                    if number % 2 == 0 { await task.awaitProgress { $0.bytesReceived > 0 || number % 5 == 0 } }
                    task.cancel()
                    let error = await failure(task)
                    #expect(error == nil || error?.code == .cancelled || error?.code == .unacceptableStatus, "\(number)")
                    ends.add()
                }
            }
        }
        expectEqual(ends.count, 300)
        #expect(folder.names.allSatisfy { !$0.hasPrefix(".") })
        // The session still works.
        try await expectEqual(session.dataTask(for: request(server, "/?0")).response.data, pattern(200_000))
    }

    @Test func `suspending before the connection is established leaves the request unsent and stops the connect timeout`()
        async throws
    {
        let certificate = try SelfSignedCertificate()
        let held = Locked<TransferTask?>(nil)
        var configuration = TestServer.Configuration()
        configuration.arrival = { number in
            guard number == 1 else { return .serve }
            held.withLock { $0 }?.suspend()
            return .respond(.never)
        }
        let server = try TestServer(tls: certificate.serverTLS, configuration: configuration) { _ in StubResponse(body: "x") }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession {
            $0.securityPolicy = policy
            $0.connectTimeout = .seconds(3)
        }
        let task = session.dataTask(for: request(server), startsImmediately: false)
        held.withLock { $0 = task }
        task.resume()
        // The handshake gets no answer; the connection closes when its timeout ends.
        try await server.awaitSeen { $0.connections == 1 && $0.openConnections == 0 }
        expectEqual(task.state, .suspended)
        expectNil(task.result)
        task.resume()
        try await expectEqual(task.response.data, Data("x".utf8))
    }

    @Test func `suspending while the connection is established leaves the request unsent`() async throws {
        let gate = try Gate()
        let certificate = try SelfSignedCertificate()
        var configuration = TestServer.Configuration()
        configuration.arrival = { _ in
            // The handshake begins after the task is suspended.
            while !gate.isOpen { usleep(1_000) }
            return .serve
        }
        let server = try TestServer(tls: certificate.serverTLS, configuration: configuration) { _ in StubResponse(body: "x") }
        let policy = try SecurityPolicy.trusting(certificate)
        let log = EventLog()
        let session = try HTTPSessionManager(
            configuration: localConfiguration { $0.securityPolicy = policy }, eventMonitors: [log])
        let task = session.dataTask(for: request(server))
        try await server.awaitSeen { $0.connections == 1 }
        task.suspend()
        await log.await("suspended")
        gate.open()
        try await server.awaitSeen { $0.handshakes == 1 && $0.openConnections == 0 }
        expectEmpty(server.requests)
        expectEqual(task.state, .suspended)
        task.resume()
        try await expectEqual(task.response.data, Data("x".utf8))
        expectEqual(server.requests.count, 1)
    }

    /// A frame of HTTP/2 (RFC 9113 section 4.1).
    private static func frame(_ type: UInt8, _ flags: UInt8 = 0, stream: UInt8 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
    }

    /// libcurl 7.88 buffers three kinds of data while a transfer is paused. This test sends four kinds, which failed with
    /// CURLE_OUT_OF_MEMORY.
    @Test func `an interim response, head and body received over HTTP/2 while the task is suspended become its response`()
        async throws
    {
        let certificate = try SelfSignedCertificate(names: ["127.0.0.1"])
        var tls = certificate.serverTLS
        tls.applicationProtocol = "h2"
        let gate = try Gate()
        // `:status` as an index into HPACK's static table (RFC 7541 appendix A): 8 is `:status 200`. Another status is a literal
        // value with the name of index 8.
        let (ok, interim): ([UInt8], [UInt8]) = ([0x88], [0x08, 3] + Array("103".utf8))
        let frames = [
            Self.frame(1, 4, stream: 1, interim), Self.frame(1, 4, stream: 1, ok),
            Self.frame(0, 1, stream: 1, Array("first".utf8)),
            Self.frame(1, 4, stream: 3, ok), Self.frame(0, 1, stream: 3, Array("second".utf8)),
        ]
        let server = try TestServer(tls: tls) { _ in
            .raw(
                StubBody([
                    .bytes(Self.frame(4) + Self.frame(4, 1)), .wait(.gate(gate)), .bytes(frames.flatMap { $0 }), .wait(.forever),
                ]))
        }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession { $0.securityPolicy = policy }
        let put = TransferRequest(url: server.url(), method: .put, body: .data(Data("body".utf8)))
        let first = session.dataTask(for: put)
        await first.awaitProgress { $0.bytesSent == 4 }
        first.suspend()
        let second = session.dataTask(for: put)
        await second.awaitProgress { $0.bytesSent == 4 }
        gate.open()
        try await expectEqual(second.response.data, Data("second".utf8))
        first.resume()
        let response = try await first.response
        expectEqual(response.data, Data("first".utf8))
        #expect(response.metrics.retryCount == 0 && server.seen.connections == 1)
    }

    @Test func `a response without a body received while the task is suspended finishes the task after it is resumed`()
        async throws
    {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(204).held(by: gate) }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        let task = session.dataTask(
            for: TransferRequest(url: server.url(), method: .put, body: .data(Data("body".utf8))))
        try await server.awaitRequests(1)
        task.suspend()
        await log.await("suspended")
        gate.open()
        await log.await("response 204")
        #expect(task.state == .suspended && task.result == nil)
        task.resume()
        try await expectEqual(task.response.statusCode, 204)
    }
}
