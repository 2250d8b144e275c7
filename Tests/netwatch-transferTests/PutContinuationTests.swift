import CLinux
import EventLoop
import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing
import TestServers

@testable import HTTPSession

/// The continuation of uploads by the built program `netwatch put` after signals and SIGKILL.
@Suite(.serialized, .timeLimit(.minutes(20))) struct PutContinuationTests {
    private let folder: ProgramFolder
    private let gate: Gate

    init() throws {
        folder = try ProgramFolder()
        gate = try Gate()
    }

    /// Starts a server that reads 400,000 bytes of the first body, and no more until its client has ended.
    private func server(_ dialect: UploadServer.Dialect) throws -> UploadServer {
        try UploadServer(dialect) { [gate] turn in
            guard ["PUT", "PATCH"].contains(turn.request.method), turn.stored ?? 0 == 0 else { return nil }
            return .hold(afterBodyBytes: 400_000, .gate(gate))
        }
    }

    private var notes: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: state)) ?? []
    }
    private func note() throws -> String {
        try String(contentsOfFile: "\(state)/\(try #require(notes.first))", encoding: .utf8)
    }
    private var state: String { folder.state.file("netwatch/uploads") }

    /// Starts a first run and kills it in the middle.
    private func startAndKill(_ server: UploadServer, _ arguments: String...) async throws {
        let program = try folder.run(["put", "-q"] + arguments + ["film", server.url.absoluteString])
        try await server.awaitBodyBytes(400_000)
        // With the draft, the upload's URL arrives while the body is sent.
        while try notes.isEmpty || note().isEmpty { await Task.yield() }
        try program.signal(SIGKILL)
        #expect(try program.wait() == 128 + SIGKILL, "\(program.ending)")
        gate.open()
        #expect(notes.count == 1)
    }

    @Test(arguments: [UploadServer.Dialect.tus, .draft])
    func `after SIGKILL the same command sends the remaining bytes`(dialect: UploadServer.Dialect) async throws {
        let server = try server(dialect)
        // Larger than both kernels' socket buffers, so that not all bytes are sent.
        let bytes = try folder.make("film", size: 20_000_000)
        try await startAndKill(server)
        let before = server.requests.count
        let program = try folder.put("film", server.url.absoluteString)
        #expect(try program.wait() == 0, "\(program.ending)")
        #expect(program.standardError.contains(/film: continued at [1-9]\d? % \(/))
        // It sends no OPTIONS, and creates no upload.
        #expect(server.requests.dropFirst(before).first?.method == "HEAD")
        #expect(server.uploads.map(\.bytes) == [bytes])
        #expect(notes.isEmpty)
    }

    /// The size and the name stay the same.
    @Test(arguments: [UploadServer.Dialect.tus, .draft])
    func `a changed file is sent from the beginning`(dialect: UploadServer.Dialect) async throws {
        let server = try server(dialect)
        try folder.make("film", size: 1_000_000)
        try await startAndKill(server)
        let bytes = StubBody.patternBytes(from: 7, count: 1_000_000)
        try Data(bytes).write(to: URL(fileURLWithPath: folder.file("film")))
        #expect(try folder.put("-q", "film", server.url.absoluteString).wait() == 0)
        #expect(server.uploads.count == 2 && server.uploads.last?.bytes == bytes)
    }

    /// Writes to the file until its change time differs, and restores its modification time.
    private func alter(_ name: String, _ bytes: [UInt8]) throws {
        let path = folder.file(name)
        let before = try FileVersion(path)
        var old = stat()
        try #require(stat(path, &old) == 0)
        let end = ContinuousClock.now + .seconds(60)
        // The clock of inodes advances in ticks of a few milliseconds.
        while try FileVersion(path) == before, ContinuousClock.now < end {
            let descriptor = open(path, O_WRONLY)
            defer { close(descriptor) }
            try #require(pwrite(descriptor, bytes, bytes.count, 0) == bytes.count)
            try #require(futimens(descriptor, [old.st_atim, old.st_mtim]) == 0)
        }
        var new = stat()
        try #require(stat(path, &new) == 0)
        #expect(new.st_mtim.tv_sec == old.st_mtim.tv_sec && new.st_mtim.tv_nsec == old.st_mtim.tv_nsec)
        #expect(new.st_ino == old.st_ino && new.st_size == old.st_size)
    }

    @Test(arguments: [UploadServer.Dialect.tus, .draft])
    func `a file changed after SIGKILL with its mtime restored is never mixed`(_ dialect: UploadServer.Dialect)
        async throws
    {
        let server = try server(dialect)
        let old = try folder.make("film", size: 20_000_000)
        try await startAndKill(server)
        let new = StubBody.patternBytes(from: 7, count: 20_000_000)
        try alter("film", new)
        let program = try folder.put("film", server.url.absoluteString)
        #expect(try program.wait() == 0, "\(program.ending)")
        #expect(!program.standardError.contains("continued"))
        #expect(server.uploads.last?.bytes == new)
        for upload in server.uploads where upload.bytes != new {
            #expect(!upload.isComplete && upload.count < 20_000_000 && upload.bytes == Array(old.prefix(Int(upload.count))))
        }
        #expect(notes.isEmpty)
    }

    /// Simulates a change that the file's version does not show: the bytes that the first run sent belong to another content.
    @Test(arguments: [UploadServer.Dialect.tus, .draft])
    func `an upload with a wrong digest at the server fails and restarts`(_ dialect: UploadServer.Dialect)
        async throws
    {
        let bytes = try folder.make("film", size: 1_000_000)
        let right = try #require(ContentDigest.sha256(of: Data(bytes))).bytes.base64EncodedString()
        let wrong = try #require(ContentDigest.sha256(of: Data("mixture".utf8))).bytes.base64EncodedString()
        let digest = Locked(wrong)
        let server = try UploadServer(dialect) { turn in
            guard ["PATCH", "PUT"].contains(turn.request.method) else { return nil }
            return .answer(
                StubResponse(204, fields: ["Repr-Digest": "sha-256=:\(digest.withLock { $0 }):"])
                    .field(dialect == .tus ? "Upload-Offset" : "Upload-Complete", dialect == .tus ? "1000000" : "?1"))
        }
        let program = try folder.put("-q", "film", server.url.absoluteString)
        #expect(try program.wait() == 1, "\(program.ending)")
        #expect(
            program.standardError
                == "netwatch: \(server.url.absoluteString): the server has received other bytes than the upload's: their sha-256 differs\n"
        )
        #expect(notes.isEmpty)
        digest.withLock { $0 = right }
        #expect(try folder.put("-q", "film", server.url.absoluteString).wait() == 0)
        #expect(server.uploads.count == 2)
        #expect(server.requests.last?["want-repr-digest"]?.contains("sha-256") == true)
    }

    @Test func `--no-continue restarts an upload`() async throws {
        let server = try server(.tus)
        let bytes = try folder.make("film", size: 1_000_000)
        try await startAndKill(server)
        #expect(try folder.put("-q", "--no-continue", "film", server.url.absoluteString).wait() == 0)
        #expect(server.uploads.count == 2 && server.uploads.last?.bytes == bytes)
        #expect(notes.isEmpty)
    }

    @Test func `an upload that the server no longer has is created again`() async throws {
        let server = try server(.tus)
        let bytes = try folder.make("film", size: 1_000_000)
        try await startAndKill(server)
        let file = "\(state)/\(try #require(notes.first))"
        let text = try note()
        let place = try #require(text.firstMatch(of: /"place":"[^"]*\/(\d+)"/))
        try text.replacingCharacters(in: place.1.startIndex..<place.1.endIndex, with: "4711")
            .write(toFile: file, atomically: false, encoding: .utf8)
        #expect(try folder.put("-q", "film", server.url.absoluteString).wait() == 0)
        #expect(server.uploads.count == 2 && server.uploads.last?.bytes == bytes)
    }

    @Test func `an invalid upload note is ignored`() async throws {
        let server = try server(.tus)
        let bytes = try folder.make("film", size: 1_000_000)
        try await startAndKill(server)
        let file = "\(state)/\(try #require(notes.first))"
        try "{".write(toFile: file, atomically: false, encoding: .utf8)
        #expect(try folder.put("-q", "film", server.url.absoluteString).wait() == 0)
        #expect(server.uploads.last?.bytes == bytes)
    }

    @Test func `an upload note is readable only by its owner`() async throws {
        let server = try server(.draft)
        try folder.make("film", size: 1_000_000)
        try await startAndKill(server)
        var found = stat()
        #expect(stat("\(state)/\(try #require(notes.first))", &found) == 0 && found.st_mode & 0o777 == 0o600)
        #expect(stat(state, &found) == 0 && found.st_mode & 0o777 == 0o700)
    }

    @Test func `a second put of the same upload is refused`() async throws {
        let server = try server(.tus)
        let bytes = try folder.make("film", size: 1_000_000)
        let first = try folder.put("-q", "film", server.url.absoluteString)
        try await server.awaitBodyBytes(400_000)
        let second = try folder.put("-q", "film", server.url.absoluteString)
        #expect(try second.wait() == 73, "\(second.ending)")
        #expect(second.standardError == "netwatch: put: film is already being sent to \(server.url.absoluteString)\n")
        gate.open()
        #expect(try first.wait() == 0, "\(first.ending)")
        #expect(server.uploads.map(\.bytes) == [bytes])
        #expect(notes.isEmpty)
    }

    @Test func `put works without a directory for upload notes`() throws {
        let server = try UploadServer(.tus)
        let bytes = try folder.make("film", size: 300_000)
        let program = try folder.run(
            ["put", "-q", "film", server.url.absoluteString], environment: ["XDG_STATE_HOME": "/dev/null"])
        #expect(try program.wait() == 0, "\(program.ending)")
        #expect(server.uploads.map(\.bytes) == [bytes])
    }

    @Test func `old upload notes are removed`() throws {
        let server = try UploadServer(.tus)
        try folder.make("film", size: 1_000)
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        for (name, days) in [("old.json", 31.0), ("young.json", 29)] {
            let path = "\(state)/\(name)"
            try "{}".write(toFile: path, atomically: false, encoding: .utf8)
            try FileManager.default.setAttributes(
                [.modificationDate: Date().addingTimeInterval(-days * 86_400)], ofItemAtPath: path)
        }
        #expect(try folder.put("-q", "film", server.url.absoluteString).wait() == 0)
        #expect(notes == ["young.json"])
    }
}
