import EventLoop
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSession

/// Downloads that a later task continues: a file of 1,000,000 bytes, of which the first task receives 600,000.
@Suite(.timeLimit(.minutes(20))) struct PartialFileResumeTests {
    private let folder: ScratchDirectory
    private let log = EventLog()
    private let size: Int64 = 1_000_000
    private let cut: Int64 = 600_000

    init() throws { folder = try ScratchDirectory() }

    private func session(_ change: (inout SessionConfiguration) -> Void = { _ in }) throws -> HTTPSessionManager {
        try HTTPSessionManager(configuration: localConfiguration(change), monitors: [log])
    }

    private func resumingSession() throws -> HTTPSessionManager {
        try session { $0.resumeDirectory = folder.url("resume") }
    }

    /// A server with one version of the file, and its settings. It truncates complete responses after `cut` bytes unless `cut` is
    /// nil.
    private final class Source: Sendable {
        let log = Log()
        let server: TestServer

        final class Log: Sendable {
            let state = Locked((tag: "\"1\"", cut: Int64?.some(600_000), digest: String?.none))
        }

        init(size: Int64 = 1_000_000) throws {
            server = try TestServer { [log] request in
                let (tag, cut, digest) = log.state.withLock { $0 }
                var fields = [("ETag", tag)]
                if let digest { fields.append(("Repr-Digest", digest)) }
                var reply: StubResponse
                let start = request["range"].flatMap { Int64($0.dropFirst("bytes=".count).dropLast()) }
                if request["if-none-match"] == tag {
                    reply = StubResponse(304)
                } else if let start, request["if-range"] ?? tag == tag {
                    reply = StubResponse(206, body: StubBody([.pattern(from: start, count: size - start)]))
                    fields.append(("Content-Range", "bytes \(start)-\(size - 1)/\(size)"))
                } else {
                    reply = StubResponse(body: .pattern(size))
                    if let cut { reply = reply.cut(afterBodyBytes: cut, .truncated) }
                }
                for (name, value) in fields { reply = reply.field(name, value) }
                reply.pieceBytes = 50_000
                return reply
            }
        }

        /// Sends complete responses from now on.
        func sendCompleteResponses(tag: String = "\"1\"") { log.state.withLock { ($0.tag, $0.cut) = (tag, nil) } }
        func setDigest(_ digest: String) { log.state.withLock { $0.digest = digest } }
        var ranges: [String?] { server.requests.map { $0["range"] } }
    }

    private func place(
        _ name: String = "file", _ partialFile: DownloadDestination.PartialFilePolicy = .keep, _ digest: ContentDigest? = nil
    ) -> DownloadDestination {
        DownloadDestination(folder.url(name), partialFile: partialFile, expectedDigest: digest)
    }

    private var digest: ContentDigest {
        get throws {
            try #require(ContentDigest.sha256(of: Data(pattern(size))))
        }
    }

    /// A download that is cut off in the middle.
    private func fail(_ source: Source, to place: DownloadDestination, path: String = "/file") async throws {
        let error = await failure(try session().downloadTask(for: TransferRequest(url: source.server.url(path)), to: place))
        #expect(error?.code == .connectionLost)
        #expect(error?.resumeData == nil)
    }

    private func download(
        _ source: Source, to place: DownloadDestination, path: String = "/file"
    ) async throws -> TransferResponse {
        try await session().downloadTask(for: TransferRequest(url: source.server.url(path)), to: place).response
    }

    private func expectCompleteFile(_ name: String = "file", besides others: [String] = []) throws {
        #expect(try Data(contentsOf: folder.url(name)) == pattern(size))
        #expect(folder.names.sorted() == ([name] + others).sorted())
    }

    // MARK: Partial files beside the destination

    @Test func `a complete partial file that a 304 confirms gives a response with status 200`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        // A process that is killed after the last byte leaves this.
        let handle = try FileHandle(forWritingTo: folder.url("file.netwatch-part"))
        try handle.seekToEnd()
        try handle.write(contentsOf: pattern(size).suffix(from: Int(cut)))
        try handle.close()
        source.sendCompleteResponses()
        let response = try await download(source, to: place())
        #expect(response.statusCode == 200)
        #expect(response.head.headerFields[.eTag] == "\"1\"")
        #expect(response.metrics.transactions.map(\.statusCode) == [304])
        try expectCompleteFile()
    }

    @Test func `another task continues the partial file of a failed one`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        #expect(folder.names.sorted() == ["file.netwatch-part", "file.netwatch-part.json"])
        source.sendCompleteResponses()
        let response = try await download(source, to: place())
        try expectCompleteFile()
        #expect(response.metrics.bytesResumed == cut)
        #expect(source.ranges == [nil, "bytes=600000-"])
        await log.await("completed")
        #expect(log.names.contains("continued 600000 of 1000000"))
        #expect(log.names.contains("moved"))
    }

    @Test func `with partialFile remove a failed download leaves no partial file`() async throws {
        let source = try Source()
        try await fail(source, to: place("file", .remove))
        #expect(folder.names.isEmpty)
    }

    @Test func `a partial file of another version is downloaded from its beginning`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        source.sendCompleteResponses(tag: "\"2\"")
        #expect(try await download(source, to: place()).metrics.bytesResumed == 0)
        try expectCompleteFile()
    }

    @Test func `with partialFile restart an existing partial file is not continued`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        source.sendCompleteResponses()
        _ = try await download(source, to: place("file", .restart))
        try expectCompleteFile()
        #expect(source.ranges == [nil, nil])
    }

    @Test func `a partial file of another URL is not continued, unless the expected digest is the same`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        source.sendCompleteResponses()
        _ = try await download(source, to: place(), path: "/other")
        try expectCompleteFile()
        #expect(source.ranges == [nil, nil])

        let digested = try Source()
        try await fail(digested, to: place("second", .keep, try digest))
        digested.sendCompleteResponses()
        _ = try await download(digested, to: place("second", .keep, try digest), path: "/other")
        try expectCompleteFile("second", besides: ["file"])
        #expect(digested.ranges == [nil, "bytes=600000-"])
        #expect(digested.server.requests.last?["if-range"] == nil)
    }

    @Test func `a 404 leaves the partial file unchanged`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        let broken = try TestServer { _ in StubResponse(404) }
        let task = try session().downloadTask(for: TransferRequest(url: broken.url("/file")), to: place())
        #expect(await failure(task)?.code == .unacceptableStatus)
        source.sendCompleteResponses()
        #expect(try await download(source, to: place()).metrics.bytesResumed == cut)
        try expectCompleteFile()
    }

    @Test func `after a reboot only the synced bytes of a partial file count`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        let part = folder.file("file.netwatch-part")
        var sidecar = try #require(try SidecarFile.read(besides: part))
        #expect(sidecar.synced == cut)
        (sidecar.boot, sidecar.synced) = ("another", 500_000)
        try SidecarFile.write(sidecar, besides: part)
        source.sendCompleteResponses()
        #expect(try await download(source, to: place()).metrics.bytesResumed == 500_000)
        try expectCompleteFile()
    }

    @Test func `a partial file that was complete when its process was killed is only revalidated`() async throws {
        let source = try Source()
        source.sendCompleteResponses()
        let part = folder.file("file.netwatch-part")
        let resumption = Resumption(
            url: source.server.url("/file"), validator: .entityTag("\"1\""), total: size, digest: nil)
        try SidecarFile.write(
            Sidecar(resumption: try #require(resumption), start: source.server.url("/file"), boot: BootIdentifier.current),
            besides: part)
        try pattern(size).write(to: URL(fileURLWithPath: part))
        #expect(try await download(source, to: place()).metrics.bytesResumed == size)
        try expectCompleteFile()
        #expect(source.server.requests.map { $0["if-none-match"] } == ["\"1\""])
    }

    @Test func `a partial file with a damaged sidecar is not continued`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        try Data("{".utf8).write(to: folder.url("file.netwatch-part.json"))
        source.sendCompleteResponses()
        #expect(try await download(source, to: place()).metrics.bytesResumed == 0)
        try expectCompleteFile()
    }

    @Test func `a sidecar of a newer version is an error, and the partial file is kept`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        try Data(#"{"version":2}"#.utf8).write(to: folder.url("file.netwatch-part.json"))
        let error = await failure(try session().downloadTask(for: TransferRequest(url: source.server.url("/file")), to: place()))
        #expect(error?.code == .cannotReadFile)
        #expect(try Data(contentsOf: folder.url("file.netwatch-part")).count == Int(cut))
        #expect(source.server.requests.count == 1)
    }

    @Test func `a second task for the same partial file fails while the first one runs`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(
                body: StubBody([.pattern(from: 0, count: 700_000), .wait(.gate(gate)), .pattern(from: 700_000, count: 300_000)]))
        }
        let session = try session()
        let first = session.downloadTask(for: TransferRequest(url: server.url()), to: place())
        await first.awaitProgress { $0.received > 0 }
        let error = await failure(session.downloadTask(for: TransferRequest(url: server.url()), to: place()))
        #expect(error?.code == .cannotWriteFile)
        #expect(error?.reason.hasSuffix("is already being downloaded") == true)
        gate.open()
        _ = try await first.response
        try expectCompleteFile()
    }

    @Test func `a symbolic link or a FIFO in the place of the partial file is left untouched`() async throws {
        let server = try TestServer { _ in StubResponse(body: "done") }
        try FileManager.default.createSymbolicLink(
            at: folder.url("file.netwatch-part"), withDestinationURL: folder.url("elsewhere"))
        #expect(mkfifo(folder.file("pipe.netwatch-part"), 0o600) == 0)
        for name in ["file", "pipe"] {
            _ = try await session().downloadTask(for: TransferRequest(url: server.url()), to: place(name)).response
            #expect(try String(contentsOf: folder.url(name), encoding: .utf8) == "done")
        }
        #expect(folder.names == ["file", "file.netwatch-part", "pipe", "pipe.netwatch-part"])
    }

    @Test func `a task suspended while its partial file is opened starts after it is resumed`() async throws {
        let source = try Source()
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
        #expect(folder.names.count { $0.hasPrefix("file") } == 20)
    }

    // MARK: Digests

    @Test func `a file with the expected digest is moved to its destination, another is removed`() async throws {
        let source = try Source()
        source.sendCompleteResponses()
        _ = try await download(source, to: place("file", .keep, try digest))
        try expectCompleteFile()
        let wrong = try #require(ContentDigest(.sha256, Data(repeating: 0, count: 32)))
        for partialFile in [DownloadDestination.PartialFilePolicy.keep, .remove] {
            let task = try session().downloadTask(
                for: TransferRequest(url: source.server.url()), to: place("wrong", partialFile, wrong))
            #expect(await failure(task)?.code == .digestMismatch)
        }
        #expect(folder.names == ["file"])
    }

    @Test func `a digest mismatch of a continued partial file requests the complete file`() async throws {
        let source = try Source()
        try await fail(source, to: place("file", .keep, try digest))
        // The partial file differs, but its validator and length are the server's.
        try Data(repeating: 0, count: Int(cut)).write(to: folder.url("file.netwatch-part"))
        source.sendCompleteResponses()
        let response = try await download(source, to: place("file", .keep, try digest))
        try expectCompleteFile()
        #expect(source.ranges == [nil, "bytes=600000-", nil])
        #expect(response.statusCode == 200)
    }

    @Test func `the server's own Repr-Digest is checked`() async throws {
        let source = try Source()
        source.sendCompleteResponses()
        source.setDigest("sha-256=:\(try digest.bytes.base64EncodedString()):")
        _ = try await download(source, to: place())
        try expectCompleteFile()
        source.setDigest("sha-256=:\(Data(repeating: 0, count: 32).base64EncodedString()):")
        let task = try session().downloadTask(for: TransferRequest(url: source.server.url()), to: place("wrong"))
        #expect(await failure(task)?.code == .digestMismatch)
        #expect(folder.names == ["file"])
    }

    // MARK: Resume data

    private func resumeData(_ source: Source) async throws -> Data {
        let task = try resumingSession().downloadTask(
            for: TransferRequest(url: source.server.url("/file")), to: place("file", .remove))
        let error = await failure(task)
        #expect(error?.code == .connectionLost)
        return try #require(error?.resumeData)
    }

    @Test func `an error's resume data continues the download in another session and at another destination`() async throws {
        let source = try Source()
        let data = try await resumeData(source)
        #expect(!String(decoding: data, as: UTF8.self).contains("/"))
        source.sendCompleteResponses()
        let response = try await resumingSession().downloadTask(withResumeData: data, to: place("elsewhere", .remove)).response
        #expect(response.metrics.bytesResumed == cut)
        try expectCompleteFile("elsewhere", besides: ["resume"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("resume")).isEmpty)
        // Resume data cannot be used a second time.
        #expect(
            await failure(try resumingSession().downloadTask(withResumeData: data, to: place("again")))?.code == .cannotResume)
    }

    @Test func `resume data stays valid until the file is complete`() async throws {
        let source = try Source()
        let data = try await resumeData(source)
        let refusing = try TestServer { _ in StubResponse(503) }
        let again = try resumingSession().downloadTask(
            withResumeData: data, for: TransferRequest(url: refusing.url("/file")), to: place("file", .remove))
        let error = await failure(again)
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.resumeData == data)
        source.sendCompleteResponses()
        _ = try await resumingSession().downloadTask(withResumeData: data, to: place("file", .remove)).response
        try expectCompleteFile(besides: ["resume"])
    }

    @Test func `a canceled download has resume data`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(
                body: StubBody([.pattern(from: 0, count: 700_000), .wait(.gate(gate)), .pattern(from: 700_000, count: 300_000)])
            )
            .field("ETag", "\"1\"")
        }
        let task = try resumingSession().downloadTask(for: TransferRequest(url: server.url()), to: place("file", .remove))
        await task.awaitProgress { $0.received >= 700_000 }
        task.cancel()
        let error = await failure(task)
        #expect(error?.code == .cancelled)
        #expect(error?.resumeData != nil)
        gate.open()
    }

    @Test(arguments: [
        "", "x", "netwatch-resume-1:", "netwatch-resume-1:../../../../../../etc/passwd",
        "netwatch-resume-2:0123456789abcdef0123456789abcdef",
        "netwatch-resume-1:0123456789abcdef0123456789abcdef",
    ]) func `invalid resume data is an error, and with a request the download starts from the beginning`(_ text: String)
        async throws
    {
        let source = try Source()
        source.sendCompleteResponses()
        let session = try resumingSession()
        #expect(
            await failure(session.downloadTask(withResumeData: Data(text.utf8), to: place("file", .remove)))?.code
                == .cannotResume)
        let request = TransferRequest(url: source.server.url())
        _ = try await session.downloadTask(withResumeData: Data(text.utf8), for: request, to: place("file", .remove)).response
        try expectCompleteFile()
    }

    @Test func `resume data applies to a request whose URL has another signature`() async throws {
        let source = try Source()
        let data = try await resumeData(source)
        source.sendCompleteResponses()
        let request = TransferRequest(url: source.server.url("/file?signature=2"))
        let task = try resumingSession().downloadTask(withResumeData: data, for: request, to: place("file", .remove))
        #expect(try await task.response.metrics.bytesResumed == cut)
        try expectCompleteFile(besides: ["resume"])
    }

    @Test func `resume data whose partial file was deleted starts from the beginning`() async throws {
        let source = try Source()
        let data = try await resumeData(source)
        for name in folder.names where name.hasSuffix(".part") { try FileManager.default.removeItem(at: folder.url(name)) }
        source.sendCompleteResponses()
        #expect(
            try await resumingSession().downloadTask(withResumeData: data, to: place("file", .remove)).response.metrics
                .bytesResumed == 0)
        #expect(try Data(contentsOf: folder.url("file")) == pattern(size))
    }
}
