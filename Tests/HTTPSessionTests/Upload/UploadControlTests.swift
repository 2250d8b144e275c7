import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing
import TestServers

/// Resumable uploads that are refused, redirected, challenged, suspended and canceled.
@Suite(.timeLimit(.minutes(20))) struct UploadControlTests: UploadSuite {
    let folder: ScratchDirectory
    let log = EventLog()

    init() throws { folder = try Self.makeFolder() }

    // MARK: What is refused

    @Test func `an upload that cannot be read again, or has no length, is refused before it is sent`() async throws {
        let server = try UploadServer(.tus)
        let stream = RequestBody.stream(length: nil) { AsyncThrowingStream { $0.finish() } }
        var error = await failure(try session().uploadTask(for: request(server, stream), resumableUsing: .tus))
        expectEqual(error?.code, .invalidRequest)
        expectEqual(error?.reason, "a resumable upload needs a body of known length")
        error = await failure(
            try session().uploadTask(for: TransferRequest(url: server.url, method: .post), resumableUsing: .tus))
        expectEqual(error?.reason, "there is no body to upload")
        error = await failure(try session().uploadTask(for: request(server, .file(folder.url("none"))), resumableUsing: .tus))
        expectEqual(error?.code, .cannotReadFile)
        expectEmpty(server.requests)
    }

    @Test func `an upload whose file has changed is not continued`() async throws {
        let (path, folder) = (self.folder.file("body"), folder)
        let server = try UploadServer(.tus) { turn in
            if turn.request.method == "HEAD" { try? Data(count: 1_000_000).write(to: folder.url("body")) }
            return turn.number == 2 ? .cut(afterBodyBytes: 500_000) : nil
        }
        let error = await failure(try session().uploadTask(for: request(server), resumableUsing: .tus))
        expectEqual(error?.code, .fileChanged)
        #expect(FileManager.default.fileExists(atPath: path))
        expectEqual(server.uploads.map(\.bytes.count), [500_000])
    }

    // MARK: Other origins

    @Test func `a location at another origin receives the bytes and no credentials`() async throws {
        let other = try TestServer { request in StubResponse(204, fields: ["Upload-Offset": "\(request.bodyLength)"]) }
        var configuration = UploadServer.Configuration()
        configuration.locationPrefix = other.origin
        let server = try UploadServer(.tus, configuration: configuration)
        let response = try await session().uploadTask(
            for: request(server, nil, [.authorization: "Bearer secret", .userAgent: "me"]), resumableUsing: .tus
        ).response
        expectEqual(response.url.absoluteString, other.origin + "/uploads/1")
        expectEqual(server.requests[0]["authorization"], "Bearer secret")
        expectEqual(other.requests.map { $0["authorization"] }, [nil])
        expectEqual(other.requests.map { $0["user-agent"] }, ["me"])
        expectEqual(other.requests.map(\.bodyLength), [Self.size])
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
        expectEqual(methods(server), "POST POST PATCH HEAD PATCH PATCH")
        expectEqual(response.metrics.redirectCount, 2)
        try expectCompleteUpload(server)
        let other = try UploadServer(.tus) { _ in .refuse(.redirect(303, to: "/uploads")) }
        let error = await failure(try session().uploadTask(for: request(other), resumableUsing: .tus))
        expectEqual(error?.context.statusCode, 303)
        expectEqual(other.requests.count, 1)
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
        await expectEqual(failure(second)?.code, .cancelled)
    }

    @Test func `without retries a lost connection ends the upload`() async throws {
        // The upload uses a new connection: a reused one that dies before a response would be replaced.
        let made = StubResponse(201, fields: ["Location": "/uploads/1", "Tus-Resumable": "1.0.0"]).closing()
        let server = try UploadServer(.tus) { $0.number == 1 ? .answer(made) : .cut(afterBodyBytes: 500_000) }
        let error = await failure(try session(0).uploadTask(for: request(server), resumableUsing: .tus))
        expectEqual(error?.code, .connectionLost)
    }

    @Test func `progress counts the bytes on the server and those being sent`() async throws {
        let server = try UploadServer(.tus, fault: Self.faults([.cut(afterBodyBytes: 600_000), .cut(afterBodyBytes: 0)]))
        let task = try session().uploadTask(for: request(server), resumableUsing: .tus, startsImmediately: false)
        let seen = Task { await task.progress.reduce(into: [TransferProgress]()) { $0.append($1) } }
        task.resume()
        _ = try await task.response
        let all = await seen.value
        #expect(all.allSatisfy { $0.bytesSent <= Self.size })
        expectEqual(all.last?.bytesSent, Self.size)
        #expect(all.dropFirst().allSatisfy { $0.expectedToSend == nil || $0.expectedToSend == Self.size })
    }
}
