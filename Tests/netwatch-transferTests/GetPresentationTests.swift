import Expectations
import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing

/// The output of the built program for people and for programs.
@Suite(.serialized, .timeLimit(.minutes(20))) struct GetPresentationTests {
    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    @Test func `a terminal shows a progress line that is redrawn`() async throws {
        let source = try FileSource(size: 4_000_000)
        source.change { $0.stopsAt = 2_000_000 }
        let program = try folder.get(
            source.url, environment: ["TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"], output: .terminal, errors: .output)
        _ = try program.nextLine { $0.contains("big.bin  [====") && $0.contains("1.9 MiB/3.8 MiB") }
        try program.resize(columns: 50)
        let narrow = try program.nextLine { $0.contains("big.bin") && !$0.contains("[=") }
        #expect(narrow.contains("\u{1b}[K"))
        source.change { $0.stopsAt = nil }
        source.openGate()
        _ = try program.nextLine { $0.contains("✓ big.bin  3.8 MiB in ") }
        try expectEqual(program.wait(), 0, "\(program.ending)")
    }

    @Test func `a dumb terminal shows permanent lines`() throws {
        let source = try FileSource(size: 1_000)
        let program = try folder.get(source.url, environment: ["TERM": "dumb"], output: .terminal, errors: .output)
        let lines = try program.remainingLines()
        #expect(lines.count == 2 && !lines.contains { $0.contains("\u{1b}") })
    }

    @Test func `status 503 is retried`() throws {
        let source = try FileSource(size: 1_000)
        source.change { $0.failures = 2 }
        let program = try folder.get("--json", source.url)
        let records = try program.remainingLines().map(TransferLine.init)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        let backingOff = records.filter { $0.state == "backing_off" }
        expectEqual(backingOff.count, 2)
        #expect(backingOff.allSatisfy { $0.cause?.layer == "http" && $0.cause?.code == "status" })
        expectEqual(records.last?.attempt, 3)
    }

    @Test func `get works with standard error closed`() throws {
        let source = try FileSource(size: 1_000)
        try expectEqual(folder.get(source.url, errors: .closed).wait(), 0)
        expectEqual(folder.content("big.bin"), source.content)
    }

    @Test func `closing the reader of records ends get by SIGPIPE`() async throws {
        let source = try FileSource(size: 1_000_000)
        source.change { $0.stopsAt = 500_000 }
        let program = try folder.get("--json", source.url)
        _ = try program.nextLine()
        program.closeOutput()
        try expectEqual(program.wait(), 128 + SIGPIPE, "\(program.ending)")
    }
}
