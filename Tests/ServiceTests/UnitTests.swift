import Expectations
import Foundation
import NetworkLab
import Testing

/// The units of systemd, checked by systemd itself.
@Suite struct UnitTests {
    private let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory()
        for unit in ["netwatch.service", "netwatch.socket"] {
            let text = try String(contentsOfFile: "\(Self.packaging)/\(unit)", encoding: .utf8)
            // The program is not installed here, and a small machine has no kill(1).
            let installed = text.replacing("/usr/local/bin/netwatch", with: "/bin/true").replacing("/bin/kill", with: "/bin/true")
            try installed.write(toFile: scratch.file(unit), atomically: true, encoding: .utf8)
        }
    }

    private static let packaging = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("packaging").path

    @Test func `systemd finds no fault in the units`() throws {
        let program = try Program(
            ["systemd-analyze", "verify", scratch.file("netwatch.service"), scratch.file("netwatch.socket")], output: .file)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(program.output + program.standardError, "")
    }

    @Test func `the service is exposed little`() throws {
        let program = try Program(
            ["systemd-analyze", "security", "--offline=true", "--no-pager", scratch.file("netwatch.service")], output: .file)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        let line = try #require(program.output.split(separator: "\n").last { $0.contains("Overall exposure level") })
        let level = try #require(line.split(separator: " ").compactMap { Double($0) }.first)
        #expect(level <= 1.6, "\(line)")
    }

    @Test func `the unit limits memory and the share of processors, and has no quota`() throws {
        let lines = try String(contentsOfFile: scratch.file("netwatch.service"), encoding: .utf8).split(separator: "\n")
        #expect(lines.contains("MemoryHigh=512M") && lines.contains("CPUWeight=50"))
        #expect(!lines.contains { $0.hasPrefix("CPUQuota") || $0.hasPrefix("MemoryMax") })
    }
}
