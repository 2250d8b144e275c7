import Expectations
import Foundation
import HTTPTypes
import Testing

@testable import HTTPSession

/// An upload of 100 bytes to a tus server, as a transcript.
struct TusMachineTests {
    private let version = "Tus-Resumable: 1.0.0"
    private let place = "Location: /up/1"

    /// An upload that has been created and is about to send.
    private func made(isIdempotent: Bool = false) throws -> UploadTranscript {
        var upload = UploadTranscript(.tus, isIdempotent: isIdempotent)
        expectEqual(upload.machine.request, .create(count: 0))
        try upload.answer(201, version, place, is: .next, then: .append(offset: 0, count: 100))
        expectEqual(upload.machine.location?.absoluteString, "https://host/up/1")
        return upload
    }

    @Test func `an upload is created, sent and completed`() throws {
        var upload = try made()
        try upload.answer(204, version, "Upload-Offset: 100", is: .final, then: nil)
    }

    @Test func `an empty upload is complete when it is created`() throws {
        var upload = UploadTranscript(.tus, length: 0)
        try upload.answer(201, version, place, is: .final, then: nil)
    }

    @Test func `after a loss the offset is requested and the remaining bytes are sent`() throws {
        var upload = try made()
        upload.lost(sent: 70, then: .askOffset)
        try upload.answer(
            200, version, "Upload-Offset: 60", "Upload-Length: 100", is: .next, then: .append(offset: 60, count: 40))
        #expect(upload.machine.hasProgressed)
        upload.lost(sent: 100, then: .askOffset)
        upload.lost(sent: 60, then: .askOffset)
        try upload.answer(200, version, "Upload-Offset: 100", is: .final, then: nil)
    }

    @Test func `a request of which nothing was sent is sent again unchanged`() throws {
        var upload = try made()
        upload.lost(sent: 0, hasSent: false, then: .append(offset: 0, count: 100))
        upload = UploadTranscript(.tus)
        upload.lost(sent: 0, then: .create(count: 0))
        #expect(upload.machine.isRepeatable)
    }

    @Test func `after a server took part of a request, the next part follows`() throws {
        var upload = try made()
        try upload.answer(204, "Upload-Offset: 30", sent: 50, is: .next, then: .append(offset: 30, count: 70))
        try upload.answer(204, "Upload-Offset: 100", is: .final, then: nil)
    }

    @Test func `an offset that moved back is adopted, and requested again`() throws {
        var upload = try made()
        upload.lost(sent: 100, then: .askOffset)
        try upload.answer(200, "Upload-Offset: 60", is: .next, then: .append(offset: 60, count: 40))
        upload.machine.clearProgress()
        try upload.answer(204, "Upload-Offset: 20", is: .next, then: .askOffset)
        try upload.answer(200, "Upload-Offset: 20", is: .next, then: .append(offset: 20, count: 80))
        // Bytes that had arrived before are no progress.
        #expect(!upload.machine.hasProgressed)
    }

    @Test func `an offset beyond the sent bytes, or beyond the end, is refused`() throws {
        var upload = try made()
        try upload.refused(204, "Upload-Offset: 51", sent: 50, because: "only 50 were sent")
        upload = try made()
        try upload.refused(204, "Upload-Offset: 101", because: "of an upload of 100")
        upload = try made()
        upload.lost(sent: 50, then: .askOffset)
        try upload.refused(200, "Upload-Offset: 60", because: "only 50 were sent")
        upload = try made()
        upload.lost(sent: 50, then: .askOffset)
        try upload.refused(200, "Upload-Offset: 40", "Upload-Length: 99", because: "another length")
    }

    @Test(arguments: ["Upload-Offset: -1", "Upload-Offset: 1.0", "Upload-Offset: +5", "X: 1"])
    func `an offset that is not a number is ignored`(_ field: String) throws {
        var upload = try made()
        try upload.answer(204, field, is: .next, then: .askOffset)
        try upload.refused(200, field, because: "upload's offset")
    }

