import Expectations
import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing

/// The built program `get`: complete files, and the program itself.
@Suite(.serialized, .timeLimit(.minutes(20))) struct GetProgramTests {
    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    @Test func `a file is named after the last component of the URL's path`() async throws {
        let source = try FileSource(size: 100_000)
        let program = try folder.get("\(source.url)?version=2")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(folder.content("big.bin"), source.content)
        let lines = program.standardError.split(separator: "\n")
        expectEqual(lines.first, "big.bin: from \(source.url)?version=2")
        #expect(lines.last?.hasPrefix("big.bin: 97.6 KiB in ") == true)
        expectEqual(lines.count, 2)
        try expectEqual(program.remainingLines(), [])
        expectEqual(source.server.requests.first?["user-agent"], "netwatch/0.1.0")
    }

    @Test func `several URLs are downloaded to a directory that is created`() throws {
        let source = try FileSource(size: 5_000)
        let program = try folder.get(
            "-q", "-d", "a/b", "--parallel", "2", source.url, source.server.origin + "/two", source.server.origin + "/")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(program.standardError, "")
        for name in ["big.bin", "two", "index.html"] { expectEqual(folder.content("a/b/\(name)"), source.content) }
    }

    @Test func `one failed URL of several exits with 1`() throws {
        let source = try FileSource(size: 5_000)
        let program = try folder.get("-q", source.url, source.server.origin + "/missing")
        try expectEqual(program.wait(), 1, "\(program.ending)")
        expectEqual(program.standardError, "netwatch: \(source.server.origin)/missing: the server answered 404 Not Found\n")
        expectEqual(folder.content("big.bin"), source.content)
    }

    @Test func `--parallel limits the downloads at a time`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "x").held(by: gate) }
        let urls = ["a", "b", "c"].map { "\(server.origin)/\($0)" }
        let program = try folder.run(["get", "--json", "--parallel", "2"] + urls)
        let first = try await server.awaitRequests(2)
        expectEqual(Set(first.map(\.path)), ["/a", "/b"])
        gate.open()
        let records = try program.remainingLines().map(TransferLine.init)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(records.prefix(3).map(\.state), ["waiting", "waiting", "waiting"])
        expectEqual(records.count { $0.state == "finished" }, 3)
        expectEqual(records.map(\.seq), Array(0..<records.count))
    }

    @Test func `--json reports a transfer in records`() throws {
        let source = try FileSource(size: 2_000_000)
        source.change { $0.bytesPerSecond = 2_000_000 }
        let program = try folder.get("--json", source.url)
        let records = try program.remainingLines().map(TransferLine.init)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(program.standardError, "")
        let last = try #require(records.last)
        expectEqual(last.state, "finished")
        expectEqual(last.received, 2_000_000)
        expectEqual(last.total, 2_000_000)
        expectEqual(last.attempt, 1)
        #expect(records.allSatisfy { $0.url == source.url })
        // The first, the last, and two per second between them; a loaded machine takes longer.
        #expect(records.count >= 4)
    }

    @Test func `--limit-rate limits the rate`() throws {
        let source = try FileSource(size: 200_000)
        let start = ContinuousClock.now
        try expectEqual(folder.get("-q", "--limit-rate", "100k", source.url).wait(), 0)
        #expect(start.duration(to: .now) > .milliseconds(500))
        expectEqual(folder.content("big.bin"), source.content)
    }

    @Test func `an existing file is replaced only by a complete one`() async throws {
        try "old".write(toFile: folder.file("big.bin"), atomically: true, encoding: .utf8)
        let source = try FileSource(size: 1_000_000)
        source.change { $0.stopsAt = 400_000 }
        let program = try folder.get(source.url)
        try await source.server.awaitSeen { $0.sentBodyBytes >= 400_000 }
        expectEqual(folder.content("big.bin"), Data("old".utf8))
        try program.signal(SIGTERM)
        try expectEqual(program.wait(), 128 + SIGTERM, "\(program.ending)")
        expectEqual(folder.content("big.bin"), Data("old".utf8))
        source.change { $0.stopsAt = nil }
        try expectEqual(folder.get("-q", source.url).wait(), 0)
        expectEqual(folder.content("big.bin"), source.content)
    }

    // MARK: The program itself

    @Test(arguments: [["get", "--help"], ["help", "get"]]) func `help shows the options`(arguments: [String]) throws {
        let program = try Program([try Programs.netwatch] + arguments)
        let text = try program.remainingLines().joined(separator: "\n")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        for option in ["USAGE: netwatch get", "--sha256", "--limit-rate", "--no-continue", "--parallel", "--netns", "500k"] {
            #expect(text.contains(option), "\(option)")
        }
    }

    @Test func `a missing transfer program is reported with its searched paths`() throws {
        let copy = folder.file("netwatch")
        try FileManager.default.copyItem(atPath: try Programs.netwatch, toPath: copy)
        let program = try Program([copy, "get", "http://127.0.0.1:1/x"], directory: folder.path)
        try expectEqual(program.wait(), 69, "\(program.ending)")
        expectEqual(
            program.standardError,
            "netwatch: get: the program netwatch-transfer is missing: searched \(copy)-transfer and "
                + "\(folder.path)/../libexec/netwatch/netwatch-transfer; install it beside netwatch\n")
        try FileManager.default.createDirectory(atPath: folder.file("bin"), withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: folder.file("libexec/netwatch"), withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: copy, toPath: folder.file("bin/netwatch"))
        try FileManager.default.createSymbolicLink(
            atPath: folder.file("libexec/netwatch/netwatch-transfer"),
            withDestinationPath: try Programs.built("netwatch-transfer"))
        try expectEqual(Program([folder.file("bin/netwatch"), "get", "--help"]).wait(), 0)
    }
}
