import Expectations
import Foundation
import HTTPTypes
import Testing

@testable import HTTPSession

/// An upload of 100 bytes by draft-ietf-httpbis-resumable-upload, as a transcript.
struct DraftMachineTests {
    private let version = "Upload-Draft-Interop-Version: 8"
    private let place = "Location: /up/1"
    private let complete = "Upload-Complete: ?1"
    private let incomplete = "Upload-Complete: ?0"

    /// An upload whose server has sent its location.
    private func placed(isIdempotent: Bool = false) throws -> UploadTranscript {
        var upload = UploadTranscript(.draft, isIdempotent: isIdempotent)
        expectEqual(upload.machine.request, .create(count: 100))
        try upload.interim(104, version, place)
        expectEqual(upload.machine.location?.absoluteString, "https://host/up/1")
        return upload
    }

    /// An upload of which 60 bytes have arrived.
    private func resumed(isIdempotent: Bool = false) throws -> UploadTranscript {
        var upload = try placed(isIdempotent: isIdempotent)
        upload.lost(sent: 80, then: .askOffset)
        try upload.answer(
            204, incomplete, "Upload-Offset: 60", "Upload-Length: 100", is: .next, then: .append(offset: 60, count: 40))
        return upload
    }

    @Test func `an upload in one request succeeds with and without a server that supports the draft`() throws {
        var upload = try placed()
        try upload.answer(200, complete, is: .final, then: nil)
        upload = UploadTranscript(.draft)
        try upload.answer(201, "Location: /things/7", is: .final, then: nil)
        upload = UploadTranscript(.draft, length: 0)
        expectEqual(upload.machine.request, .create(count: 0))
        try upload.answer(200, is: .final, then: nil)
    }

    @Test func `after a loss the offset is requested and the remaining bytes are sent`() throws {
        var upload = try resumed()
        #expect(upload.machine.hasProgressed)
        try upload.answer(200, complete, is: .final, then: nil)
    }

    @Test func `without a location only an idempotent request is sent again`() throws {
        var upload = UploadTranscript(.draft)
        upload.lost(sent: 50, then: .create(count: 100))
        #expect(!upload.machine.isRepeatable)
        #expect(UploadTranscript(.draft, isIdempotent: true).machine.isRepeatable)
        #expect(try placed().machine.isRepeatable)
    }

