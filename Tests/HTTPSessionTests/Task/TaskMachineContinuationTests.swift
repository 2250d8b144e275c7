import Expectations
import Foundation
import HTTPTypes
import Testing

@testable import HTTPSession

/// A download with a partial file: what it requests, and how it proceeds after each response (RFC 9110 sections 14.4 and 15.3.7).
@Suite struct TaskMachineContinuationTests {
    private static let destination = DownloadDestination(URL(fileURLWithPath: "/tmp/file"))

    /// A download whose connection was lost after 50,000 of 100,000 bytes, and which has a new connection.
    private func interrupted() throws -> TaskTranscript {
        let task = try TaskTranscript(to: .file(Self.destination))
        task.start()
        try expectEqual(task.head(200, "ETag: \"1\"", "Content-Length: 100000"), "open sink")
        _ = task.body(50_000)
        expectEqual(task.endTransfer(.connectionLost), "report retry after connection-lost, backingOff, release slot")
        expectEqual(task.afterDeadline(), "waiting, enqueue first")
        task.startNextAttempt()
        expectEqual(task.addedLines, ["Range: bytes=50000-", "If-Range: \"1\"", "Accept-Encoding: identity"])
        return task
    }

    @Test func `206 with the remaining range is appended`() throws {
        let task = try interrupted()
        try expectEqual(
            task.head(206, "ETag: \"1\"", "Content-Range: bytes 50000-99999/100000"), "report continued at 50000 of 100000")
        _ = task.body(50_000)
        expectEqual(task.endTransfer(), "release slot, report moved, end 200")
        expectEqual(task.progress.bytesReceived, 100_000)
        expectEqual(task.metrics.bytesContinued, 50_000)
    }

    @Test func `206 shorter than requested: the remaining range is requested at once`() throws {
        let task = try interrupted()
        _ = try task.head(206, "ETag: \"1\"", "Content-Range: bytes 50000-79999/100000")
        _ = task.body(30_000)
        expectEqual(task.endTransfer(), "release slot, waiting, enqueue first")
        task.startNextAttempt()
        expectEqual(task.addedLines.first, "Range: bytes=80000-")
        // After a few bytes the task backs off.
        _ = try task.head(206, "ETag: \"1\"", "Content-Range: bytes 80000-80009/100000")
        _ = task.body(10)
        expectEqual(task.endTransfer(), "report retry after connection-lost, backingOff, release slot")
    }

    @Test func `206 longer than the remaining range is refused`() throws {
        let task = try interrupted()
        _ = try task.head(206, "ETag: \"1\"", "Content-Range: bytes 50000-99999/100000")
        expectEqual(task.body(50_001), "refuse: the server sent more than the remaining range")
    }

    @Test func `a compressed response that overflows libcurl's memory during a pause is read in small pieces, once`() throws {
        for (fields, ending) in [
            (["Content-Encoding: gzip"], "release slot, waiting, enqueue first"), ([], "release slot, end transfer-failed"),
        ] {
            let task = try TaskTranscript(to: .file(Self.destination))
            task.start()
            _ = try task.head(200, lines: fields[...])
            expectEqual(task.endTransfer(.transferFailed, curlCode: 27), ending)
            expectEqual(task.readsSmallPieces, !fields.isEmpty)
            guard task.readsSmallPieces else { continue }
            task.startNextAttempt()
            _ = try task.head(200, lines: fields[...])
            expectEqual(task.endTransfer(.transferFailed, curlCode: 27), "release slot, end transfer-failed")
        }
    }

    @Test func `206 without a range request is refused`() throws {
        let task = try TaskTranscript(to: .file(Self.destination))
        task.start()
        expectEqual(task.addedLines, ["Accept-Encoding: identity"])
        try expectEqual(
            task.head(206, "Content-Range: bytes 0-9/10"),
            "abort: the server sent partial content (206) that was not requested")
    }

