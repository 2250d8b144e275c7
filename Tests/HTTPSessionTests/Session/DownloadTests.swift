import CLinux
import Expectations
import Foundation
import Glibc
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@Suite(.timeLimit(.minutes(20))) struct DownloadTests {
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory() }

    private func download(
        _ server: TestServer, to name: String = "file", _ session: HTTPSessionManager? = nil,
        existingFile: DownloadDestination.ExistingFile = .fail, createsDirectories: Bool = false, startsImmediately: Bool = true
    ) throws -> TransferTask {
        let destination = DownloadDestination(
            folder.url(name), existingFile: existingFile, createsDirectories: createsDirectories)
        return try (session ?? localSession()).downloadTask(
            for: TransferRequest(url: server.url()), to: destination, startsImmediately: startsImmediately)
    }

    @Test func `a downloaded file appears at its destination only when it is complete`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(
                body: StubBody([.pattern(from: 0, count: 700_000), .wait(.gate(gate)), .pattern(from: 700_000, count: 300_000)]))
        }
        let task = try download(server)
        await task.awaitProgress { $0.bytesReceived > 0 }
        #expect(!FileManager.default.fileExists(atPath: folder.file("file")))
        gate.open()
        let response = try await task.response
        expectEqual(response.file, folder.url("file"))
        expectEmpty(response.data)
        try expectEqual(Data(contentsOf: folder.url("file")), pattern(1_000_000))
        expectEqual(folder.names, ["file"])
        expectEqual(task.currentProgress.bytesReceived, 1_000_000)
        expectEqual(task.currentProgress.fractionCompleted, 1)
    }

    @Test func `the values of a download are made of its file`() async throws {
        let server = try TestServer { _ in StubResponse(body: .text(#"{"name":"ada"}"#)).field("Content-Type", "application/json")
        }
        let task = try download(server)
        try await expectEqual(task.data(), Data(#"{"name":"ada"}"#.utf8))
        try await expectEqual(task.string(), #"{"name":"ada"}"#)
        try await expectEqual(task.decode(as: [String: String].self), ["name": "ada"])
        // A limit of the memory, not of the file.
        var request = TransferRequest(url: server.url())
        request.options.maximumResponseSize = 13
        let large = try localSession().downloadTask(for: request, to: DownloadDestination(folder.url("large")))
        await expectEqual(errorCode { try await large.data() }, .responseTooLarge)
        try await expectEqual(large.file(), folder.url("large"))
        // A file that the program has moved.
        try FileManager.default.removeItem(at: folder.url("file"))
        await expectEqual(errorCode { try await task.data() }, .cannotReadFile)
    }

    @Test func `a chunked body and an empty body become files`() async throws {
        let server = try TestServer { request in
            request.path == "/empty" ? StubResponse() : StubResponse(body: .pattern(600_000)).chunked()
        }
        let session = try localSession()
        _ = try await download(server, to: "chunked", session).response
        try expectEqual(Data(contentsOf: folder.url("chunked")), pattern(600_000))
        let empty = session.downloadTask(
            for: TransferRequest(url: server.url("/empty")), to: DownloadDestination(folder.url("empty")))
        _ = try await empty.response
        try expectEmpty(Data(contentsOf: folder.url("empty")))
        #expect(server.requests.allSatisfy { $0["accept-encoding"] == "identity" })
    }

    @Test func `an existing file is kept and nothing is requested unless it may be replaced`() async throws {
        let server = try TestServer { _ in StubResponse(body: "new") }
        try Data("old".utf8).write(to: folder.url("file"))
        let error = await failure(try download(server))
        expectEqual(error?.code, .cannotWriteFile)
        expectEqual(error?.context.systemError, EEXIST)
        try expectEqual(Data(contentsOf: folder.url("file")), Data("old".utf8))
        expectEmpty(server.requests)
        _ = try await download(server, existingFile: .replace).response
        try expectEqual(Data(contentsOf: folder.url("file")), Data("new".utf8))
        expectEqual(folder.names, ["file"])
    }

    @Test func `a dangling symbolic link at the destination counts as an existing file`() async throws {
        let server = try TestServer { _ in StubResponse(body: "new") }
        try FileManager.default.createSymbolicLink(atPath: folder.file("file"), withDestinationPath: folder.file("target"))
        await expectEqual(failure(try download(server))?.code, .cannotWriteFile)
        _ = try await download(server, existingFile: .replace).response
        expectEqual(folder.names, ["file"])
    }

    @Test func `a file created at the destination during the download is kept, and the task fails as cannotMoveFile`()
        async throws
    {
        let gate = try Gate()
        let server = try TestServer { _ in
            StubResponse(body: StubBody([.pattern(from: 0, count: 1_000), .wait(.gate(gate)), .bytes([1])]))
        }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        let task = try download(server, session)
        await task.awaitProgress { $0.bytesReceived > 0 }
        await folder.awaitFile()
        try Data("other".utf8).write(to: folder.url("file"))
        gate.open()
        await expectEqual(failure(task)?.code, .cannotMoveFile)
        try expectEqual(Data(contentsOf: folder.url("file")), Data("other".utf8))
        expectEqual(folder.names, ["file"])
        session.cancel(afterTasks: true)
        let events = await log.awaitInvalidation()
        expectEqual(events.suffix(3), ["move failed cannot-move-file", "failed cannot-move-file", "invalidated"])
    }

    @Test func `missing directories are created if requested, otherwise the download fails`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let error = await failure(try download(server, to: "a/b/file"))
        expectEqual(error?.code, .cannotWriteFile)
        expectEqual(error?.context.systemError, ENOENT)
        expectEqual(folder.names, [])
        _ = try await download(server, to: "a/b/file", createsDirectories: true).response
        try expectEqual(Data(contentsOf: folder.url("a/b/file")), Data("x".utf8))
    }

    @Test func `a directory at the destination is not replaced`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        try FileManager.default.createDirectory(atPath: folder.file("file"), withIntermediateDirectories: false)
        await expectEqual(failure(try download(server, existingFile: .replace))?.code, .cannotWriteFile)
        expectEmpty(server.requests)
    }

    @Test func `a named pipe at the destination is not replaced and nothing is requested`() async throws {
        let server = try TestServer { _ in StubResponse(body: "new") }
        let pipe = folder.file("pipe")
        try #require(mkfifo(pipe, 0o600) == 0)
        let error = await failure(try download(server, to: "pipe", existingFile: .replace))
        expectEqual(error?.code, .cannotWriteFile)
        expectEqual(error?.reason, "cannot put the file at '\(pipe)': it exists and is not a file")
        var found = stat()
        #expect(stat(pipe, &found) == 0 && found.st_mode & S_IFMT == S_IFIFO)
        expectEmpty(server.requests)
    }

    @Test func `a symbolic link at the destination is replaced and its target is left unchanged`() async throws {
        let server = try TestServer { _ in StubResponse(body: "new") }
        try Data("old".utf8).write(to: folder.url("real"))
        try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: "real")
        _ = try await download(server, to: "link", existingFile: .replace).response
        try expectEqual(Data(contentsOf: folder.url("link")), Data("new".utf8))
        try expectEqual(Data(contentsOf: folder.url("real")), Data("old".utf8))
    }

    @Test func `a destination directory that accepts no files fails as cannotWriteFile`() async throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(5_000_000)) }
        let session = try localSession()
        let place = DownloadDestination(URL(fileURLWithPath: "/sys/kernel/netwatch-test"))
        let error = await failure(session.downloadTask(for: TransferRequest(url: server.url()), to: place))
        expectEqual(error?.code, .cannotWriteFile)
        #expect(error?.context.systemError != nil)
        let nowhere = try #require(URL(string: "http://a/b"))
        await expectEqual(
            failure(session.downloadTask(for: TransferRequest(url: server.url()), to: .init(nowhere)))?.code,
            .cannotWriteFile)
    }

    @Test(.requiresMounts, arguments: [true, false]) func `a full disk fails as cannotWriteFile and the partial file is removed`(
        _ sendsLength: Bool
    ) async throws {
        let path = folder.path
        let session = try withOwnMounts {
            guard mount("tmpfs", path, "tmpfs", 0, "size=1m") == 0 else { throw POSIXError(.EPERM) }
            return try localSession()
        }
        let server = try TestServer { request in
            let reply = StubResponse(body: .pattern(request.path == "/small" ? 900_000 : 4_000_000))
            return sendsLength ? reply : reply.chunked()
        }
        let error = await failure(try download(server, session))
        expectEqual(error?.code, .cannotWriteFile)
        expectEqual(error?.context.systemError, ENOSPC)
        let small = session.downloadTask(
            for: TransferRequest(url: server.url("/small")), to: DownloadDestination(folder.url("file")))
        try await expectEqual(small.response.statusCode, 200)
    }

    @Test func `a Content-Length larger than the disk fails immediately`() async throws {
        let server = try TestServer { _ in StubResponse(body: StubBody([.bytes([1]), .wait(.forever)])).declaredLength(1 << 60) }
        await expectEqual(failure(try download(server))?.code, .cannotWriteFile)
        expectEqual(folder.names, [])
    }

    @Test func `a 404 fails the download with the response body in its error and leaves no file`() async throws {
        let server = try TestServer { _ in StubResponse(404, body: "no such thing") }
        let error = await failure(try download(server))
        expectEqual(error?.code, .unacceptableStatus)
        expectEqual(error?.context.statusCode, 404)
        expectEqual(error?.context.responseBody, Data("no such thing".utf8))
        expectEqual(folder.names, [])
    }

    @Test func `the error of a failed download has the first 64 KiB of the response body`() async throws {
        let server = try TestServer { _ in StubResponse(500, body: .pattern(5_000_000)) }
        let error = await failure(try download(server))
        expectEqual(error?.code, .unacceptableStatus)
        expectEqual(error?.context.responseBody, pattern(64 << 10))
    }

    @Test func `a canceled download leaves no partial file`() async throws {
        let server = try TestServer { _ in
            StubResponse(body: StubBody([.pattern(from: 0, count: 3_000_000), .wait(.forever)])).chunked()
        }
        let task = try download(server)
        await task.awaitProgress { $0.bytesReceived > 1_000_000 }
        task.cancel()
        await expectEqual(failure(task)?.code, .cancelled)
        expectEqual(folder.names, [])
        try await server.awaitOpenConnections(0)
    }

    @Test(arguments: [StubResponse.Ending.truncated, .reset]) func `a truncated body leaves no partial file`(
        _ ending: StubResponse.Ending
    )
        async throws
    {
        let server = try TestServer { _ in StubResponse(body: .pattern(3_000_000)).cut(afterBodyBytes: 2_000_000, ending) }
        await expectEqual(failure(try download(server))?.code, .connectionLost)
        expectEqual(folder.names, [])
    }

    @Test func `a destination name of 255 characters works, and one of 256 is an error`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let name = String(repeating: "ü", count: 127)
        _ = try await download(server, to: name).response
        expectEqual(folder.names, [name])
        await expectEqual(failure(try download(server, to: String(repeating: "n", count: 256)))?.code, .cannotWriteFile)
        expectEqual(folder.names, [name])
    }

    @Test func `invalidating the session during a download leaves no partial file`() async throws {
        let server = try TestServer { _ in
            StubResponse(body: StubBody([.pattern(from: 0, count: 3_000_000), .wait(.forever)])).chunked()
        }
        let log = EventLog()
        let session = try HTTPSessionManager(configuration: localConfiguration(), eventMonitors: [log])
        let task = try download(server, session)
        await task.awaitProgress { $0.bytesReceived > 0 }
        session.cancel()
        _ = await log.awaitInvalidation()
        expectEqual(folder.names, [])
    }

    @Test func `bytes received before a server stalls are in the partial file immediately`() async throws {
        let server = try TestServer { _ in
            StubResponse(fields: ["ETag": "\"1\""], body: StubBody([.pattern(from: 0, count: 1_000), .wait(.forever)])).chunked()
        }
        let place = DownloadDestination(folder.url("file"), partialFile: .keep)
        let task = try localSession().downloadTask(for: TransferRequest(url: server.url()), to: place)
        let part = folder.url("file.netwatch-part")
        while (try? Data(contentsOf: part)) != pattern(1_000) { await Task.yield() }
        task.cancel()
        _ = await failure(task)
    }

    @Test func `a destination name too long for the file system is refused before the request`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let (folder, session) = (try ScratchDirectory(), try localSession())
        for (name, code) in [
            (String(repeating: "ü", count: 127) + "a", nil), (String(repeating: "ü", count: 128), .cannotWriteFile),
        ]
            as [(String, HTTPSessionError.Code?)]
        {
            let task = session.downloadTask(for: TransferRequest(url: server.url()), to: .init(folder.url(name)))
            await expectEqual(failure(task)?.code, code)
        }
        expectEqual(server.requests.count, 1)
    }
}