    @Test(arguments: [
        ["Location: /up/1"], ["Location: /up/1", "Upload-Draft-Interop-Version: 7"],
        ["Location: /up/1", "Upload-Draft-Interop-Version: \"8\""],
    ]) func `a 104 of another draft version is ignored`(_ fields: [String]) throws {
        var upload = UploadTranscript(.draft)
        expectNil(
            upload.machine.received(
                interim: try UploadTranscript.head(104, fields), from: try #require(URL(string: "https://host/")), sent: 0))
        expectNil(upload.machine.location)
        try upload.interim(103, version, place)
        expectNil(upload.machine.location)
    }

    @Test func `a second or less secure location ends the upload`() throws {
        var upload = try placed()
        try upload.interim(104, version, place)
        try upload.interim(
            104, version, "Location: /up/2", is: .refuse(.init("the server sent two locations for one upload")))
        upload = UploadTranscript(.draft)
        try upload.interim(
            104, version, "Location: http://host/up",
            is: .refuse(.init("the upload's location leads from https to http", code: .redirectRefused)))
    }

    @Test func `an interim response counts as progress, as far as bytes were sent`() throws {
        var upload = try placed()
        try upload.interim(104, version, "Upload-Offset: 30", sent: 20)
        #expect(!upload.machine.hasProgressed)
        try upload.interim(104, version, "Upload-Offset: 20", sent: 20)
        #expect(upload.machine.hasProgressed)
        expectEqual(upload.machine.offset, 0)
    }

    @Test func `an upload whose last byte was not confirmed asks for its offset`() throws {
        var upload = try resumed()
        upload.lost(sent: 100, then: .askOffset)
        try upload.answer(204, complete, "Upload-Offset: 100", is: .final, then: nil)
        // All bytes have arrived, but the server has not received their end marker.
        upload = try resumed()
        upload.lost(sent: 100, then: .askOffset)
        try upload.answer(204, incomplete, "Upload-Offset: 100", is: .next, then: .append(offset: 100, count: 0))
        try upload.answer(200, complete, is: .final, then: nil)
        // The server did not confirm the end.
        upload = try resumed()
        try upload.answer(204, is: .next, then: .askOffset)
        try upload.answer(204, complete, "Upload-Offset: 100", is: .final, then: nil)
    }

    @Test func `a complete upload has the resource's response, even an error`() throws {
        var upload = try resumed()
        try upload.answer(503, complete, is: .final, then: nil)
        upload = try placed()
        try upload.answer(422, complete, is: .final, then: nil)
    }

    @Test func `a server that reports completion before the last byte is refused`() throws {
        var upload = try placed()
        upload.lost(sent: 80, then: .askOffset)
        try upload.refused(204, complete, "Upload-Offset: 60", because: "incomplete upload")
    }

    @Test func `an offset beyond the sent bytes, another length, or none, is refused`() throws {
        for (fields, reason) in [
            ([incomplete, "Upload-Offset: 81"], "only 80 were sent"),
            ([incomplete, "Upload-Offset: 101"], "of an upload of 100"),
            ([incomplete], "upload's offset"), ([incomplete, "Upload-Offset: 60", "Upload-Length: 90"], "of 90 bytes"),
            ([incomplete, "Upload-Offset: ?1"], "upload's offset"),
        ] {
            var upload = try placed()
            upload.lost(sent: 80, then: .askOffset)
            let verdict = upload.machine.received(
                try UploadTranscript.head(204, fields), from: try #require(upload.machine.location), sent: 0)
            guard case .refuse(let refusal) = verdict else {
                Issue.record("\(verdict)")
                continue
            }
            #expect(refusal.reason.contains(reason))
        }
    }

    @Test func `a different offset is adopted, the first time at once`() throws {
        var upload = try resumed()
        try upload.answer(409, "Upload-Offset: 70", sent: 75, is: .next, then: .append(offset: 70, count: 30))
        try upload.answer(
            409, "Upload-Offset: 70", sent: 75, is: .retry(isRequestedByServer: true), then: .append(offset: 70, count: 30))
        try upload.answer(409, sent: 75, is: .retry(isRequestedByServer: true), then: .askOffset)
        upload = try resumed()
        try upload.refused(409, "Upload-Offset: 99", sent: 75, because: "only 80 were sent")
    }

    @Test func `after a temporary error the offset is requested, after a refusal the upload ends`() throws {
        for status in [408, 429, 500, 503] {
            var upload = try placed()
            try upload.answer(status, sent: 40, is: .retry(isRequestedByServer: false), then: .askOffset)
            try upload.answer(status, is: .retry(isRequestedByServer: false), then: .askOffset)
            upload = try resumed()
            try upload.answer(status, sent: 70, is: .retry(isRequestedByServer: false), then: .askOffset)
        }
        var upload = UploadTranscript(.draft)
        try upload.answer(503, sent: 40, is: .retry(isRequestedByServer: false), then: .create(count: 100))
        for status in [404, 410] {
            upload = try resumed()
            try upload.answer(status, sent: 70, is: .final, then: nil)
            upload = try resumed(isIdempotent: true)
            try upload.answer(status, sent: 70, is: .next, then: .create(count: 100))
        }
    }

    // MARK: Limits

    @Test func `an upload limit stops a request, and parts follow`() throws {
        var upload = UploadTranscript(.draft)
        try upload.interim(104, version, place, "Upload-Limit: max-append-size=40", is: .acceptsOnlyParts)
        upload.lost(sent: 50, then: .askOffset)
        try upload.answer(204, incomplete, "Upload-Offset: 30", is: .next, then: .append(offset: 30, count: 40))
        try upload.answer(204, incomplete, is: .next, then: .append(offset: 70, count: 30))
        try upload.answer(200, complete, is: .final, then: nil)
    }

    @Test func `an upload that is too large is sent in parts if the server states a limit`() throws {
        var upload = UploadTranscript(.draft)
        try upload.answer(413, "Upload-Limit: max-append-size=40", sent: 60, is: .next, then: .create(count: 40))
        try upload.answer(201, place, incomplete, is: .next, then: .append(offset: 40, count: 40))
        try upload.answer(413, "Upload-Limit: max-append-size=20", is: .next, then: .askOffset)
        try upload.answer(204, incomplete, "Upload-Offset: 40", is: .next, then: .append(offset: 40, count: 20))
        upload = UploadTranscript(.draft)
        try upload.answer(413, sent: 60, is: .retry(isRequestedByServer: false), then: nil)
        upload = UploadTranscript(.draft)
        try upload.answer(413, "Upload-Limit: max-append-size=40", is: .next, then: .create(count: 40))
        try upload.refused(201, incomplete, because: "without a location")
    }

    @Test func `an upload above the server's maximum size is an invalid request`() throws {
        var upload = UploadTranscript(.draft)
        let refusal = UploadMachine.Refusal(
            "the server takes uploads of at most 99 bytes, and this one has 100", code: .invalidRequest)
        try upload.interim(104, version, place, "Upload-Limit: max-size=99", is: .refuse(refusal))
        upload = UploadTranscript(.draft)
        try upload.refused(413, "Upload-Limit: max-size=99", because: "at most 99", code: .invalidRequest)
        // A malformed limit is ignored.
        upload = UploadTranscript(.draft)
        try upload.interim(104, version, place, "Upload-Limit: max-size=99,")
    }

    // MARK: As HTTP has it

    @Test func `requests carry the fields of the draft`() throws {
        let url = try #require(URL(string: "https://host/files"))
        let original = TransferRequest(
            url: url, method: .put, headerFields: [.contentType: "video/mp4", .authorization: "Bearer x"],
            body: .data(Data(count: 100)))
        func text(_ upload: UploadTranscript) -> [String] {
            let request = upload.machine.transferRequest(of: original)
            return ["\(request.method) \(request.url)"]
                + request.headerFields.map { "\($0.name.canonicalName): \($0.value)" }.sorted()
        }
        var upload = UploadTranscript(.draft)
        expectEqual(
            text(upload),
            [
                "PUT https://host/files", "authorization: Bearer x", "content-type: video/mp4", "upload-complete: ?1",
                "upload-draft-interop-version: 8", "upload-length: 100", "want-repr-digest: sha-256=10, sha-512=5",
            ])
        try upload.answer(413, "Upload-Limit: max-append-size=40", is: .next, then: .create(count: 40))
        #expect(text(upload).contains("upload-complete: ?0"))
        try upload.answer(201, place, incomplete, is: .next, then: .append(offset: 40, count: 40))
        expectEqual(
            text(upload),
            [
                "PATCH https://host/up/1", "authorization: Bearer x", "content-type: application/partial-upload",
                "upload-complete: ?0", "upload-draft-interop-version: 8", "upload-offset: 40",
            ])
        try upload.answer(204, incomplete, is: .next, then: .append(offset: 80, count: 20))
        #expect(text(upload).contains("upload-complete: ?1"))
        upload.lost(sent: 90, then: .askOffset)
        expectEqual(text(upload), ["HEAD https://host/up/1", "authorization: Bearer x", "upload-draft-interop-version: 8"])
    }
}
