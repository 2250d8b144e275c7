import EventLoop
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSession

/// Downloads that outlive their task: a file of 1,000,000 bytes, of which the first task gets 600,000.
@Suite(.timeLimit(.minutes(20))) struct KeptPartTests {
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

    /// Serves one version, and what is asked of it; cut after `cut` bytes of the whole, as long as it is told to.
    private final class Source: Sendable {
        let log = Log()
        let server: MisbehavingServer

        final class Log: Sendable {
            let state = Locked((tag: "\"1\"", cut: Int64?.some(600_000), digest: String?.none))
        }

        init(size: Int64 = 1_000_000) throws {
            server = try MisbehavingServer { [log] request in
                let (tag, cut, digest) = log.state.withLock { $0 }
                var fields = [("ETag", tag)]
                if let digest { fields.append(("Repr-Digest", digest)) }
                var reply: Reply
                let start = request["range"].flatMap { Int64($0.dropFirst("bytes=".count).dropLast()) }
                if request["if-none-match"] == tag {
                    reply = Reply(304)
                } else if let start, request["if-range"] ?? tag == tag {
                    reply = Reply(206, body: ReplyBody([.pattern(from: start, count: size - start)]))
                    fields.append(("Content-Range", "bytes \(start)-\(size - 1)/\(size)"))
                } else {
                    reply = Reply(body: .pattern(size))
                    if let cut { reply = reply.cut(afterBodyBytes: cut, .truncated) }
                }
                for (name, value) in fields { reply = reply.field(name, value) }
                reply.pieceBytes = 50_000
                return reply
            }
        }

        /// Whole from now on.
        func heal(tag: String = "\"1\"") { log.state.withLock { ($0.tag, $0.cut) = (tag, nil) } }
        func says(_ digest: String) { log.state.withLock { $0.digest = digest } }
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

    /// A download that ends in the middle.
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

    private func expectWholeFile(_ name: String = "file", besides others: [String] = []) throws {
        #expect(try Data(contentsOf: folder.url(name)) == pattern(size))
        #expect(folder.names.sorted() == ([name] + others).sorted())
    }

    // MARK: Beside the destination

    @Test func `a part that is whole ends as a response with status 200, though the server says 304`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        // What a process leaves that is killed behind the last byte.
        let handle = try FileHandle(forWritingTo: folder.url("file.netwatch-part"))
        try handle.seekToEnd()
        try handle.write(contentsOf: pattern(size).suffix(from: Int(cut)))
        try handle.close()
        source.heal()
        let response = try await download(source, to: place())
        #expect(response.statusCode == 200)
        #expect(response.head.headerFields[.eTag] == "\"1\"")
        #expect(response.metrics.transactions.map(\.statusCode) == [304])
        try expectWholeFile()
    }

    @Test func `what one task leaves another goes on from`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        #expect(folder.names.sorted() == ["file.netwatch-part", "file.netwatch-part.json"])
        source.heal()
        let response = try await download(source, to: place())
        try expectWholeFile()
        #expect(response.metrics.bytesResumed == cut)
        #expect(source.ranges == [nil, "bytes=600000-"])
        await log.await("completed")
        #expect(log.names.contains("continued 600000 of 1000000"))
        #expect(log.names.contains("moved"))
    }

    @Test func `where nothing is to be left, nothing is`() async throws {
        let source = try Source()
        try await fail(source, to: place("file", .remove))
        #expect(folder.names.isEmpty)
    }

    @Test func `another version is taken from its beginning`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        source.heal(tag: "\"2\"")
        #expect(try await download(source, to: place()).metrics.bytesResumed == 0)
        try expectWholeFile()
    }

    @Test func `what is asked for anew is taken from its beginning`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        source.heal()
        _ = try await download(source, to: place("file", .restart))
        try expectWholeFile()
        #expect(source.ranges == [nil, nil])
    }

    @Test func `what is of another address is not gone on from, unless the digest is the same`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        source.heal()
        _ = try await download(source, to: place(), path: "/other")
        try expectWholeFile()
        #expect(source.ranges == [nil, nil])

        let digested = try Source()
        try await fail(digested, to: place("second", .keep, try digest))
        digested.heal()
        _ = try await download(digested, to: place("second", .keep, try digest), path: "/other")
        try expectWholeFile("second", besides: ["file"])
        #expect(digested.ranges == [nil, "bytes=600000-"])
        #expect(digested.server.requests.last?["if-range"] == nil)
    }

    @Test func `an error of the server leaves it as it is`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        let broken = try MisbehavingServer { _ in Reply(404) }
        let task = try session().downloadTask(for: TransferRequest(url: broken.url("/file")), to: place())
        #expect(await failure(task)?.code == .unacceptableStatus)
        source.heal()
        #expect(try await download(source, to: place()).metrics.bytesResumed == cut)
        try expectWholeFile()
    }

    @Test func `after another run of the system only what was synced counts`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        let part = folder.file("file.netwatch-part")
        var sidecar = try #require(try SidecarFile.read(besides: part))
        #expect(sidecar.synced == cut)
        (sidecar.boot, sidecar.synced) = ("another", 500_000)
        try SidecarFile.write(sidecar, besides: part)
        source.heal()
        #expect(try await download(source, to: place()).metrics.bytesResumed == 500_000)
        try expectWholeFile()
    }

    @Test func `what was whole before its process was killed is only asked about`() async throws {
        let source = try Source()
        source.heal()
        let part = folder.file("file.netwatch-part")
        let resumption = Resumption(
            url: source.server.url("/file"), validator: .entityTag("\"1\""), total: size, digest: nil)
        try SidecarFile.write(
            Sidecar(resumption: try #require(resumption), start: source.server.url("/file"), boot: BootIdentifier.current),
            besides: part)
        try pattern(size).write(to: URL(fileURLWithPath: part))
        #expect(try await download(source, to: place()).metrics.bytesResumed == size)
        try expectWholeFile()
        #expect(source.server.requests.map { $0["if-none-match"] } == ["\"1\""])
    }

    @Test func `a sidecar that is damaged counts for nothing`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        try Data("{".utf8).write(to: folder.url("file.netwatch-part.json"))
        source.heal()
        #expect(try await download(source, to: place()).metrics.bytesResumed == 0)
        try expectWholeFile()
    }

    @Test func `a sidecar of a newer program is an error, and loses nothing`() async throws {
        let source = try Source()
        try await fail(source, to: place())
        try Data(#"{"version":2}"#.utf8).write(to: folder.url("file.netwatch-part.json"))
        let error = await failure(try session().downloadTask(for: TransferRequest(url: source.server.url("/file")), to: place()))
        #expect(error?.code == .cannotReadFile)
        #expect(try Data(contentsOf: folder.url("file.netwatch-part")).count == Int(cut))
        #expect(source.server.requests.count == 1)
    }

    @Test func `one task has the part, and another is told so`() async throws {
        let gate = try Gate()
        let server = try MisbehavingServer { _ in
            Reply(
                body: ReplyBody([.pattern(from: 0, count: 700_000), .wait(.gate(gate)), .pattern(from: 700_000, count: 300_000)]))
        }
        let session = try session()
        let first = session.downloadTask(for: TransferRequest(url: server.url()), to: place())
        await first.awaitProgress { $0.received > 0 }
        let error = await failure(session.downloadTask(for: TransferRequest(url: server.url()), to: place()))
        #expect(error?.code == .cannotWriteFile)
        #expect(error?.reason.hasSuffix("is already being downloaded") == true)
        gate.open()
        _ = try await first.response
        try expectWholeFile()
    }

    @Test func `a symbolic link or a FIFO in the place of the partial file is left untouched`() async throws {
        let server = try MisbehavingServer { _ in Reply(body: "done") }
        try FileManager.default.createSymbolicLink(
            at: folder.url("file.netwatch-part"), withDestinationURL: folder.url("elsewhere"))
        #expect(mkfifo(folder.file("pipe.netwatch-part"), 0o600) == 0)
        for name in ["file", "pipe"] {
            _ = try await session().downloadTask(for: TransferRequest(url: server.url()), to: place(name)).response
            #expect(try String(contentsOf: folder.url(name), encoding: .utf8) == "done")
        }
        #expect(folder.names == ["file", "file.netwatch-part", "pipe", "pipe.netwatch-part"])
    }

    @Test func `a task that is stopped while its file is looked for begins when it goes on`() async throws {
        let source = try Source()
        source.heal()
        let session = try session()
        for number in 0..<20 {
            let task = session.downloadTask(for: TransferRequest(url: source.server.url()), to: place("file\(number)"))
            task.suspend()
            task.resume()
            _ = try await task.response
            let cancelled = session.downloadTask(for: TransferRequest(url: source.server.url()), to: place("cancelled\(number)"))
            cancelled.cancel()
            // It may have been faster.
            let error = await failure(cancelled)
            #expect(error == nil || error?.code == .cancelled)
        }
        #expect(folder.names.count { $0.hasPrefix("file") } == 20)
    }

    // MARK: Digests

    @Test func `a file whose digest is right gets its name, another is dropped`() async throws {
        let source = try Source()
        source.heal()
        _ = try await download(source, to: place("file", .keep, try digest))
        try expectWholeFile()
        let wrong = try #require(ContentDigest(.sha256, Data(repeating: 0, count: 32)))
        for partialFile in [DownloadDestination.PartialFilePolicy.keep, .remove] {
            let task = try session().downloadTask(
                for: TransferRequest(url: source.server.url()), to: place("wrong", partialFile, wrong))
            #expect(await failure(task)?.code == .digestMismatch)
        }
        #expect(folder.names == ["file"])
    }

    @Test func `a part that does not belong to the rest shows in the digest, and the whole is taken`() async throws {
        let source = try Source()
        try await fail(source, to: place("file", .keep, try digest))
        // What the server calls the same, and the length too.
        try Data(repeating: 0, count: Int(cut)).write(to: folder.url("file.netwatch-part"))
        source.heal()
        let response = try await download(source, to: place("file", .keep, try digest))
        try expectWholeFile()
        #expect(source.ranges == [nil, "bytes=600000-", nil])
        #expect(response.statusCode == 200)
    }

    @Test func `the server's own digest is checked`() async throws {
        let source = try Source()
        source.heal()
        source.says("sha-256=:\(try digest.bytes.base64EncodedString()):")
        _ = try await download(source, to: place())
        try expectWholeFile()
        source.says("sha-256=:\(Data(repeating: 0, count: 32).base64EncodedString()):")
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

    @Test func `an error's resume data goes on where the task ended, in another session and to another place`() async throws {
        let source = try Source()
        let data = try await resumeData(source)
        #expect(!String(decoding: data, as: UTF8.self).contains("/"))
        source.heal()
        let response = try await resumingSession().downloadTask(withResumeData: data, to: place("elsewhere", .remove)).response
        #expect(response.metrics.bytesResumed == cut)
        try expectWholeFile("elsewhere", besides: ["resume"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("resume")).isEmpty)
        // It has been used up.
        #expect(
            await failure(try resumingSession().downloadTask(withResumeData: data, to: place("again")))?.code == .cannotResume)
    }

    @Test func `resume data stays good until the file is whole`() async throws {
        let source = try Source()
        let data = try await resumeData(source)
        let refusing = try MisbehavingServer { _ in Reply(503) }
        let again = try resumingSession().downloadTask(
            withResumeData: data, for: TransferRequest(url: refusing.url("/file")), to: place("file", .remove))
        let error = await failure(again)
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.resumeData == data)
        source.heal()
        _ = try await resumingSession().downloadTask(withResumeData: data, to: place("file", .remove)).response
        try expectWholeFile(besides: ["resume"])
    }

    @Test func `a task that is cancelled has resume data`() async throws {
        let gate = try Gate()
        let server = try MisbehavingServer { _ in
            Reply(
                body: ReplyBody([.pattern(from: 0, count: 700_000), .wait(.gate(gate)), .pattern(from: 700_000, count: 300_000)])
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
    ]) func `what is no resume data is an error, and with a request a download like any other`(_ text: String) async throws {
        let source = try Source()
        source.heal()
        let session = try resumingSession()
        #expect(
            await failure(session.downloadTask(withResumeData: Data(text.utf8), to: place("file", .remove)))?.code
                == .cannotResume)
        let request = TransferRequest(url: source.server.url())
        _ = try await session.downloadTask(withResumeData: Data(text.utf8), for: request, to: place("file", .remove)).response
        try expectWholeFile()
    }

    @Test func `an address that is signed anew is the same resource`() async throws {
        let source = try Source()
        let data = try await resumeData(source)
        source.heal()
        let request = TransferRequest(url: source.server.url("/file?signature=2"))
        let task = try resumingSession().downloadTask(withResumeData: data, for: request, to: place("file", .remove))
        #expect(try await task.response.metrics.bytesResumed == cut)
        try expectWholeFile(besides: ["resume"])
    }

    @Test func `a part that somebody has removed is fetched again`() async throws {
        let source = try Source()
        let data = try await resumeData(source)
        for name in folder.names where name.hasSuffix(".part") { try FileManager.default.removeItem(at: folder.url(name)) }
        source.heal()
        #expect(
            try await resumingSession().downloadTask(withResumeData: data, to: place("file", .remove)).response.metrics
                .bytesResumed == 0)
        #expect(try Data(contentsOf: folder.url("file")) == pattern(size))
    }
}
