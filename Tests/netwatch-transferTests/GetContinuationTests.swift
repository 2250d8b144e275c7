import Expectations
import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Pacing
import Testing

/// The continuation of downloads by the built program after signals, SIGKILL and SIGTSTP.
@Suite(.serialized, .timeLimit(.minutes(20))) struct GetContinuationTests {
    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func `a signal keeps the partial file and reports how to continue`(number: Int32) async throws {
        let source = try FileSource(size: 1_000_000)
        source.change { $0.stopsAt = 600_000 }
        let program = try folder.get(source.url, environment: ["TERM": "dumb"], output: .wideTerminal, errors: .output)
        _ = try program.nextLine { $0.contains("big.bin: from ") }
        try await source.server.awaitSeen { $0.sentBodyBytes >= 600_000 }
        try await awaitPartialFile(of: 600_000)
        try program.signal(number)
        let line = try program.nextLine { $0.contains("stopped") }
        expectEqual(line, "netwatch: get: stopped: 60 % (585.9 KiB) of big.bin is kept; run the same command again to continue\r")
        try expectEqual(program.wait(), 128 + number, "\(program.ending)")
        expectEqual(folder.names, ["big.bin.netwatch-part", "big.bin.netwatch-part.json"])

        source.change { $0.stopsAt = nil }
        let again = try folder.get(source.url)
        try expectEqual(again.wait(), 0, "\(again.ending)")
        #expect(again.standardError.contains("big.bin: continued at 60 % (585.9 KiB of 976.5 KiB)\n"))
        expectEqual(folder.content("big.bin"), source.content)
        expectEqual(folder.names, ["big.bin"])
        expectEqual(source.server.requests.last?["range"], "bytes=600000-")
    }

    /// Waits for a partial file of about `size` bytes. Received bytes stay in memory until 128 KiB are complete, so the file
    /// may have fewer bytes than the server has sent.
    private func awaitPartialFile(of size: Int64) async throws {
        let end = ContinuousClock.now + .seconds(60)
        // The last bytes are written only at the end.
        while ContinuousClock.now < end, (folder.content("big.bin.netwatch-part")?.count ?? 0) < Int(size) - (128 << 10) {
            await Task.yield()
        }
    }

    @Test func `--no-continue restarts a download`() async throws {
        let source = try FileSource(size: 1_000_000)
        try await leavePartialFile(source)
        try expectEqual(folder.get("-q", "--no-continue", source.url).wait(), 0)
        expectEqual(folder.content("big.bin"), source.content)
        expectNil(source.server.requests.last?["range"])
    }

    /// Leaves a partial file of 400,000 bytes.
    private func leavePartialFile(_ source: FileSource, _ arguments: String...) async throws {
        source.change { $0.stopsAt = 400_000 }
        let program = try folder.run(["get", "-q"] + arguments + [source.url])
        try await source.server.awaitSeen { $0.sentBodyBytes >= 400_000 }
        try await awaitPartialFile(of: 400_000)
        try program.signal(SIGINT)
        try expectEqual(program.wait(), 128 + SIGINT, "\(program.ending)")
        source.change { $0.stopsAt = nil }
    }

    @Test func `another URL with the same digest continues the partial file`() async throws {
        let source = try FileSource(size: 1_000_000)
        let digest = try source.digest
        try await leavePartialFile(source, "--sha256", digest)
        source.change { $0.tag = "\"other\"" }
        let program = try folder.get("-q", "--sha256", digest, "-o", "big.bin", source.server.origin + "/mirror")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(folder.content("big.bin"), source.content)
        expectEqual(source.server.requests.last?["range"], "bytes=400000-")
    }

    @Test func `another version of the file restarts the download`() async throws {
        let source = try FileSource(size: 1_000_000)
        try await leavePartialFile(source)
        source.change { $0.tag = "\"other\"" }
        try expectEqual(folder.get("-q", source.url).wait(), 0)
        expectEqual(folder.content("big.bin"), source.content)
    }

    @Test func `a download killed at random moments still finishes`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix64(seed: seed)
        let size: Int64 = 16 << 20
        let source = try FileSource(size: size)
        for run: Int64 in 1...5 {
            // However late the kill is, one sixth of the file remains for each further run.
            source.change { ($0.bytesPerSecond, $0.stopsAt) = (8 << 20, size / 6 * run) }
            let before = source.server.seen.sentBodyBytes
            let point = Int64.random(in: 0..<(size / 6), using: &random)
            let program = try folder.get("-q", source.url)
            try await source.server.awaitSeen { $0.sentBodyBytes >= before + point }
            try program.signal(SIGKILL)
            try expectEqual(program.wait(), 128 + SIGKILL, "\(program.ending)")
        }
        source.change { ($0.bytesPerSecond, $0.stopsAt) = (nil, nil) }
        try expectEqual(folder.get("-q", "--sha256", try source.digest, source.url).wait(), 0, "seed \(seed)")
        expectEqual(folder.content("big.bin"), source.content, "seed \(seed)")
        try await source.server.awaitOpenConnections(0)
        let ratio = Double(source.server.seen.sentBodyBytes) / Double(size)
        print("get, killed 5 times (seed \(seed)): the server sent \(ratio) times the size")
        #expect(ratio <= 1.15, "seed \(seed)")
        expectEqual(folder.names, ["big.bin"])
    }

    @Test func `a download stopped and continued by its shell finishes`() async throws {
        let source = try FileSource(size: 1_000_000)
        source.change { $0.stopsAt = 500_000 }
        let program = try folder.get(
            source.url, environment: ["TERM": "xterm", "LC_ALL": "C.UTF-8"], output: .terminal, errors: .output)
        _ = try program.nextLine { $0.contains("big.bin") }
        try await source.server.awaitSeen { $0.sentBodyBytes >= 500_000 }
        try program.signal(SIGTSTP)
        while state(of: program.processID) != "T" { await Task.yield() }
        try program.signal(SIGCONT)
        source.change { $0.stopsAt = nil }
        source.openGate()
        _ = try program.nextLine { $0.contains(" big.bin  976.5 KiB in ") }
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(folder.content("big.bin"), source.content)
    }

    private func state(of process: Int32) -> String? {
        let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        return text?.split(separator: ")").last?.split(separator: " ").first.map(String.init)
    }
}
