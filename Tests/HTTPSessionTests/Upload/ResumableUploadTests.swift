import EventLoop
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Resumable uploads to a server that drops, refuses and forgets them. The body has 1,000,000 bytes.
@Suite(.timeLimit(.minutes(20))) struct ResumableUploadTests {
    private let folder: ScratchDirectory
    private let log = EventLog()
    private static let size: Int64 = 1_000_000

    init() throws {
        folder = try ScratchDirectory()
        try pattern(Self.size).write(to: folder.url("body"))
    }

    private func session(_ retries: Int? = 4, _ change: (inout SessionConfiguration) -> Void = { _ in }) throws
        -> HTTPSessionManager
    {
        let policy = RetryPolicy(maximumRetries: retries, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
        return try HTTPSessionManager(
            configuration: localConfiguration {
                $0.retryPolicy = policy
                change(&$0)
            }, monitors: [log])
    }

    private func request(_ server: UploadServer, _ body: RequestBody? = nil, _ fields: HTTPFields = [:]) -> TransferRequest {
        TransferRequest(url: server.url, method: .post, headerFields: fields, body: body ?? .file(folder.url("body")))
    }

    private func methods(_ server: UploadServer) -> String { server.requests.map(\.method).joined(separator: " ") }

    private func expectCompleteUpload(_ server: UploadServer, at index: Int = 0, location: SourceLocation = #_sourceLocation)
        throws
    {
        let upload = try #require(server.uploads.dropFirst(index).first, sourceLocation: location)
        #expect(Data(upload.bytes) == pattern(Self.size), sourceLocation: location)
    }

    /// The faults of the first requests of one method, in order.
    private static func faults(_ faults: [UploadServer.Fault?], of method: String = "PATCH")
        -> @Sendable (UploadServer.Turn) -> UploadServer.Fault?
    {
        let remaining = Locked(faults)
        return { turn in
            guard turn.request.method == method else { return nil }
            return remaining.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        }
    }

    // MARK: tus

    @Test func `a tus upload is created, sent and completed`() async throws {
        let server = try UploadServer(.tus)
        let task = try session().uploadTask(for: request(server), resumableUsing: .tus(metadata: ["filename": "body"]))
        let response = try await task.response
        #expect(response.statusCode == 204)
        #expect(response.url.path == "/uploads/1")
        #expect(methods(server) == "POST PATCH")
        #expect(server.requests[0]["upload-metadata"] == "filename Ym9keQ==")
        #expect(server.requests[0]["content-length"] == "0")
        #expect(task.kind == .upload)
        #expect(task.currentProgress.sent == Self.size)
        #expect(task.currentProgress.expectedToSend == Self.size)
        #expect(response.metrics.bytesResumed == 0)
        try expectCompleteUpload(server)
    }

    @Test(arguments: [UploadProtocol.tus, .draft]) func `an upload cut twenty times sends hardly any bytes twice`(
        _ kind: UploadProtocol
    ) async throws {
        let (cuts, gate, resumptions) = (Counter(), try Gate(), Resumptions())
        let server = try UploadServer(kind == .tus ? .tus : .draft) { turn in
            let isFirst = kind == .draft && turn.request.method == "POST"
            guard isFirst || turn.request.method == "PATCH", cuts.add() <= 20 else { return nil }
            // The client needs the time to read the upload's location.
            return .cut(afterBodyBytes: 49_000, losing: 4_000, after: isFirst ? .gate(gate) : nil)
        }
        let task = try session().uploadTask(for: request(server), resumableUsing: kind, handlers: resumptions.handlers)
        if kind == .draft { await log.await("interim 104") }
        gate.open()
        let response = try await task.response
        try expectCompleteUpload(server)
        #expect(response.metrics.retryCount == 20)
        #expect(server.bodyBytes <= Self.size * 115 / 100)
        #expect(server.requests.count { $0.method == "HEAD" } == 20)
        await log.await("completed")
        #expect(log.names.contains("continued 45000"))
        #expect(log.names.contains("continued 900000"))
        #expect(resumptions.offsets == (1...20).flatMap { [$0 * 45_000, Self.size] })
        #expect(response.metrics.bytesResumed == (1...20).reduce(0) { $0 + $1 * 45_000 })
    }

    @Test(arguments: [UploadProtocol.tus, .draft]) func `memory, a form and a stream are read again from the server's offset`(
        _ kind: UploadProtocol
    ) async throws {
        let pieces = stride(from: 0, to: 1_000_000, by: 70_001).map { pattern(Self.size)[$0..<min(1_000_000, $0 + 70_001)] }
        let stream = RequestBody.stream(length: Self.size) {
            AsyncThrowingStream { continuation in
                for piece in pieces { continuation.yield(piece) }
                continuation.finish()
            }
        }
        for body in [RequestBody.data(pattern(Self.size)), stream] {
            let server = try UploadServer(
                kind == .tus ? .tus : .draft,
                fault: Self.faults([.cut(afterBodyBytes: 300_000), .cut(afterBodyBytes: 99_999), .cut(afterBodyBytes: 0)]))
            _ = try await session().uploadTask(for: request(server, body), resumableUsing: kind).response
            try expectCompleteUpload(server)
        }
        var form = MultipartForm()
        try form.appendPart(fileURL: folder.url("body"), name: "file")
        try form.appendPart(form: pattern(50_000), name: "data")
        let server = try UploadServer(
            kind == .tus ? .tus : .draft,
            fault: Self.faults([.cut(afterBodyBytes: 100), .cut(afterBodyBytes: 400_000), .cut(afterBodyBytes: 620_000)]))
        _ = try await session().uploadTask(for: request(server, .multipart(form)), resumableUsing: kind).response
        let bytes = Data(try #require(server.uploads.first).bytes)
        #expect(Int64(bytes.count) == form.contentLength)
        #expect(bytes.range(of: pattern(Self.size)) != nil)
        #expect(bytes.range(of: pattern(50_000)) != nil)
    }

    @Test func `an upload to a failing server is retried as policy and Retry-After say`() async throws {
        let server = try UploadServer(.tus) { turn in
            switch turn.number {
            case 1: .refuse(StubResponse(503, fields: ["Retry-After": "0"]))
            case 3: .refuse(StubResponse(500))
            case 4: .refuse(StubResponse(429))
            case 6: .refuse(StubResponse(408))
            case 8: .refuse(StubResponse(423))
            default: nil
            }
        }
        let response = try await session(nil).uploadTask(for: request(server), resumableUsing: .tus).response
        #expect(methods(server) == "POST POST PATCH HEAD HEAD PATCH HEAD PATCH HEAD PATCH")
        #expect(response.metrics.retryCount == 5)
        try expectCompleteUpload(server)
    }

    @Test func `a Retry-After beyond the policy's limit ends the upload`() async throws {
        let server = try UploadServer(
            .tus, fault: Self.faults([.answer(StubResponse(503, fields: ["Retry-After": "1"])), nil]))
        let start = ContinuousClock.now
        _ = try await session().uploadTask(for: request(server), resumableUsing: .tus).response
        #expect(ContinuousClock.now - start >= .seconds(1))
    }

    @Test func `a lost last response is recovered by asking for the offset`() async throws {
        for kind in [UploadProtocol.tus, .draft] {
            let server = try UploadServer(
                kind == .tus ? .tus : .draft, fault: Self.faults([.silence()], of: kind == .tus ? "PATCH" : "POST"))
            let task = try session().uploadTask(for: request(server), resumableUsing: kind)
            #expect(try await task.response.statusCode == (kind == .tus ? 200 : 204))
            #expect(methods(server) == (kind == .tus ? "POST PATCH HEAD" : "POST HEAD"))
            #expect(task.currentProgress.sent == Self.size)
            try expectCompleteUpload(server)
        }
    }

    @Test func `after a conflict the offset is requested, and a forgotten upload is created again`() async throws {
        let server = try UploadServer(
            .tus, fault: Self.faults([.refuse(StubResponse(409)), .cut(afterBodyBytes: 300_000), .forget]))
        _ = try await session().uploadTask(for: request(server), resumableUsing: .tus).response
        #expect(methods(server) == "POST PATCH HEAD PATCH HEAD PATCH POST PATCH")
        #expect(server.uploads.count == 1)
        try expectCompleteUpload(server)
    }

    @Test func `a server whose offset exceeds the sent bytes, or never advances, fails the upload`() async throws {
        var server = try UploadServer(.tus, fault: Self.faults([.claim(Self.size + 1)]))
        var error = await failure(try session().uploadTask(for: request(server), resumableUsing: .tus))
        #expect(error?.code == .badServerResponse)
        server = try UploadServer(.tus) { turn in
            switch turn.request.method {
            case "PATCH": .cut(afterBodyBytes: 100_000)
            case "HEAD": .claim(999_999)
            default: nil
            }
        }
        // The body is small, so that the number of sent bytes is exact.
        error = await failure(try session().uploadTask(for: request(server, .data(pattern(200_000))), resumableUsing: .tus))
        #expect(error?.code == .badServerResponse)
        // The server takes bytes and reports that it has not.
        server = try UploadServer(.tus) { turn in ["PATCH", "HEAD"].contains(turn.request.method) ? .claim(0) : nil }
        error = await failure(try session(3).uploadTask(for: request(server), resumableUsing: .tus))
        #expect([.unacceptableStatus, .badServerResponse].contains(error?.code))
        #expect(server.requests.count < 12)
    }

    @Test func `a server without tus, of another version, or that refuses, has distinct errors`() async throws {
        let plain = try TestServer { _ in StubResponse(201, fields: ["Location": "/things/1"]) }
        var request = TransferRequest(url: plain.url(), method: .post, body: .file(folder.url("body")))
        var error = await failure(try session().uploadTask(for: request, resumableUsing: .tus))
        #expect(error?.reason == "the server speaks no tus, and not 1.0.0")
        #expect(plain.requests.map(\.bodyLength) == [0])
        let old = try TestServer { _ in StubResponse(412, fields: ["Tus-Version": "0.2.2"]) }
        request.url = old.url()
        error = await failure(try session().uploadTask(for: request, resumableUsing: .tus))
        #expect(error?.reason == "the server speaks tus 0.2.2, and not 1.0.0")
        let server = try UploadServer(.tus, fault: Self.faults([.answer(StubResponse(422, body: "no films"))]))
        error = await failure(try session().uploadTask(for: self.request(server), resumableUsing: .tus))
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.context.statusCode == 422)
        #expect(error?.context.responseBody == Data("no films".utf8))
    }

    @Test func `an empty upload is complete when it is created`() async throws {
        for kind in [UploadProtocol.tus, .draft] {
            let server = try UploadServer(kind == .tus ? .tus : .draft)
            _ = try await session().uploadTask(for: request(server, .data(Data())), resumableUsing: kind).response
            #expect(server.requests.count == 1)
            #expect(server.uploads.map(\.length) == [0])
        }
    }

    // MARK: The draft

    @Test func `a draft upload is sent at once, and has the resource's response`() async throws {
        let server = try UploadServer(.draft)
        let task = try session().uploadTask(for: request(server), resumableUsing: .draft)
        #expect(try await task.response.data == Data("taken".utf8))
        #expect(server.requests.map(\.method) == ["POST"])
        #expect(server.requests[0]["upload-complete"] == "?1")
        #expect(server.requests[0]["upload-draft-interop-version"] == "8")
        try expectCompleteUpload(server)
    }

    @Test func `a server without the draft receives a plain upload`() async throws {
        let server = try TestServer { StubResponse(body: "\($0.bodyLength)") }
        let request = TransferRequest(url: server.url(), method: .put, body: .file(folder.url("body")))
        #expect(try await session().uploadTask(for: request, resumableUsing: .draft).response.data == Data("1000000".utf8))
        #expect(server.requests.count == 1)
    }

    @Test(arguments: [7, nil]) func `a 104 of another draft version is ignored`(_ version: Int?) async throws {
        var options = UploadServer.Options()
        options.interopVersion = version
        let server = try UploadServer(.draft, options: options, fault: Self.faults([.cut(afterBodyBytes: 500_000)], of: "POST"))
        // A POST that may have been executed is not sent again.
        let error = await failure(try session().uploadTask(for: request(server), resumableUsing: .draft))
        #expect(error?.code == .connectionLost)
        #expect(server.requests.count == 1)
        // A PUT is sent again from its beginning.
        var put = request(server)
        put.method = .put
        _ = try await session().uploadTask(for: put, resumableUsing: .draft).response
        try expectCompleteUpload(server, at: 1)
    }

    @Test func `an upload limit of a part's size is respected`() async throws {
        // The body is larger than the socket buffers, so that the request stalls while the server does not read.
        let size: Int64 = 32 << 20
        var options = UploadServer.Options()
        options.limit = "max-append-size=8000000, max-size=40000000"
        let stuck: @Sendable (UploadServer.Turn) -> UploadServer.Fault? = {
            $0.number == 1 ? .hold(afterBodyBytes: 0, .forever) : nil
        }
        let server = try UploadServer(.draft, options: options, fault: stuck)
        _ = try await session().uploadTask(for: request(server, .data(pattern(size))), resumableUsing: .draft).response
        #expect(server.uploads.map { Data($0.bytes) } == [pattern(size)])
        #expect(methods(server) == "POST HEAD PATCH PATCH PATCH PATCH PATCH")
        #expect(server.requests.map { $0["upload-complete"] } == ["?1", nil, "?0", "?0", "?0", "?0", "?1"])
        #expect(server.requests.allSatisfy { $0.bodyLength <= 8_000_000 })
        options.limit = "max-size=999999"
        let small = try UploadServer(.draft, options: options, fault: stuck)
        let error = await failure(try session().uploadTask(for: request(small, .data(pattern(size))), resumableUsing: .draft))
        #expect(error?.code == .invalidRequest)
    }

    @Test func `after a conflict or an error the upload continues at the server's offset`() async throws {
        let server = try UploadServer(.draft) { turn in
            switch turn.number {
            case 1: .cut(afterBodyBytes: 400_000)
            case 3: .refuse(StubResponse(409, fields: ["Upload-Offset": "400000"]))
            case 4: .answer(StubResponse(502))
            default: nil
            }
        }
        _ = try await session().uploadTask(for: request(server), resumableUsing: .draft).response
        // All bytes had arrived when the server failed.
        #expect(methods(server) == "POST HEAD PATCH PATCH HEAD")
        try expectCompleteUpload(server)
    }

    // MARK: What is refused

    @Test func `an upload that cannot be read again, or has no length, is refused before it is sent`() async throws {
        let server = try UploadServer(.tus)
        let stream = RequestBody.stream(length: nil) { AsyncThrowingStream { $0.finish() } }
        var error = await failure(try session().uploadTask(for: request(server, stream), resumableUsing: .tus))
        #expect(error?.code == .invalidRequest)
        #expect(error?.reason == "a resumable upload needs a body of known length")
        error = await failure(
            try session().uploadTask(for: TransferRequest(url: server.url, method: .post), resumableUsing: .tus))
        #expect(error?.reason == "there is no body to upload")
        error = await failure(try session().uploadTask(for: request(server, .file(folder.url("none"))), resumableUsing: .tus))
        #expect(error?.code == .cannotReadFile)
        #expect(server.requests.isEmpty)
    }

    @Test func `an upload whose file has changed is not continued`() async throws {
        let (path, folder) = (self.folder.file("body"), folder)
        let server = try UploadServer(.tus) { turn in
            if turn.request.method == "HEAD" { try? Data(count: 1_000_000).write(to: folder.url("body")) }
            return turn.number == 2 ? .cut(afterBodyBytes: 500_000) : nil
        }
        let error = await failure(try session().uploadTask(for: request(server), resumableUsing: .tus))
        #expect(error?.code == .fileChanged)
        #expect(FileManager.default.fileExists(atPath: path))
        #expect(server.uploads.map(\.bytes.count) == [500_000])
    }

    // MARK: Other origins

    @Test func `a location at another origin receives the bytes and no credentials`() async throws {
        let other = try TestServer { request in StubResponse(204, fields: ["Upload-Offset": "\(request.bodyLength)"]) }
        var options = UploadServer.Options()
        options.locationPrefix = other.origin
        let server = try UploadServer(.tus, options: options)
        let response = try await session().uploadTask(
            for: request(server, nil, [.authorization: "Bearer secret", .userAgent: "me"]), resumableUsing: .tus
        ).response
        #expect(response.url.absoluteString == other.origin + "/uploads/1")
        #expect(server.requests[0]["authorization"] == "Bearer secret")
        #expect(other.requests.map { $0["authorization"] } == [nil])
        #expect(other.requests.map { $0["user-agent"] } == ["me"])
        #expect(other.requests.map(\.bodyLength) == [Self.size])
    }

    @Test func `redirects that keep the method are followed with the current part`() async throws {
        let server = try UploadServer(.tus) { turn in
            switch turn.number {
            case 1: .refuse(.redirect(307, to: "/uploads?again"))
            case 3: .cut(afterBodyBytes: 250_000)
            case 5: .refuse(.redirect(308, to: turn.request.path))
            default: nil
            }
        }
        let response = try await session().uploadTask(for: request(server), resumableUsing: .tus).response
        #expect(methods(server) == "POST POST PATCH HEAD PATCH PATCH")
        #expect(response.metrics.redirectCount == 2)
        try expectCompleteUpload(server)
        let other = try UploadServer(.tus) { _ in .refuse(.redirect(303, to: "/uploads")) }
        let error = await failure(try session().uploadTask(for: request(other), resumableUsing: .tus))
        #expect(error?.context.statusCode == 303)
        #expect(other.requests.count == 1)
    }

    @Test func `a challenge during an upload is answered`() async throws {
        let server = try UploadServer(.tus) { turn in
            if turn.number == 2 { return .cut(afterBodyBytes: 250_000) }
            return turn.number > 2 && turn.request["authorization"] == nil ? .refuse(.unauthorized("Basic realm=\"x\"")) : nil
        }
        let handlers = TransferHandlers(challenge: { _ in .useCredential(Credential(user: "me", password: "secret")) })
        _ = try await session().uploadTask(for: request(server), resumableUsing: .tus, handlers: handlers).response
        try expectCompleteUpload(server)
    }

    // MARK: Control

    @Test func `an upload suspended midway continues when resumed, and ends when canceled`() async throws {
        let gate = try Gate()
        let server = try UploadServer(
            .tus,
            fault: Self.faults([.hold(afterBodyBytes: 100_000, .gate(gate)), .hold(afterBodyBytes: 100_000, .forever)]))
        let session = try session()
        let task = session.uploadTask(for: request(server), resumableUsing: .tus)
        try await server.awaitBodyBytes(100_000)
        task.suspend()
        await log.await("suspended")
        task.resume()
        gate.open()
        _ = try await task.response
        try expectCompleteUpload(server)
        let second = session.uploadTask(for: request(server), resumableUsing: .tus, startsImmediately: false)
        second.resume()
        try await server.awaitBodyBytes(1_100_000)
        second.cancel()
        #expect(await failure(second)?.code == .cancelled)
    }

    @Test func `without retries a lost connection ends the upload`() async throws {
        // The upload uses a new connection: a reused one that dies before a response would be replaced.
        let made = StubResponse(201, fields: ["Location": "/uploads/1", "Tus-Resumable": "1.0.0"]).closing()
        let server = try UploadServer(.tus) { $0.number == 1 ? .answer(made) : .cut(afterBodyBytes: 500_000) }
        let error = await failure(try session(0).uploadTask(for: request(server), resumableUsing: .tus))
        #expect(error?.code == .connectionLost)
    }

    @Test func `progress counts the bytes on the server and those being sent`() async throws {
        let server = try UploadServer(.tus, fault: Self.faults([.cut(afterBodyBytes: 600_000), .cut(afterBodyBytes: 0)]))
        let task = try session().uploadTask(for: request(server), resumableUsing: .tus, startsImmediately: false)
        let seen = Task { await task.progress.reduce(into: [TransferProgress]()) { $0.append($1) } }
        task.resume()
        _ = try await task.response
        let all = await seen.value
        #expect(all.allSatisfy { $0.sent <= Self.size })
        #expect(all.last?.sent == Self.size)
        #expect(all.dropFirst().allSatisfy { $0.expectedToSend == nil || $0.expectedToSend == Self.size })
    }
}