    @Test func `a different offset is requested at once, and then only as a retry`() throws {
        var upload = try made()
        try upload.answer(409, sent: 50, is: .next, then: .askOffset)
        try upload.answer(200, "Upload-Offset: 0", is: .next, then: .append(offset: 0, count: 100))
        try upload.answer(409, sent: 50, is: .retry(isRequestedByServer: true), then: .askOffset)
        try upload.answer(200, "Upload-Offset: 10", is: .next, then: .append(offset: 10, count: 90))
        // The offset has advanced, so the count restarts.
        try upload.answer(409, sent: 50, is: .next, then: .askOffset)
    }

    @Test func `an upload locked by another request is retried`() throws {
        var upload = try made()
        upload.lost(sent: 50, then: .askOffset)
        try upload.answer(423, is: .retry(isRequestedByServer: true), then: .askOffset)
        try upload.answer(200, "Upload-Offset: 50", is: .next, then: .append(offset: 50, count: 50))
        try upload.answer(423, is: .retry(isRequestedByServer: true), then: .askOffset)
    }

    @Test(arguments: [400, 408, 413, 415, 429, 460, 500, 503]) func `the retry policy decides about other status codes`(
        _ status: Int
    ) throws {
        var upload = UploadTranscript(.tus)
        try upload.answer(status, is: .retry(isRequestedByServer: false), then: .create(count: 0))
        upload = try made()
        try upload.answer(status, sent: 20, is: .retry(isRequestedByServer: false), then: .askOffset)
        try upload.answer(status, is: .retry(isRequestedByServer: false), then: .askOffset)
    }

    @Test(arguments: [403, 404, 410]) func `an upload that the server does not find is created again, twice`(_ status: Int) throws
    {
        var upload = try made()
        for _ in 0..<2 {
            upload.lost(sent: 50, then: .askOffset)
            try upload.answer(status, is: .next, then: .create(count: 0))
            expectNil(upload.machine.location)
            try upload.answer(201, version, "Location: /up/2", is: .next, then: .append(offset: 0, count: 100))
        }
        try upload.answer(status, sent: 50, is: .final, then: nil)
    }

    @Test func `an upload that may have been complete is created again only if it is idempotent`() throws {
        var upload = try made()
        upload.lost(sent: 100, then: .askOffset)
        try upload.refused(404, because: "may have been complete")
        upload = try made(isIdempotent: true)
        upload.lost(sent: 100, then: .askOffset)
        try upload.answer(404, is: .next, then: .create(count: 0))
        upload = try made()
        try upload.answer(500, is: .retry(isRequestedByServer: false), then: .askOffset)
        try upload.refused(404, because: "may have been complete")
        upload = try made()
        try upload.answer(204, is: .next, then: .askOffset)
        try upload.refused(410, because: "may have been complete")
        // An upload that is known to be incomplete may be created again.
        upload = try made()
        upload.lost(sent: 100, then: .askOffset)
        try upload.answer(200, "Upload-Offset: 90", is: .next, then: .append(offset: 90, count: 10))
        try upload.answer(404, sent: 95, is: .next, then: .create(count: 0))
    }

    @Test func `another tus version, or none, ends the upload`() throws {
        var upload = UploadTranscript(.tus)
        try upload.refused(412, "Tus-Version: 0.2.2,0.2.1", because: "speaks tus 0.2.2,0.2.1, and not 1.0.0")
        upload = UploadTranscript(.tus)
        try upload.refused(201, place, because: "speaks no tus")
        upload = UploadTranscript(.tus)
        try upload.refused(201, version, because: "without a location")
        upload = try made()
        try upload.refused(412, because: "speaks no tus")
    }

