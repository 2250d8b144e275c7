import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing
import TestServers

/// Resumable uploads by tus and by the draft, to a server that drops and forgets them.
@Suite(.timeLimit(.minutes(20))) struct ResumableUploadTests: UploadSuite {
    let folder: ScratchDirectory
    let log = EventLog()

    init() throws { folder = try Self.makeFolder() }

    // MARK: tus

    @Test func `a tus upload is created, sent and completed`() async throws {
        let server = try UploadServer(.tus)
        let task = try session().uploadTask(for: request(server), resumableUsing: .tus(metadata: ["filename": "body"]))
        let response = try await task.response
        expectEqual(response.statusCode, 204)
        expectEqual(response.url.path, "/uploads/1")
        expectEqual(methods(server), "POST PATCH")
        expectEqual(server.requests[0]["upload-metadata"], "filename Ym9keQ==")
        expectEqual(server.requests[0]["content-length"], "0")
        expectEqual(task.kind, .upload)
        expectEqual(task.currentProgress.bytesSent, Self.size)
        expectEqual(task.currentProgress.expectedToSend, Self.size)
        expectEqual(response.metrics.bytesContinued, 0)
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
        expectEqual(response.metrics.retryCount, 20)
        #expect(server.bodyBytes <= Self.size * 115 / 100)
        expectEqual(server.requests.count { $0.method == "HEAD" }, 20)
        await log.await("completed")
        #expect(log.names.contains("continued 45000"))
        #expect(log.names.contains("continued 900000"))
        expectEqual(resumptions.offsets, (1...20).flatMap { [$0 * 45_000, Self.size] })
        expectEqual(response.metrics.bytesContinued, (1...20).reduce(0) { $0 + $1 * 45_000 })
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
        expectEqual(Int64(bytes.count), form.contentLength)
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
        expectEqual(methods(server), "POST POST PATCH HEAD HEAD PATCH HEAD PATCH HEAD PATCH")
        expectEqual(response.metrics.retryCount, 5)
        try expectCompleteUpload(server)
    }

    @Test func `a Retry-After beyond the policy's limit ends the upload`() async throws {
        let server = try UploadServer(
            .tus, fault: Self.faults([.answer(StubResponse(503, fields: ["Retry-After": "1"])), nil]))
        let start = ContinuousClock.now
        _ = try await session().uploadTask(for: request(server), resumableUsing: .tus).response
        #expect(ContinuousClock.now - start >= .seconds(1))
    }

    @Test func `a success sent before the body was read is no success of an upload`() async throws {
        // A server without the draft answers alike, without the field.
        for fields in [["Upload-Complete": "?1"], [:]] as [KeyValuePairs<String, String>] {
            let server = try UploadServer(.draft) { _ in .refuse(StubResponse(201, fields: fields)) }
            let body = RequestBody.data(Data(count: 32 << 20))
            let task = try session().uploadTask(for: request(server, body), resumableUsing: .draft)
            await expectEqual(failure(task)?.code, .badServerResponse)
            #expect(task.currentProgress.bytesSent < 32 << 20)
        }
    }

    @Test func `a lost last response is recovered by asking for the offset`() async throws {
        for kind in [UploadProtocol.tus, .draft] {
            let server = try UploadServer(
                kind == .tus ? .tus : .draft, fault: Self.faults([.silence()], of: kind == .tus ? "PATCH" : "POST"))
            let task = try session().uploadTask(for: request(server), resumableUsing: kind)
            try await expectEqual(task.response.statusCode, (kind == .tus ? 200 : 204))
            expectEqual(methods(server), (kind == .tus ? "POST PATCH HEAD" : "POST HEAD"))
            expectEqual(task.currentProgress.bytesSent, Self.size)
            try expectCompleteUpload(server)
        }
    }

    @Test func `after a conflict the offset is requested, and a forgotten upload is created again`() async throws {
        let server = try UploadServer(
            .tus, fault: Self.faults([.refuse(StubResponse(409)), .cut(afterBodyBytes: 300_000), .forget]))
        _ = try await session().uploadTask(for: request(server), resumableUsing: .tus).response
        expectEqual(methods(server), "POST PATCH HEAD PATCH HEAD PATCH POST PATCH")
        expectEqual(server.uploads.count, 1)
        try expectCompleteUpload(server)
    }

    @Test func `a server whose offset exceeds the sent bytes, or never advances, fails the upload`() async throws {
        var server = try UploadServer(.tus, fault: Self.faults([.claim(Self.size + 1)]))
        var error = await failure(try session().uploadTask(for: request(server), resumableUsing: .tus))
        expectEqual(error?.code, .badServerResponse)
        server = try UploadServer(.tus) { turn in
            switch turn.request.method {
            case "PATCH": .cut(afterBodyBytes: 100_000)
            case "HEAD": .claim(999_999)
            default: nil
            }
        }
        // The body is small, so that the number of sent bytes is exact.
        error = await failure(try session().uploadTask(for: request(server, .data(pattern(200_000))), resumableUsing: .tus))
        expectEqual(error?.code, .badServerResponse)
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
        expectEqual(error?.reason, "the server speaks no tus, and not 1.0.0")
        expectEqual(plain.requests.map(\.bodyLength), [0])
        let old = try TestServer { _ in StubResponse(412, fields: ["Tus-Version": "0.2.2"]) }
        request.url = old.url()
        error = await failure(try session().uploadTask(for: request, resumableUsing: .tus))
        expectEqual(error?.reason, "the server speaks tus 0.2.2, and not 1.0.0")
        let server = try UploadServer(.tus, fault: Self.faults([.answer(StubResponse(422, body: "no films"))]))
        error = await failure(try session().uploadTask(for: self.request(server), resumableUsing: .tus))
        expectEqual(error?.code, .unacceptableStatus)
        expectEqual(error?.context.statusCode, 422)
        expectEqual(error?.context.responseBody, Data("no films".utf8))
    }

    @Test func `an empty upload is complete when it is created`() async throws {
        for kind in [UploadProtocol.tus, .draft] {
            let server = try UploadServer(kind == .tus ? .tus : .draft)
            _ = try await session().uploadTask(for: request(server, .data(Data())), resumableUsing: kind).response
            expectEqual(server.requests.count, 1)
            expectEqual(server.uploads.map(\.length), [0])
        }
    }

    // MARK: The draft

    @Test func `a draft upload is sent at once, and has the resource's response`() async throws {
        let server = try UploadServer(.draft)
        let task = try session().uploadTask(for: request(server), resumableUsing: .draft)
        try await expectEqual(task.response.data, Data("taken".utf8))
        expectEqual(server.requests.map(\.method), ["POST"])
        expectEqual(server.requests[0]["upload-complete"], "?1")
        expectEqual(server.requests[0]["upload-draft-interop-version"], "8")
        try expectCompleteUpload(server)
    }

    @Test func `a server without the draft receives a plain upload`() async throws {
        let server = try TestServer { StubResponse(body: "\($0.bodyLength)") }
        let request = TransferRequest(url: server.url(), method: .put, body: .file(folder.url("body")))
        try await expectEqual(session().uploadTask(for: request, resumableUsing: .draft).response.data, Data("1000000".utf8))
        expectEqual(server.requests.count, 1)
    }

    @Test(arguments: [7, nil]) func `a 104 of another draft version is ignored`(_ version: Int?) async throws {
        var configuration = UploadServer.Configuration()
        configuration.interopVersion = version
        let server = try UploadServer(
            .draft, configuration: configuration, fault: Self.faults([.cut(afterBodyBytes: 500_000)], of: "POST"))
        // A POST that may have been executed is not sent again.
        let error = await failure(try session().uploadTask(for: request(server), resumableUsing: .draft))
        expectEqual(error?.code, .connectionLost)
        expectEqual(server.requests.count, 1)
        // A PUT is sent again from its beginning.
        var put = request(server)
        put.method = .put
        _ = try await session().uploadTask(for: put, resumableUsing: .draft).response
        try expectCompleteUpload(server, at: 1)
    }

    @Test func `an upload limit of a part's size is respected`() async throws {
        // The body is larger than the socket buffers, so that the request stalls while the server does not read.
        let size: Int64 = 32 << 20
        var configuration = UploadServer.Configuration()
        configuration.limit = "max-append-size=8000000, max-size=40000000"
        let stuck: @Sendable (UploadServer.Turn) -> UploadServer.Fault? = {
            $0.number == 1 ? .hold(afterBodyBytes: 0, .forever) : nil
        }
        let server = try UploadServer(.draft, configuration: configuration, fault: stuck)
        _ = try await session().uploadTask(for: request(server, .data(pattern(size))), resumableUsing: .draft).response
        expectEqual(server.uploads.map { Data($0.bytes) }, [pattern(size)])
        expectEqual(methods(server), "POST HEAD PATCH PATCH PATCH PATCH PATCH")
        expectEqual(server.requests.map { $0["upload-complete"] }, ["?1", nil, "?0", "?0", "?0", "?0", "?1"])
        #expect(server.requests.allSatisfy { $0.bodyLength <= 8_000_000 })
        configuration.limit = "max-size=999999"
        let small = try UploadServer(.draft, configuration: configuration, fault: stuck)
        let error = await failure(try session().uploadTask(for: request(small, .data(pattern(size))), resumableUsing: .draft))
        expectEqual(error?.code, .invalidRequest)
    }

    @Test func `after a conflict or an error the upload continues at the server's offset`() async throws {
        let gate = try Gate()
        let server = try UploadServer(.draft) { turn in
            switch turn.number {
            // A reset destroys a 104 that the client has not read yet, and without its location the upload cannot continue.
            case 1: .cut(afterBodyBytes: 400_000, after: .gate(gate))
            case 3: .refuse(StubResponse(409, fields: ["Upload-Offset": "400000"]))
            case 4: .answer(StubResponse(502))
            default: nil
            }
        }
        let task = try session().uploadTask(for: request(server), resumableUsing: .draft)
        await log.await("interim 104")
        gate.open()
        _ = try await task.response
        // All bytes had arrived when the server failed.
        expectEqual(methods(server), "POST HEAD PATCH PATCH HEAD")
        try expectCompleteUpload(server)
    }
}
