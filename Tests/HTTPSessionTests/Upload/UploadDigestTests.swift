import Certificates
import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing
import TestServers

@testable import HTTPSession

/// Uploads to servers that send the digest of what they received.
@Suite(.timeLimit(.minutes(20))) struct UploadDigestTests {
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory() }

    private func head(_ status: Int, _ fields: String...) throws -> ResponseHead {
        try UploadTranscript.head(status, fields)
    }

    private func field(_ text: String, _ algorithm: ContentDigest.Algorithm = .sha256) throws -> String {
        let hasher = try #require(algorithm.hasher)
        Data(text.utf8).withUnsafeBytes { hasher.update($0) }
        return "\(algorithm.rawValue)=:\(try #require(hasher.finish()).base64EncodedString()):"
    }

    @Test func `only a response about the resource has the upload's digest`() throws {
        let digest = "Repr-Digest: \(try field("abc"))"
        let known = ContentDigest.sha256(of: Data("abc".utf8))
        try expectEqual(ReprDigest.ofUpload(head(204, digest), to: .patch, isTus: true), known)
        try expectEqual(ReprDigest.ofUpload(head(204, digest), to: .put, isTus: false), known)
        try expectEqual(ReprDigest.ofUpload(head(200, digest), to: .head, isTus: true), known)
        // These digests belong to the response's own content, or are undefined.
        try expectNil(ReprDigest.ofUpload(head(200, digest), to: .put, isTus: false))
        try expectNil(ReprDigest.ofUpload(head(201, digest), to: .post, isTus: false))
        try expectNil(ReprDigest.ofUpload(head(204, digest), to: .post, isTus: false))
        try expectNil(ReprDigest.ofUpload(head(204, digest), to: .head, isTus: false))
        try expectNil(ReprDigest.ofUpload(head(204, digest, "Content-Encoding: gzip"), to: .put, isTus: false))
        try expectNil(ReprDigest.ofUpload(head(204, "Repr-Digest: md5=:AAAA:"), to: .put, isTus: false))
        try expectNil(ReprDigest.ofUpload(head(204), to: .patch, isTus: true))
    }

    private func upload(_ digest: String, _ body: RequestBody) async throws -> HTTPSessionError? {
        let server = try UploadServer(.tus) { turn in
            guard turn.request.method == "PATCH" else { return nil }
            return .answer(StubResponse(204, fields: ["Upload-Offset": "6", "Repr-Digest": digest]))
        }
        let session = try HTTPSessionManager(configuration: localConfiguration())
        return await failure(
            session.uploadTask(for: TransferRequest(url: server.url, method: .post, body: body), resumableUsing: .tus))
    }

    @Test(arguments: ContentDigest.Algorithm.allCases)
    func `an upload is compared with the digest that its server sends`(_ algorithm: ContentDigest.Algorithm) async throws {
        try Data("abcdef".utf8).write(to: folder.url("body"))
        for body in [RequestBody.file(folder.url("body")), .data(Data("abcdef".utf8))] {
            try await expectNil(upload(try field("abcdef", algorithm), body))
            let error = try await upload(try field("abcdeg", algorithm), body)
            expectEqual(error?.code, .digestMismatch)
            expectEqual(
                error?.reason, "the server has received other bytes than the upload's: their \(algorithm.rawValue) differs")
        }
    }

    @Test func `an upload from a stream is not compared`() async throws {
        let body = RequestBody.stream(length: 6) {
            AsyncThrowingStream { continuation in
                continuation.yield(Data("abcdef".utf8))
                continuation.finish()
            }
        }
        try await expectNil(upload(try field("other"), body))
    }
}