    @Test func `the location is resolved, and never less secure`() throws {
        for (place, url) in [
            ("7", "https://host/7"), ("?id=7", "https://host/files?id=7"), ("//other/7", "https://other/7"),
            ("https://other:81/7", "https://other:81/7"), ("../7", "https://host/7"),
        ] {
            var upload = UploadTranscript(.tus)
            try upload.answer(201, version, "Location: \(place)", is: .next, then: .append(offset: 0, count: 100))
            expectEqual(upload.machine.location?.absoluteString, url)
        }
        for (place, reason) in [
            ("http://host/7", "from https to http"), ("ftp://host/7", "http or https"), ("mailto:a@b", "http or https"),
        ] {
            var upload = UploadTranscript(.tus)
            try upload.refused(201, version, "Location: \(place)", because: reason, code: .redirectRefused)
        }
    }

    // MARK: As HTTP has it

    private func request(_ fields: HTTPFields = [:]) throws -> TransferRequest {
        let url = try #require(URL(string: "https://host/files?x=1"))
        return TransferRequest(url: url, method: .post, headerFields: fields, body: .data(Data(count: 100)))
    }

    private func text(_ request: TransferRequest) -> [String] {
        ["\(request.method) \(request.url)"] + request.headerFields.map { "\($0.name.canonicalName): \($0.value)" }.sorted()
    }

    @Test func `requests carry the upload's fields and those that identify the user`() throws {
        let original = try request([
            .authorization: "Bearer x", .contentType: "video/mp4", .ifMatch: "*", try #require(.init("Idempotency-Key")): "1",
            try #require(.init("X-Own")): "y",
        ])
        var upload = UploadTranscript(.tus(metadata: ["filename": "film", "private": ""]))
        expectEqual(
            text(upload.machine.transferRequest(of: original)),
            [
                "POST https://host/files?x=1", "authorization: Bearer x", "idempotency-key: 1", "if-match: *",
                "tus-resumable: 1.0.0",
                "upload-length: 100", "upload-metadata: filename ZmlsbQ==,private", "x-own: y",
            ])
        try upload.answer(201, version, place, is: .next, then: .append(offset: 0, count: 100))
        expectEqual(
            text(upload.machine.transferRequest(of: original)),
            [
                "PATCH https://host/up/1", "authorization: Bearer x", "content-type: application/offset+octet-stream",
                "tus-resumable: 1.0.0", "upload-offset: 0", "want-repr-digest: sha-256=10, sha-512=5", "x-own: y",
            ])
        upload.lost(sent: 50, then: .askOffset)
        expectEqual(
            text(upload.machine.transferRequest(of: original)),
            [
                "HEAD https://host/up/1", "authorization: Bearer x", "tus-resumable: 1.0.0", "x-own: y",
            ])
    }

    @Test func `another origin receives no fields that may identify the user, unless the session names them`() throws {
        let (own, key) = (try #require(HTTPField.Name("X-Own")), try #require(HTTPField.Name("X-Api-Key")))
        let original = try request([.authorization: "Bearer x", .cookie: "a=b", own: "y", key: "z"])
        var upload = UploadTranscript(.tus, forwarding: [own])
        try upload.answer(201, version, "Location: https://other/7", is: .next, then: nil)
        upload.lost(sent: 50, then: .askOffset)
        expectEqual(
            text(upload.machine.transferRequest(of: original)), ["HEAD https://other/7", "tus-resumable: 1.0.0", "x-own: y"])
    }

    @Test func `a request that cannot be an upload is refused before it is sent`() throws {
        var request = try request()
        expectNil(UploadProtocol.tus.objection(to: request))
        expectEqual(UploadProtocol.tus(metadata: ["a b": ""]).objection(to: request)?.code, .invalidRequest)
        expectEqual(UploadProtocol.tus(metadata: ["": ""]).objection(to: request)?.code, .invalidRequest)
        request.method = .put
        expectEqual(UploadProtocol.tus.objection(to: request)?.code, .invalidRequest)
        expectNil(UploadProtocol.draft.objection(to: request))
        request.method = .get
        expectEqual(UploadProtocol.draft.objection(to: request)?.code, .invalidRequest)
        request = try self.request()
        request.body = .none
        expectEqual(UploadProtocol.draft.objection(to: request)?.code, .invalidRequest)
    }
}
