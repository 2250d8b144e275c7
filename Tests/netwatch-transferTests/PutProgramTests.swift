import EventLoop
import Expectations
import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing
import TestServers

/// The built program `netwatch put`, started as a shell does.
@Suite(.serialized, .timeLimit(.minutes(20))) struct PutProgramTests {
    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    // MARK: Protocols

    @Test func `--protocol auto uses tus if the server supports it`() throws {
        let server = try UploadServer(.tus)
        let bytes = try folder.make("film", size: 300_000)
        let program = try folder.put("film", server.url.absoluteString)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(server.requests.map(\.method), ["OPTIONS", "POST", "PATCH"])
        expectEqual(server.uploads.map(\.bytes), [bytes])
        expectEqual(server.requests[1]["upload-metadata"], "filename \(Data("film".utf8).base64EncodedString())")
        let lines = program.standardError.split(separator: "\n")
        expectEqual(lines.first, "film: to \(server.url.absoluteString)")
        #expect(lines.last?.hasPrefix("film: 292.9 KiB in ") == true)
        expectEqual(lines.count, 2)
    }

    @Test func `--protocol auto uses the draft if the server has no tus`() throws {
        let server = try UploadServer(.draft)
        let bytes = try folder.make("film", size: 300_000)
        try expectEqual(folder.put("-q", "film", server.url.absoluteString).wait(), 0)
        expectEqual(server.requests.map(\.method), ["OPTIONS", "PUT"])
        expectEqual(server.uploads.map(\.bytes), [bytes])
        expectEqual(server.uploads.map(\.isComplete), [true])
    }

    @Test func `a server without resumable uploads receives a plain PUT`() throws {
        let server = try TestServer { $0.method == "OPTIONS" ? StubResponse(501) : StubResponse(201) }
        try folder.make("film", size: 300_000)
        try expectEqual(folder.put("-q", "film", server.origin + "/films/").wait(), 0)
        expectEqual(server.requests.map(\.method), ["OPTIONS", "PUT"])
        expectEqual(server.requests.last?.path, "/films/film")
        expectEqual(server.requests.last?["content-length"], "300000")
        expectEqual(server.requests.last?.bodyLength, 300_000)
    }

    @Test func `an explicit --protocol sends no OPTIONS request`() throws {
        let server = try TestServer { _ in StubResponse(204) }
        try folder.make("film", size: 1_000)
        try expectEqual(folder.put("-q", "--protocol", "put", "film", server.origin + "/a").wait(), 0)
        expectEqual(server.requests.map(\.method), ["PUT"])
        expectNil(server.requests.last?["upload-complete"])
        let tus = try UploadServer(.tus)
        try expectEqual(folder.put("-q", "--protocol", "tus", "film", tus.url.absoluteString).wait(), 0)
        expectEqual(tus.requests.map(\.method), ["POST", "PATCH"])
        let draft = try UploadServer(.draft)
        try expectEqual(folder.put("-q", "--protocol", "draft", "film", draft.url.absoluteString).wait(), 0)
        expectEqual(draft.requests.map(\.method), ["PUT"])
    }

    @Test(arguments: ["tus", "draft", "put"]) func `an empty file is sent`(dialect: String) throws {
        try folder.make("empty", size: 0)
        if dialect == "put" {
            let server = try TestServer { _ in StubResponse(201) }
            try expectEqual(folder.put("-q", "--protocol", dialect, "empty", server.origin + "/a").wait(), 0)
            expectEqual(server.requests.last?["content-length"], "0")
        } else {
            let server = try UploadServer(dialect == "tus" ? .tus : .draft)
            try expectEqual(folder.put("-q", "--protocol", dialect, "empty", server.url.absoluteString).wait(), 0)
            expectEqual(server.uploads.map(\.bytes), [[]])
        }
    }

    // MARK: Continuation

    @Test(arguments: [UploadServer.Dialect.tus, .draft])
    func `a cut upload continues at the server's offset`(dialect: UploadServer.Dialect) throws {
        let cuts = Locked(0)
        let server = try UploadServer(dialect) { turn in
            guard ["PUT", "PATCH"].contains(turn.request.method) else { return nil }
            let isFirst = cuts.withLock { count in
                count += 1
                return count == 1
            }
            guard isFirst else { return nil }
            return .cut(afterBodyBytes: 400_000, losing: 100_000)
        }
        let bytes = try folder.make("film", size: 1_000_000)
        let program = try folder.put("--json", "film", server.url.absoluteString)
        let records = try program.remainingLines().map(TransferLine.init)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(server.uploads.map(\.bytes), [bytes])
        expectEqual(server.bodyBytes, 1_100_000)
        let last = try #require(records.last)
        expectEqual(last.state, "finished")
        expectEqual(last.sent, 1_000_000)
        expectEqual(last.received, 0)
        expectEqual(last.total, 1_000_000)
        expectEqual(last.resumed_from, 300_000)
        expectEqual(last.attempt, 2)
        #expect(records.allSatisfy { $0.url == server.url.absoluteString && $0.type == "transfer" })
        #expect(records.contains { $0.state == "backing_off" && $0.cause?.layer == "tcp" })
    }

    @Test func `a cut plain PUT restarts`() throws {
        var configuration = TestServer.Configuration()
        // The body is being sent then.
        configuration.onHead = { $0.arrival == 1 ? .end(.reset) : .readBody() }
        let server = try TestServer(configuration: configuration) { _ in StubResponse(201) }
        try folder.make("film", size: 5_000_000)
        let program = try folder.put("--json", "--protocol", "put", "film", server.origin + "/a")
        let records = try program.remainingLines().map(TransferLine.init)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        #expect(records.last?.attempt == 2 && records.last?.resumed_from == nil)
        expectEqual(server.requests.last?.bodyLength, 5_000_000)
    }

    @Test func `status 503 is retried`() throws {
        let server = try TestServer { StubResponse($0.arrival <= 2 ? 503 : 201) }
        try folder.make("film", size: 1_000)
        let program = try folder.put("--json", "film", server.origin + "/a")
        let records = try program.remainingLines().map(TransferLine.init)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(records.count { $0.state == "backing_off" }, 2)
        expectEqual(records.last?.state, "finished")
    }

    @Test func `a signal ends put and reports that bytes are kept`() async throws {
        let gate = try Gate()
        let server = try UploadServer(.tus) { turn in
            turn.request.method == "PATCH" ? .hold(afterBodyBytes: 100_000, .gate(gate)) : nil
        }
        try folder.make("film", size: 1_000_000)
        let program = try folder.put("film", server.url.absoluteString)
        try await server.awaitBodyBytes(100_000)
        try program.signal(SIGTERM)
        try expectEqual(program.wait(), 128 + SIGTERM, "\(program.ending)")
        #expect(
            program.standardError.hasSuffix(
                "netwatch: put: stopped: the bytes on the server are kept; run the same command again to continue\n"))
        gate.open()
    }

    // MARK: Failures

    @Test(arguments: ["auto", "draft", "put"])
    func `a success before the file was read is retried once, and then fails put`(dialect: String) throws {
        var configuration = TestServer.Configuration()
        configuration.onHead = { $0.method == "OPTIONS" ? .readBody() : .refuse(StubResponse(201)) }
        let server = try TestServer(configuration: configuration) { _ in StubResponse(501) }
        try folder.make("film", size: 32 << 20)
        let program = try folder.put("--json", "--protocol", dialect, "film", server.origin + "/a")
        let records = try program.remainingLines().map(TransferLine.init)
        try expectEqual(program.wait(), 1, "\(program.ending)")
        expectEqual(server.requests.count { $0.method == "PUT" }, 2)
        let sent = try #require(records.last?.sent)
        expectEqual(records.last?.state, "failed")
        #expect(sent < 32 << 20)
        expectEqual(
            program.standardError,
            "netwatch: \(server.origin)/a: the server answered 201 Created without the complete request body: it received at most "
                + "\(sent) of 33554432 bytes\n")
    }

    @Test(arguments: ["auto", "draft", "put"]) func `status 403 fails put at once`(dialect: String) throws {
        let server = try TestServer { _ in StubResponse(403) }
        try folder.make("film", size: 1_000)
        let program = try folder.put("-q", "--protocol", dialect, "film", server.origin + "/a")
        try expectEqual(program.wait(), 1, "\(program.ending)")
        expectEqual(program.standardError, "netwatch: \(server.origin)/a: the server answered 403 Forbidden\n")
    }

    @Test func `--protocol tus fails if the server has no tus`() throws {
        let server = try TestServer { _ in StubResponse(201, fields: ["Location": "/x"]) }
        try folder.make("film", size: 1_000)
        let program = try folder.put("-q", "--protocol", "tus", "film", server.origin + "/a")
        try expectEqual(program.wait(), 1, "\(program.ending)")
        #expect(program.standardError.contains("the server speaks no tus, and not 1.0.0"))
    }

    @Test func `a timeout of put is reported`() throws {
        let server = try TestServer { _ in .never }
        try folder.make("film", size: 1_000)
        let program = try folder.put("-q", "--timeout", "4s", "film", server.origin + "/a")
        try expectEqual(program.wait(), 1, "\(program.ending)")
        expectEqual(program.standardError, "netwatch: \(server.origin)/a: timed out after 4s\n")
    }

    @Test func `a file that cannot be sent is reported before the first request`() throws {
        let server = try TestServer { _ in StubResponse(201) }
        try folder.make("film", size: 1)
        try FileManager.default.createDirectory(atPath: folder.file("directory"), withIntermediateDirectories: false)
        try #require(mkfifo(folder.file("pipe"), 0o600) == 0)
        let url = server.origin + "/a"
        for (arguments, code, message) in [
            (["none", url], 66, "none: cannot read: No such file or directory"),
            (["film/x", url], 66, "film/x: cannot read: Not a directory"),
            (["directory", url], 66, "directory: cannot send: it is a directory; put sends one file"),
            (
                ["pipe", url], 66,
                "pipe: cannot send: it is not a regular file, and cannot be read again after an outage; write it to a file first"
            ),
            (["-", url], 64, "FILE '-': standard input cannot be sent again after an outage; write it to a file first"),
            (["film"], 64, "put: the URL is missing; write: netwatch put FILE URL"),
            ([], 64, "put: the file and the URL are missing; see 'netwatch put --help'"),
            (["film", "h/a"], 64, "URL 'h/a': the scheme is missing; write http:// or https:// before it"),
            (
                ["--limit-rate", "x", "film", url], 64,
                "--limit-rate x: write a whole number of bytes a second, as in 500000, 500k or 2M"
            ),
        ] as [([String], Int32, String)] {
            let program = try folder.run(["put"] + arguments)
            try expectEqual(program.wait(), code, "\(arguments)")
            expectEqual(program.standardError, "netwatch: \(message)\n")
        }
        expectEmpty(server.requests)
    }

    @Test func `--limit-rate limits the rate`() throws {
        let server = try TestServer { _ in StubResponse(201) }
        try folder.make("film", size: 200_000)
        let start = ContinuousClock.now
        try expectEqual(folder.put("-q", "--protocol", "put", "--limit-rate", "100k", "film", server.origin + "/a").wait(), 0)
        #expect(start.duration(to: .now) > .milliseconds(500))
    }

    @Test(arguments: [["put", "--help"], ["help", "put"]]) func `help shows the options`(arguments: [String]) throws {
        let program = try folder.run(arguments)
        let text = try program.remainingLines().joined(separator: "\n")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        for option in ["USAGE: netwatch put", "--protocol", "auto", "tus", "--limit-rate", "--timeout", "--netns"] {
            #expect(text.contains(option), "\(option)")
        }
    }
}
