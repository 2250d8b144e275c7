import Foundation
import HTTPTypes
import Testing

@testable import HTTPSession

/// A download that has a beginning: what it asks for, and what follows from each answer (RFC 9110 sections 14.4 and 15.3.7).
@Suite struct TransferMachineRestTests {
    private static let destination = DownloadDestination(URL(fileURLWithPath: "/tmp/file"))

    /// A download whose connection was lost behind 50,000 of 100,000 bytes, and which has another connection.
    private func interrupted() throws -> TransferTranscript {
        let task = try TransferTranscript(kind: .download, to: .file(Self.destination))
        task.starts()
        #expect(try task.head(200, "ETag: \"1\"", "Content-Length: 100000") == "open")
        _ = task.body(50_000)
        #expect(task.ends(.connectionLost) == "tell retry after connection-lost, backingOff, give up the place")
        #expect(task.afterItsWait() == "waiting, queue first")
        task.goesOn()
        #expect(task.addedLines == ["Range: bytes=50000-", "If-Range: \"1\"", "Accept-Encoding: identity"])
        return task
    }

    @Test func `206: the rest goes behind what is here`() throws {
        let task = try interrupted()
        #expect(
            try task.head(206, "ETag: \"1\"", "Content-Range: bytes 50000-99999/100000") == "tell continued at 50000 of 100000")
        _ = task.body(50_000)
        #expect(task.ends() == "give up the place, tell moved, end 200")
        #expect(task.progress.received == 100_000)
        #expect(task.metrics.bytesResumed == 50_000)
    }

    @Test func `206 that is shorter than what was asked for: the rest of the rest follows at once`() throws {
        let task = try interrupted()
        _ = try task.head(206, "ETag: \"1\"", "Content-Range: bytes 50000-79999/100000")
        _ = task.body(30_000)
        #expect(task.ends() == "give up the place, waiting, queue first")
        task.goesOn()
        #expect(task.addedLines.first == "Range: bytes=80000-")
        // One that brought hardly anything waits.
        _ = try task.head(206, "ETag: \"1\"", "Content-Range: bytes 80000-80009/100000")
        _ = task.body(10)
        #expect(task.ends() == "tell retry after connection-lost, backingOff, give up the place")
    }

    @Test func `206 with more than the rest is refused`() throws {
        let task = try interrupted()
        _ = try task.head(206, "ETag: \"1\"", "Content-Range: bytes 50000-99999/100000")
        #expect(task.body(50_001) == "refuse: the server sent more than the rest")
    }

    @Test func `206 that nobody asked for is refused`() throws {
        let task = try TransferTranscript(kind: .download, to: .file(Self.destination))
        task.starts()
        #expect(task.addedLines == ["Accept-Encoding: identity"])
        #expect(
            try task.head(206, "Content-Range: bytes 0-9/10")
                == "abort: the server sent a part (206) where the whole was asked for")
    }

    @Test(arguments: [
        ["206", "ETag: \"2\"", "Content-Range: bytes 50000-99999/100000"],
        ["206", "ETag: \"1\"", "Content-Range: bytes 49999-99999/100000"],
        ["206", "ETag: \"1\""], ["304"], ["412"], ["416", "Content-Range: bytes */70000"],
    ])
    func `what is of another version, or says nothing of its place, has the whole asked for`(_ answer: [String]) throws {
        let task = try interrupted()
        #expect(try task.head(try #require(Int(answer[0])), lines: answer.dropFirst()) == "abort: the rest is of another version")
        #expect(task.ends(.badServerResponse) == "give up the place, waiting, queue first")
        task.goesOn()
        #expect(task.addedLines == ["Accept-Encoding: identity"])
    }

    @Test func `200: the whole takes the place of what is here`() throws {
        let task = try interrupted()
        #expect(try task.head(200, "ETag: \"2\"", "Content-Length: 70000") == "open")
        #expect(task.progress.received == 0)
        _ = task.body(70_000)
        #expect(task.ends() == "give up the place, tell moved, end 200")
    }

    @Test func `416 behind the whole: all is here`() throws {
        let task = try TransferTranscript(kind: .download, to: .file(Self.destination))
        task.starts()
        // Its length is not known before its end, which does not come.
        #expect(try task.head(200, "ETag: \"1\"") == "open")
        _ = task.body(50_000)
        _ = task.ends(.connectionLost)
        _ = task.afterItsWait()
        task.goesOn()
        #expect(task.addedLines.first == "Range: bytes=50000-")
        #expect(try task.head(416, "ETag: \"1\"", "Content-Range: bytes */50000") == "")
        #expect(task.ends() == "give up the place, tell moved, end 200")
    }

    @Test func `304 behind the whole: all is here`() throws {
        let task = try TransferTranscript(kind: .download, to: .file(Self.destination))
        task.starts()
        _ = try task.head(200, "ETag: \"1\"", "Content-Length: 50000")
        _ = task.body(50_000)
        _ = task.ends(.connectionLost)
        _ = task.afterItsWait()
        task.goesOn()
        #expect(task.addedLines.first == "If-None-Match: \"1\"")
        #expect(try task.head(304, "ETag: \"1\"") == "")
        #expect(task.ends() == "give up the place, tell moved, end 200")
    }

    @Test func `an error says nothing of what is here`() throws {
        let task = try interrupted()
        #expect(try task.head(503) == "")
        #expect(task.ends() == "tell retry after unacceptable-status, backingOff, give up the place")
        _ = task.afterItsWait()
        task.goesOn()
        #expect(task.addedLines.first == "Range: bytes=50000-")
        #expect(try task.head(404) == "")
        #expect(task.ends() == "give up the place, end unacceptable-status")
    }

    @Test(arguments: [401, 403, 404, 410]) func `the address that a redirect led to has expired: the first one is asked again`(
        _ status: Int
    ) throws {
        let task = try TransferTranscript(.get, "https://host/first", kind: .download, to: .file(Self.destination))
        task.starts()
        _ = try task.head(302, "Location: /signed")
        _ = task.ends()
        task.goesOn()
        _ = try task.head(200, "ETag: \"1\"", "Content-Length: 100000")
        _ = task.body(50_000)
        _ = task.ends(.connectionLost)
        _ = task.afterItsWait()
        #expect(task.request == "GET https://host/signed")
        task.goesOn()
        #expect(try task.head(status) == "")
        #expect(task.ends() == "give up the place, waiting, queue first")
        #expect(task.request == "GET https://host/first")
        // Once: what it leads to then is meant.
        task.goesOn()
        _ = try task.head(302, "Location: /signed")
        _ = task.ends()
        task.goesOn()
        #expect(try task.head(status) == "")
        #expect(task.ends() == "give up the place, end unacceptable-status")
    }

    @Test func `a digest that does not fit has the whole asked for, once`() throws {
        let digest = try #require(ContentDigest(sha256: String(repeating: "0", count: 64)))
        let place = DownloadDestination(URL(fileURLWithPath: "/tmp/file"), expectedDigest: digest)
        let task = try TransferTranscript(kind: .download, to: .file(place))
        task.starts()
        _ = try task.head(200, "ETag: \"1\"", "Content-Length: 100000")
        _ = task.body(50_000)
        _ = task.ends(.connectionLost)
        _ = task.afterItsWait()
        task.goesOn()
        _ = try task.head(206, "ETag: \"1\"", "Content-Range: bytes 50000-99999/100000")
        _ = task.body(50_000)
        task.isWhole = false
        #expect(task.ends() == "verify, give up the place, waiting, queue first")
        task.goesOn()
        #expect(task.addedLines == ["Accept-Encoding: identity"])
        #expect(try task.head(200, "Content-Length: 1") == "open")
        _ = task.body(1)
        #expect(task.ends() == "verify, give up the place, end digest-mismatch")
    }

    @Test func `the part of an earlier download is looked at first`() throws {
        let place = DownloadDestination(URL(fileURLWithPath: "/tmp/file"), partialFile: .keep)
        let task = try TransferTranscript(.get, "https://host/file", kind: .download, to: .file(place))
        _ = task(.resume)
        #expect(task(.admitted) == "running, open the part")
        let url = try #require(URL(string: "https://host/file"))
        let resumption = try #require(Resumption(url: url, validator: .entityTag("\"1\""), total: 100, digest: nil))
        let part = (sidecar: Sidecar(resumption: resumption, start: url, boot: "1"), length: Int64(40))
        #expect(task(.partOpened(.success(.init(part: part)))) == "start")
        #expect(task.addedLines == ["Range: bytes=40-", "If-Range: \"1\"", "Accept-Encoding: identity"])
        let locked = try TransferTranscript(kind: .download, to: .file(place))
        _ = locked(.resume)
        _ = locked(.admitted)
        #expect(
            locked(.partOpened(.failure(HTTPSessionError(.cannotWriteFile, "locked"))))
                == "give up the place, end cannot-write-file")
    }
}
