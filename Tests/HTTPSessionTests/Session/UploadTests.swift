import EventLoop
import Expectations
import Foundation
import Glibc
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

private struct Broken: Error {}

/// A stream body of these chunks, which can be made several times.
private func stream(_ chunks: [Data], length: Int64? = nil, failing: Bool = false, made: Counter = Counter()) -> RequestBody {
    .stream(length: length) {
        made.add()
        return AsyncThrowingStream { continuation in
            for chunk in chunks { continuation.yield(chunk) }
            continuation.finish(throwing: failing ? Broken() : nil)
        }
    }
}

@Suite(.timeLimit(.minutes(20))) struct UploadTests {
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory() }

    private func echo() throws -> TestServer {
        try TestServer {
            StubResponse(body: "\($0.method) \($0["content-length"] ?? $0["transfer-encoding"] ?? "-") \($0.bodyLength)")
        }
    }

    private func post(_ body: RequestBody, to server: TestServer, _ path: String = "/") -> TransferRequest {
        TransferRequest(url: server.url(path), method: .post, body: body)
    }

    @Test func `upload bodies from memory, files and streams arrive complete`() async throws {
        let server = try echo()
        let session = try localSession()
        let bytes = pattern(900_000)
        try bytes.write(to: folder.url("body"))
        let pieces = stride(from: 0, to: bytes.count, by: 70_001).map { bytes[$0..<min(bytes.count, $0 + 70_001)] }
        for (body, framing) in [
            (RequestBody.data(bytes), "900000"), (.file(folder.url("body")), "900000"),
            (stream(pieces, length: 900_000), "900000"),
            (stream(pieces), "chunked"),
        ] {
            let task = session.dataTask(for: post(body, to: server))
            try await expectEqual(task.response.data, Data("POST \(framing) 900000".utf8))
            expectEqual(task.kind, .upload)
            expectEqual(task.currentProgress.bytesSent, 900_000)
        }
        #expect(server.requests.allSatisfy { Data($0.body) == bytes })
    }

    @Test func `a throttled multipart form is sent in packets and arrives complete`() async throws {
        let server = try echo()
        let session = try localSession()
        try pattern(5_000).write(to: folder.url("file"))
        var form = MultipartForm()
        try form.appendPart(fileURL: folder.url("file"), name: "file")
        try form.appendPart(form: pattern(5_000), name: "data")
        let length = try #require(form.contentLength)
        form.throttleBandwidth(packetSize: 1_000, delay: .milliseconds(20))
        let start = ContinuousClock.now
        let task = session.dataTask(for: post(.multipart(form), to: server))
        try await expectEqual(task.response.data, Data("POST \(length) \(length)".utf8))
        // The first packet is sent immediately, and there are more than ten.
        #expect(ContinuousClock.now - start >= .milliseconds(200))
        expectEqual(task.currentProgress.bytesSent, length)
        // A pause of the throttle does not count as a stall of the server, and stops while the task is suspended.
        form.throttleBandwidth(packetSize: 6_000, delay: .milliseconds(300))
        let held = session.dataTask(for: post(.multipart(form), to: server))
        await held.awaitProgress { $0.bytesSent > 0 }
        held.suspend()
        held.resume()
        try await expectEqual(held.response.data, Data("POST \(length) \(length)".utf8))
        expectEqual(server.requests.count, 2)
    }

    @Test func `empty upload bodies of every kind are sent with their framing`() async throws {
        let server = try echo()
        let session = try localSession()
        try Data().write(to: folder.url("empty"))
        for body in [RequestBody.data(Data()), .file(folder.url("empty")), stream([], length: 0)] {
            try await expectEqual(session.dataTask(for: post(body, to: server)).response.data, Data("POST 0 0".utf8))
        }
        try await expectEqual(
            session.dataTask(for: post(stream([Data()]), to: server)).response.data, Data("POST chunked 0".utf8))
        try await expectEqual(session.dataTask(for: post(.none, to: server)).response.data, Data("POST 0 0".utf8))
    }

    @Test func `PUT, PATCH, DELETE, GET and QUERY send their body`() async throws {
        let server = try echo()
        let session = try localSession()
        for method: HTTPRequest.Method in [.put, .patch, .delete, .get, HTTPRequest.Method("QUERY")!] {
            let request = TransferRequest(url: server.url(), method: method, body: .data(Data("abc".utf8)))
            try await expectEqual(session.dataTask(for: request).response.data, Data("\(method.rawValue) 3 3".utf8))
        }
    }

    @Test func `an upload from a missing file, a directory or a device fails before anything is sent`() async throws {
        let server = try echo()
        let session = try localSession()
        await expectEqual(failure(session.dataTask(for: post(.file(folder.url("none")), to: server)))?.code, .cannotReadFile)
        await expectEqual(
            failure(session.dataTask(for: post(.file(URL(fileURLWithPath: folder.path)), to: server)))?.code,
            .cannotReadFile)
        await expectEqual(
            failure(session.dataTask(for: post(.file(URL(fileURLWithPath: "/dev/zero")), to: server)))?.code,
            .cannotReadFile)
        await expectEqual(
            failure(session.dataTask(for: post(.file(try #require(URL(string: "http://a/b"))), to: server)))?.code,
            .cannotReadFile
        )
        expectEqual(server.seen.connections, 0)
    }

    @Test(arguments: ["vanishes", "grows", "shrinks", "becomes a pipe"])
    func `an upload from a file that changes before it is sent fails`(
        _ change: String
    ) async throws {
        let server = try echo()
        let file = folder.url("body")
        try pattern(1_000).write(to: file)
        let task = try localSession().dataTask(for: post(.file(file), to: server), startsImmediately: false)
        switch change {
        case "vanishes": try FileManager.default.removeItem(at: file)
        case "grows": try pattern(2_000).write(to: file)
        case "becomes a pipe":
            unlink(file.path)
            expectEqual(mkfifo(file.path, 0o600), 0)
        default: try pattern(500).write(to: file)
        }
        task.resume()
        await expectEqual(failure(task)?.code, (change == "vanishes" ? .cannotReadFile : .fileChanged))
        expectEmpty(server.requests)
    }

    @Test(arguments: ["grows", "shrinks", "is written to"])
    func `an upload from a file that changes while it is sent fails as fileChanged`(_ change: String)
        async throws
    {
        let gate = try Gate()
        var configuration = TestServer.Configuration()
        configuration.receiveBuffer = 4_096
        configuration.onHead = { _ in .readBody(after: [.gate(gate)]) }
        let server = try TestServer(configuration: configuration) { _ in StubResponse() }
        let file = folder.url("body")
        try Data(count: 32 << 20).write(to: file)
        let task = try localSession().dataTask(for: post(.file(file), to: server))
        await task.awaitProgress { $0.bytesSent > 0 }
        let handle = try FileHandle(forWritingTo: file)
        switch change {
        case "grows":
            try handle.seekToEnd()
            try handle.write(contentsOf: Data([1]))
        case "shrinks": try handle.truncate(atOffset: 5_000_000)
        default: try handle.write(contentsOf: Data([1]))
        }
        try handle.close()
        gate.open()
        await expectEqual(failure(task)?.code, .fileChanged)
        expectEmpty(server.requests)
    }

    @Test func `an upload from a file that is deleted while it is sent arrives complete`() async throws {
        let gate = try Gate()
        var configuration = TestServer.Configuration()
        configuration.onHead = { _ in .readBody(after: [.gate(gate)]) }
        let server = try TestServer(configuration: configuration) { StubResponse(body: "\($0.bodyLength)") }
        try Data(count: 16 << 20).write(to: folder.url("body"))
        let task = try localSession().dataTask(for: post(.file(folder.url("body")), to: server))
        await task.awaitProgress { $0.bytesSent > 0 }
        try FileManager.default.removeItem(at: folder.url("body"))
        gate.open()
        try await expectEqual(task.response.data, Data("\(16 << 20)".utf8))
    }

    @Test func `a body stream that throws fails the task with its error`() async throws {
        let server = try echo()
        let error = await failure(try localSession().dataTask(for: post(stream([Data("abc".utf8)], failing: true), to: server)))
        expectEqual(error?.code, .cannotReadFile)
        #expect(error?.underlying is Broken)
        expectEmpty(server.requests)
    }

    @Test func `a body stream that cannot be made fails the task with its error`() async throws {
        let server = try echo()
        let error = await failure(try localSession().dataTask(for: post(.stream(length: nil) { throw Broken() }, to: server)))
        expectEqual(error?.code, .cannotReadFile)
        #expect(error?.underlying is Broken)
    }

    @Test(arguments: [[10], [10, 5], [3, 3], [7, 1]])
    func `a body stream that does not match its declared length fails as fileChanged`(_ sizes: [Int])
        async throws
    {
        let server = try echo()
        let chunks = sizes.map { Data(count: $0) }
        let error = await failure(
            try localSession().dataTask(
                for: post(stream(chunks, length: sizes == [10] ? 9 : sizes == [10, 5] ? 10 : 7), to: server)))
        expectEqual(error?.code, .fileChanged)
        expectEmpty(server.requests)
    }

    @Test func `a slow server applies back-pressure to a body stream`() async throws {
        let gate = try Gate()
        var configuration = TestServer.Configuration()
        configuration.receiveBuffer = 4_096
        configuration.onHead = { _ in .readBody(after: [.gate(gate)]) }
        let server = try TestServer(configuration: configuration) { StubResponse(body: "\($0.bodyLength)") }
        let made = Counter()
        let body = RequestBody.stream(length: nil) {
            AsyncThrowingStream { made.add() > 512 ? nil : Data(count: 128 << 10) }
        }
        let session = try localSession()
        let task = session.dataTask(for: post(body, to: server))
        await task.awaitProgress { $0.bytesSent > 0 }
        // Without back-pressure, the stream would be exhausted by the time another request completes.
        let other = try TestServer { _ in StubResponse().delayed(.milliseconds(200)) }
        _ = try await session.dataTask(for: TransferRequest(url: other.url())).response
        #expect(made.count < 200)
        gate.open()
        try await expectEqual(task.response.data, Data("\(64 << 20)".utf8))
    }

    @Test func `canceling an upload terminates its body stream`() async throws {
        let server = try echo()
        let hasEnded = Signal()
        let body = RequestBody.stream(length: nil) {
            AsyncThrowingStream { continuation in
                continuation.yield(Data("abc".utf8))
                continuation.onTermination = { _ in hasEnded.fire() }
            }
        }
        let task = try localSession().dataTask(for: post(body, to: server))
        await task.awaitProgress { $0.bytesSent == 3 }
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
        await hasEnded.wait()
    }

    @Test(arguments: [307, 308]) func `a redirect with 307 or 308 sends the body again`(_ status: Int) async throws {
        let server = try TestServer { request in
            request.path == "/" ? .redirect(status, to: "/next") : StubResponse(body: "\(request.method) \(request.text)")
        }
        let session = try localSession()
        try Data("from a file".utf8).write(to: folder.url("body"))
        let made = Counter()
        for (body, text) in [
            (RequestBody.data(Data("memory".utf8)), "memory"), (.file(folder.url("body")), "from a file"),
            (stream([Data("a ".utf8), Data("stream".utf8)], made: made), "a stream"),
        ] {
            try await expectEqual(session.dataTask(for: post(body, to: server)).response.data, Data("POST \(text)".utf8))
        }
        expectEqual(made.count, 2)
        expectEqual(server.requests.map(\.text), ["memory", "memory", "from a file", "from a file", "a stream", "a stream"])
    }

    @Test(arguments: [301, 302, 303]) func `a redirect with 301, 302 or 303 changes POST to GET and drops the body`(_ status: Int)
        async throws
    {
        let server = try TestServer { request in
            let type = request["content-type"] ?? "-"
            return request.path == "/"
                ? .redirect(status, to: "/next") : StubResponse(body: "\(request.method) \(type) \(request.text)")
        }
        var request = post(.data(Data("secret".utf8)), to: server)
        request.headerFields[.contentType] = "text/plain"
        try await expectEqual(localSession().dataTask(for: request).response.data, Data("GET - ".utf8))
    }

    @Test func `a response sent before the upload is complete is the task's response`() async throws {
        var configuration = TestServer.Configuration()
        configuration.onHead = { _ in .refuse(StubResponse(413, body: "too much")) }
        let server = try TestServer(configuration: configuration) { _ in StubResponse() }
        let response = try await localSession().dataTask(for: post(.data(Data(count: 8 << 20)), to: server)).response
        expectEqual(response.statusCode, 413)
        expectEqual(response.data, Data("too much".utf8))
    }

    @Test func `a final response is received while the body stream is idle`() async throws {
        var configuration = TestServer.Configuration()
        configuration.onHead = { _ in .refuse(StubResponse(413, body: "too much")) }
        let server = try TestServer(configuration: configuration) { _ in StubResponse() }
        let never = AsyncThrowingStream<Data, any Error> { _ in }
        let task = try localSession().dataTask(
            for: TransferRequest(url: server.url(), method: .post, body: .stream(length: nil, make: { never })))
        let response = try await task.response
        expectEqual(response.statusCode, 413)
        expectEqual(response.data, Data("too much".utf8))
    }

    @Test func `a success sent before the upload is complete is no success if the connection ends`() async throws {
        var configuration = TestServer.Configuration()
        configuration.onHead = { _ in .refuse(StubResponse(201, body: "stored")) }
        let server = try TestServer(configuration: configuration) { _ in StubResponse() }
        let size: Int64 = 32 << 20
        let policy = RetryPolicy(maximumRetries: nil, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        let session = try localSession { $0.retryPolicy = policy }
        let chunks = [Data](repeating: Data(count: 1 << 20), count: 32)
        for (method, body, attempts) in [
            (HTTPRequest.Method.put, RequestBody.data(Data(count: Int(size))), 2), (.put, stream(chunks), 2),
            (.post, stream(chunks, length: size), 1),
        ] {
            let before = server.requests.count
            let task = session.dataTask(for: TransferRequest(url: server.url(), method: method, body: body))
            let error = await failure(task)
            expectEqual(error?.code, .badServerResponse)
            expectEqual(error?.context.statusCode, 201)
            let beginning = "the server answered 201 Created without the complete request body: it received at most "
            #expect(error?.reason.hasPrefix(beginning) == true, "\(error?.reason ?? "")")
            expectEqual(server.requests.count - before, attempts, "\(method)")
            #expect(task.currentProgress.bytesSent < size)
        }
    }

    @Test func `a success whose connection is reset during the upload is no success`() async throws {
        let listener = try LoopbackListener { client, _ in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            guard recv(client, &buffer, buffer.count, 0) > 0 else { return }
            // Closing the socket resets the connection, because it has unread bytes.
            LoopbackListener.respond("stored", to: client)
        }
        let request = TransferRequest(url: try listener.url(), method: .put, body: .data(Data(count: 32 << 20)))
        let policy = RetryPolicy(maximumRetries: 5, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        let error = await failure(try localSession { $0.retryPolicy = policy }.dataTask(for: request))
        // The reset may destroy the response before it is read.
        #expect([.badServerResponse, .connectionLost].contains(error?.code), "\(String(describing: error))")
    }

    @Test func `a success sent before the upload is complete stands if the server reads the complete body`() async throws {
        let size = 8 << 20
        let listener = try LoopbackListener { client, _ in
            var buffer = [UInt8](repeating: 0, count: 65_536)
            var received = recv(client, &buffer, buffer.count, 0)
            LoopbackListener.respond("early", to: client)
            while received < size, case let count = recv(client, &buffer, buffer.count, 0), count > 0 { received += count }
            _ = recv(client, &buffer, buffer.count, 0)
        }
        let task = try localSession().dataTask(
            for: TransferRequest(url: listener.url(), method: .put, body: .data(Data(count: size))))
        try await expectEqual(task.response.data, Data("early".utf8))
        expectEqual(task.currentProgress.bytesSent, Int64(size))
    }

    @Test func `a multipart form longer than can be sent is refused as invalidRequest`() async throws {
        let server = try TestServer { _ in StubResponse() }
        var form = MultipartForm()
        try form.appendPart(stream: { AsyncThrowingStream { $0.finish() } }, length: .max, name: "a", fileName: "b")
        let task = try localSession().dataTask(for: TransferRequest(url: server.url(), method: .post, body: .multipart(form)))
        await expectEqual(failure(task)?.code, .invalidRequest)
        expectEmpty(server.requests)
    }

    @Test(arguments: ["data", "stream"])
    func `a request whose expectation is refused (417) is sent again without it, once`(_ kind: String) async throws {
        let server = try TestServer { request in
            if request.path == "/always" { return StubResponse(417, body: "never") }
            return request["expect"] == nil
                ? StubResponse(body: .text("got \(request.text)")) : StubResponse(417, body: "no expectations")
        }
        let session = try localSession()
        let body =
            kind == "data"
            ? RequestBody.data(Data("pay".utf8))
            : .stream(length: 3) {
                AsyncThrowingStream {
                    $0.yield(Data("pay".utf8)); $0.finish()
                }
            }
        for (path, status, text) in [("/", 200, "got pay"), ("/always", 417, "never")] {
            var request = TransferRequest(url: server.url(path), method: .post, body: body)
            request.headerFields[.expect] = "100-continue"
            let response = try await session.dataTask(for: request).response
            expectEqual(response.statusCode, status)
            expectEqual(String(decoding: response.data, as: UTF8.self), text)
        }
        expectEqual(server.requests.map { $0["expect"] }, ["100-continue", nil, "100-continue", nil])
    }

    @Test func `a redirect that changes POST to GET is followed without the expectation`() async throws {
        let server = try TestServer { request in
            request.path == "/from" ? .redirect(303, to: "/to") : StubResponse(body: .text(request.method))
        }
        var request = TransferRequest(url: server.url("/from"), method: .post, body: .data(Data("pay".utf8)))
        request.headerFields[.expect] = "100-continue"
        try await expectEqual(localSession().dataTask(for: request).data(), Data("GET".utf8))
        expectEqual(server.requests.map { $0["expect"] }, ["100-continue", nil])
    }
}
