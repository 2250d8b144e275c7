import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing

/// The built program: `get` of a file that is complete and unchanged.
@Suite(.serialized, .timeLimit(.minutes(20))) struct GetUnchangedTests {
    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    private func inode(_ name: String = "big.bin") throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.file(name))
        return try #require(attributes[.systemFileNumber] as? Int)
    }

    @Test func `get of an unchanged file says so and leaves it untouched`() throws {
        let source = try FileSource(size: 1_000_000)
        try expectEqual(folder.get("-q", source.url).wait(), 0)
        let before = try inode()
        let again = try folder.get(source.url)
        try expectEqual(again.wait(), 0, "\(again.ending)")
        expectEqual(again.standardError, "big.bin: from \(source.url)\nbig.bin: complete and unchanged, 976.5 KiB\n")
        expectEqual(source.server.requests.map { $0["if-none-match"] }, [nil, "\"1\""])
        #expect(try inode() == before && folder.names == ["big.bin"])
        // --no-continue downloads it again.
        try expectEqual(folder.get("-q", "--no-continue", source.url).wait(), 0)
        #expect(try inode() != before)
        source.change { $0.tag = "\"2\"" }
        let changed = try folder.get(source.url)
        try expectEqual(changed.wait(), 0, "\(changed.ending)")
        #expect(changed.standardError.contains("big.bin: 976.5 KiB in "))
        expectEqual(source.server.requests.suffix(2).map { $0["if-none-match"] }, [nil, "\"1\""])
    }

    @Test func `an unchanged file is reported in records and on a terminal`() throws {
        let source = try FileSource(size: 1_000_000)
        let first = try folder.get("--json", source.url)
        let before = try first.remainingLines().map(TransferLine.init)
        #expect(try first.wait() == 0 && before.allSatisfy { !$0.unchanged })
        let again = try folder.get("--json", source.url)
        let records = try again.remainingLines().map(TransferLine.init)
        try expectEqual(again.wait(), 0, "\(again.ending)")
        let last = try #require(records.last)
        expectEqual(last.state, "finished")
        expectEqual(last.unchanged, true)
        expectEqual(last.received, 1_000_000)
        expectEqual(last.total, 1_000_000)
        #expect(last.resumed_from == nil && last.cause == nil)
        let terminal = try folder.get(
            source.url, environment: ["TERM": "xterm", "LC_ALL": "C.UTF-8"], output: .terminal, errors: .output)
        _ = try terminal.nextLine { $0.contains(" big.bin  complete and unchanged, 976.5 KiB") }
        try expectEqual(terminal.wait(), 0)
    }

    @Test func `with --sha256 an existing file with the digest needs no request`() throws {
        let source = try FileSource(size: 1_000_000)
        let digest = try source.digest
        try source.content.write(to: URL(fileURLWithPath: folder.file("big.bin")))
        let before = try inode()
        let program = try folder.get("--sha256", digest, "--json", source.url)
        let records = try program.remainingLines().map(TransferLine.init)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        let last = try #require(records.last)
        expectEqual(last.state, "finished")
        expectEqual(last.unchanged, true)
        expectEqual(last.received, 1_000_000)
        expectEqual(last.attempt, 0)
        expectEmpty(source.server.requests)
        #expect(try inode() == before && folder.names == ["big.bin"])
        // With --no-continue, or with another content, it is downloaded.
        try expectEqual(folder.get("-q", "--sha256", digest, "--no-continue", source.url).wait(), 0)
        #expect(try inode() != before && source.server.requests.count == 1)
        try Data("other".utf8).write(to: URL(fileURLWithPath: folder.file("big.bin")))
        try expectEqual(folder.get("-q", "--sha256", digest, source.url).wait(), 0)
        #expect(folder.content("big.bin") == source.content && source.server.requests.count == 2)
    }

    @Test func `without file attributes the file is downloaded again, without an error`() throws {
        let source = try FileSource(size: 5_000)
        // ramfs takes no attributes of users.
        let script = "mount -t ramfs none \"$1\" && cd \"$1\" && \"$0\" get -q \"$2\" && exec \"$0\" get \"$2\""
        let program = try Program(
            ["unshare", "--mount", "sh", "-c", script, try Programs.netwatch, folder.path, source.url])
        try expectEqual(program.wait(), 0, "\(program.ending)")
        #expect(program.standardError.contains("big.bin: 4.8 KiB in "))
        expectEqual(source.server.requests.map { $0["if-none-match"] }, [nil, nil])
    }

    @Test func `a file from another URL does not count as unchanged`() throws {
        let source = try FileSource(size: 5_000)
        try expectEqual(folder.get("-q", source.url).wait(), 0)
        try expectEqual(folder.get("-q", "-o", "big.bin", source.server.origin + "/other").wait(), 0)
        try expectEqual(folder.get("-q", "-o", "big.bin", "\(source.url)?version=2").wait(), 0)
        #expect(source.server.requests.allSatisfy { $0["if-none-match"] == nil })
    }
}
