import EventLoop
import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSession

/// Downloads that continue the partial file of an earlier task.
@Suite(.timeLimit(.minutes(20))) struct PartialFileResumeTests: PartialFileSuite {
    let folder: ScratchDirectory
    let log = EventLog()

    init() throws { folder = try ScratchDirectory() }

    // MARK: Partial files beside the destination

    @Test func `a complete partial file that a 304 confirms gives a response with status 200`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place())
        // A process that is killed after the last byte leaves this.
        let handle = try FileHandle(forWritingTo: folder.url("file.netwatch-part"))
        try handle.seekToEnd()
        try handle.write(contentsOf: pattern(size).suffix(from: Int(cut)))
        try handle.close()
        source.sendCompleteResponses()
        let response = try await download(source, to: place())
        expectEqual(response.statusCode, 200)
        expectEqual(response.head.headerFields[.eTag], "\"1\"")
        expectEqual(response.metrics.transactions.map(\.statusCode), [304])
        try expectCompleteFile()
    }

    @Test func `another task continues the partial file of a failed one`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place())
        expectEqual(folder.names.sorted(), ["file.netwatch-part", "file.netwatch-part.json"])
        source.sendCompleteResponses()
        let response = try await download(source, to: place())
        try expectCompleteFile()
        expectEqual(response.metrics.bytesContinued, cut)
        expectEqual(source.ranges, [nil, "bytes=600000-"])
        await log.await("completed")
        #expect(log.names.contains("continued 600000 of 1000000"))
        #expect(log.names.contains("moved"))
    }

    @Test func `with partialFile remove a failed download leaves no partial file`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place("file", .remove))
        expectEmpty(folder.names)
    }

    @Test func `a partial file of another version is downloaded from its beginning`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place())
        source.sendCompleteResponses(tag: "\"2\"")
        try await expectEqual(download(source, to: place()).metrics.bytesContinued, 0)
        try expectCompleteFile()
    }

    @Test func `with partialFile restart an existing partial file is not continued`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place())
        source.sendCompleteResponses()
        _ = try await download(source, to: place("file", .restart))
        try expectCompleteFile()
        expectEqual(source.ranges, [nil, nil])
    }

    @Test func `a partial file of another URL is not continued, unless the expected digest is the same`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place())
        source.sendCompleteResponses()
        _ = try await download(source, to: place(), path: "/other")
        try expectCompleteFile()
        expectEqual(source.ranges, [nil, nil])

        let digested = try CutFileServer()
        try await fail(digested, to: place("second", .keep, try digest))
        digested.sendCompleteResponses()
        _ = try await download(digested, to: place("second", .keep, try digest), path: "/other")
        try expectCompleteFile("second", besides: ["file"])
        expectEqual(digested.ranges, [nil, "bytes=600000-"])
        expectNil(digested.server.requests.last?["if-range"])
    }

    @Test func `a 404 leaves the partial file unchanged`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place())
        let broken = try TestServer { _ in StubResponse(404) }
        let task = try session().downloadTask(for: TransferRequest(url: broken.url("/file")), to: place())
        await expectEqual(failure(task)?.code, .unacceptableStatus)
        source.sendCompleteResponses()
        try await expectEqual(download(source, to: place()).metrics.bytesContinued, cut)
        try expectCompleteFile()
    }

    @Test func `after a reboot only the synced bytes of a partial file count`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place())
        let part = folder.file("file.netwatch-part")
        var sidecar = try #require(try SidecarFile.read(besides: part))
        expectEqual(sidecar.synced, cut)
        (sidecar.boot, sidecar.synced) = ("another", 500_000)
        try SidecarFile.write(sidecar, besides: part)
        source.sendCompleteResponses()
        try await expectEqual(download(source, to: place()).metrics.bytesContinued, 500_000)
        try expectCompleteFile()
    }

    @Test func `a partial file that was complete when its process was killed is only revalidated`() async throws {
        let source = try CutFileServer()
        source.sendCompleteResponses()
        let part = folder.file("file.netwatch-part")
        let resumption = Resumption(
            url: source.server.url("/file"), validator: .entityTag("\"1\""), total: size, digest: nil)
        try SidecarFile.write(
            Sidecar(resumption: try #require(resumption), start: source.server.url("/file"), boot: BootIdentifier.current),
            besides: part)
        try pattern(size).write(to: URL(fileURLWithPath: part))
        try await expectEqual(download(source, to: place()).metrics.bytesContinued, size)
        try expectCompleteFile()
        expectEqual(source.server.requests.map { $0["if-none-match"] }, ["\"1\""])
    }

    @Test func `a partial file with a damaged sidecar is not continued`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place())
        try Data("{".utf8).write(to: folder.url("file.netwatch-part.json"))
        source.sendCompleteResponses()
        try await expectEqual(download(source, to: place()).metrics.bytesContinued, 0)
        try expectCompleteFile()
    }

    @Test func `a sidecar of a newer version is an error, and the partial file is kept`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place())
        try Data(#"{"version":2}"#.utf8).write(to: folder.url("file.netwatch-part.json"))
        let error = await failure(try session().downloadTask(for: TransferRequest(url: source.server.url("/file")), to: place()))
        expectEqual(error?.code, .cannotReadFile)
        try expectEqual(Data(contentsOf: folder.url("file.netwatch-part")).count, Int(cut))
        expectEqual(source.server.requests.count, 1)
    }

    @Test func `a second task for the same partial file fails while the first one runs`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(
                body: StubBody([.pattern(from: 0, count: 700_000), .wait(.gate(gate)), .pattern(from: 700_000, count: 300_000)]))
        }
        let session = try session()
        let first = session.downloadTask(for: TransferRequest(url: server.url()), to: place())
        await first.awaitProgress { $0.bytesReceived > 0 }
        let error = await failure(session.downloadTask(for: TransferRequest(url: server.url()), to: place()))
        expectEqual(error?.code, .cannotWriteFile)
        #expect(error?.reason.hasSuffix("is already being downloaded") == true)
        gate.open()
        _ = try await first.response
        try expectCompleteFile()
    }

    @Test func `a symbolic link or a FIFO in the place of the partial file is left untouched`() async throws {
        let server = try TestServer { _ in StubResponse(body: "done") }
        try FileManager.default.createSymbolicLink(
            at: folder.url("file.netwatch-part"), withDestinationURL: folder.url("elsewhere"))
        expectEqual(mkfifo(folder.file("pipe.netwatch-part"), 0o600), 0)
        for name in ["file", "pipe"] {
            _ = try await session().downloadTask(for: TransferRequest(url: server.url()), to: place(name)).response
            try expectEqual(String(contentsOf: folder.url(name), encoding: .utf8), "done")
        }
        expectEqual(folder.names, ["file", "file.netwatch-part", "pipe", "pipe.netwatch-part"])
    }

    @Test func `a task suspended while its partial file is opened starts after it is resumed`() async throws {
        let source = try CutFileServer()
        source.sendCompleteResponses()
        let session = try session()
        for number in 0..<20 {
            let task = session.downloadTask(for: TransferRequest(url: source.server.url()), to: place("file\(number)"))
            task.suspend()
            task.resume()
            _ = try await task.response
            let cancelled = session.downloadTask(for: TransferRequest(url: source.server.url()), to: place("cancelled\(number)"))
            cancelled.cancel()
            // The task may have finished before it was canceled.
            let error = await failure(cancelled)
            #expect(error == nil || error?.code == .cancelled)
        }
        expectEqual(folder.names.count { $0.hasPrefix("file") }, 20)
    }

    // MARK: Digests

    @Test func `a file with the expected digest is moved to its destination, another is removed`() async throws {
        let source = try CutFileServer()
        source.sendCompleteResponses()
        _ = try await download(source, to: place("file", .keep, try digest))
        try expectCompleteFile()
        let wrong = try #require(ContentDigest(.sha256, Data(repeating: 0, count: 32)))
        for partialFile in [DownloadDestination.PartialFilePolicy.keep, .remove] {
            let task = try session().downloadTask(
                for: TransferRequest(url: source.server.url()), to: place("wrong", partialFile, wrong))
            await expectEqual(failure(task)?.code, .digestMismatch)
        }
        expectEqual(folder.names, ["file"])
    }

    @Test func `a digest mismatch of a continued partial file requests the complete file`() async throws {
        let source = try CutFileServer()
        try await fail(source, to: place("file", .keep, try digest))
        // The partial file differs, but its validator and length are the server's.
        try Data(repeating: 0, count: Int(cut)).write(to: folder.url("file.netwatch-part"))
        source.sendCompleteResponses()
        let response = try await download(source, to: place("file", .keep, try digest))
        try expectCompleteFile()
        expectEqual(source.ranges, [nil, "bytes=600000-", nil])
        expectEqual(response.statusCode, 200)
    }

    @Test func `the server's own Repr-Digest is checked`() async throws {
        let source = try CutFileServer()
        source.sendCompleteResponses()
        source.setDigest("sha-256=:\(try digest.bytes.base64EncodedString()):")
        _ = try await download(source, to: place())
        try expectCompleteFile()
        source.setDigest("sha-256=:\(Data(repeating: 0, count: 32).base64EncodedString()):")
        let task = try session().downloadTask(for: TransferRequest(url: source.server.url()), to: place("wrong"))
        await expectEqual(failure(task)?.code, .digestMismatch)
        expectEqual(folder.names, ["file"])
    }
}