    @Test(arguments: [
        ["206", "ETag: \"2\"", "Content-Range: bytes 50000-99999/100000"],
        ["206", "ETag: \"1\"", "Content-Range: bytes 49999-99999/100000"],
        ["206", "ETag: \"1\""], ["304"], ["412"], ["416", "Content-Range: bytes */70000"],
    ])
    func `206 of another version or without its range restarts the download`(_ answer: [String]) throws {
        let task = try interrupted()
        try expectEqual(
            task.head(try #require(Int(answer[0])), lines: answer.dropFirst()),
            "abort: the remaining range is of another version")
        expectEqual(task.endTransfer(.badServerResponse), "release slot, waiting, enqueue first")
        task.startNextAttempt()
        expectEqual(task.addedLines, ["Accept-Encoding: identity"])
    }

    @Test func `200 replaces the partial file`() throws {
        let task = try interrupted()
        try expectEqual(task.head(200, "ETag: \"2\"", "Content-Length: 70000"), "open sink")
        expectEqual(task.progress.bytesReceived, 0)
        _ = task.body(70_000)
        expectEqual(task.endTransfer(), "release slot, report moved, end 200")
    }

    @Test func `416 behind the last byte completes the download`() throws {
        let task = try TaskTranscript(to: .file(Self.destination))
        task.start()
        // The length is unknown before the end of the body, which does not arrive.
        try expectEqual(task.head(200, "ETag: \"1\""), "open sink")
        _ = task.body(50_000)
        _ = task.endTransfer(.connectionLost)
        _ = task.afterDeadline()
        task.startNextAttempt()
        expectEqual(task.addedLines.first, "Range: bytes=50000-")
        try expectEqual(task.head(416, "ETag: \"1\"", "Content-Range: bytes */50000"), "")
        expectEqual(task.endTransfer(), "release slot, report moved, end 200")
    }

    @Test func `304 behind the last byte completes the download`() throws {
        let task = try TaskTranscript(to: .file(Self.destination))
        task.start()
        _ = try task.head(200, "ETag: \"1\"", "Content-Length: 50000")
        _ = task.body(50_000)
        _ = task.endTransfer(.connectionLost)
        _ = task.afterDeadline()
        task.startNextAttempt()
        expectEqual(task.addedLines.first, "If-None-Match: \"1\"")
        try expectEqual(task.head(304, "ETag: \"1\""), "")
        expectEqual(task.endTransfer(), "release slot, report moved, end 200")
    }

    @Test func `an error response keeps the partial file`() throws {
        let task = try interrupted()
        try expectEqual(task.head(503), "")
        expectEqual(task.endTransfer(), "report retry after unacceptable-status, backingOff, release slot")
        _ = task.afterDeadline()
        task.startNextAttempt()
        expectEqual(task.addedLines.first, "Range: bytes=50000-")
        try expectEqual(task.head(404), "")
        expectEqual(task.endTransfer(), "release slot, end unacceptable-status")
    }

    @Test(arguments: [401, 403, 404, 410]) func `an expired redirect target returns to the first URL`(
        _ status: Int
    ) throws {
        let task = try TaskTranscript(.get, "https://host/first", to: .file(Self.destination))
        task.start()
        _ = try task.head(302, "Location: /signed")
        _ = task.endTransfer()
        task.startNextAttempt()
        _ = try task.head(200, "ETag: \"1\"", "Content-Length: 100000")
        _ = task.body(50_000)
        _ = task.endTransfer(.connectionLost)
        _ = task.afterDeadline()
        expectEqual(task.request, "GET https://host/signed")
        task.startNextAttempt()
        try expectEqual(task.head(status), "")
        expectEqual(task.endTransfer(), "release slot, waiting, enqueue first")
        expectEqual(task.request, "GET https://host/first")
        // This happens once: the next redirect target's response counts.
        task.startNextAttempt()
        _ = try task.head(302, "Location: /signed")
        _ = task.endTransfer()
        task.startNextAttempt()
        try expectEqual(task.head(status), "")
        expectEqual(task.endTransfer(), "release slot, end unacceptable-status")
    }

    @Test func `a digest mismatch restarts the download once`() throws {
        let digest = try #require(ContentDigest(sha256: String(repeating: "0", count: 64)))
        let place = DownloadDestination(URL(fileURLWithPath: "/tmp/file"), expectedDigest: digest)
        let task = try TaskTranscript(to: .file(place))
        task.start()
        _ = try task.head(200, "ETag: \"1\"", "Content-Length: 100000")
        _ = task.body(50_000)
        _ = task.endTransfer(.connectionLost)
        _ = task.afterDeadline()
        task.startNextAttempt()
        _ = try task.head(206, "ETag: \"1\"", "Content-Range: bytes 50000-99999/100000")
        _ = task.body(50_000)
        task.digestMatches = false
        expectEqual(task.endTransfer(), "verify, release slot, waiting, enqueue first")
        task.startNextAttempt()
        expectEqual(task.addedLines, ["Accept-Encoding: identity"])
        try expectEqual(task.head(200, "Content-Length: 1"), "open sink")
        _ = task.body(1)
        expectEqual(task.endTransfer(), "verify, release slot, end digest-mismatch")
    }

    @Test func `the partial file of an earlier download is opened first`() throws {
        let place = DownloadDestination(URL(fileURLWithPath: "/tmp/file"), partialFile: .keep)
        let task = try TaskTranscript(.get, "https://host/file", to: .file(place))
        _ = task(.resume)
        expectEqual(task(.admitted), "running, open partial file")
        let url = try #require(URL(string: "https://host/file"))
        let resumption = try #require(Resumption(url: url, validator: .entityTag("\"1\""), total: 100, digest: nil))
        let part = (sidecar: Sidecar(resumption: resumption, start: url, boot: "1"), length: Int64(40))
        expectEqual(task(.partialFileOpened(.success(.init(part: part)))), "start")
        expectEqual(task.addedLines, ["Range: bytes=40-", "If-Range: \"1\"", "Accept-Encoding: identity"])
        let locked = try TaskTranscript(to: .file(place))
        _ = locked(.resume)
        _ = locked(.admitted)
        expectEqual(
            locked(.partialFileOpened(.failure(HTTPSessionError(.cannotWriteFile, "locked")))),
            "release slot, end cannot-write-file")
    }
}
