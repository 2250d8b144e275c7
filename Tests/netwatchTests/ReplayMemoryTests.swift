import Expectations
import Foundation
import NetworkLab
import Reachability
import Testing

/// The memory of a program that replays a recording in which no turn ends.
@Suite(.timeLimit(.minutes(20))) struct ReplayMemoryTests {
    private static let header =
        #"{"netwatch_recording":3,"program":"p","boot_id":"b","netns":null,"netns_inode":1,"selection":"any","families":[4,6]}"#

    /// Returns the peak resident size of a process in bytes.
    private func peakMemory(of process: Int32) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        return try #require(Int(line.split(separator: " ").dropFirst().first ?? "")) << 10
    }

    // The unread part of the last lines fits into the pipe.
    @Test(.skippedUnderSanitizers, arguments: [MonitorInput.pollDue, .datagram([0, 1, 2])])
    func `inputs before the first turn ends take no memory in a replay`(_ input: MonitorInput) throws {
        let moment = Moment(monotonicNanoseconds: 1_000_000_000, wallClockNanoseconds: 1_700_000_000_000_000_000)
        let line = String(decoding: try JSONEncoder().encode(RecordedInput(moment: moment, input: input)), as: UTF8.self)
        let thousand = String(repeating: line + "\n", count: 1_000)
        let program = try Program([try Programs.netwatch, "replay", "--json", "-"], input: .pipe)
        try program.write(Self.header + "\n")
        for _ in 0..<5 { try program.write(thousand) }
        let before = try peakMemory(of: program.processID)
        for _ in 0..<95 { try program.write(thousand) }
        let grown = try peakMemory(of: program.processID) - before
        #expect(grown < 8 << 20, "\(grown) bytes for 95,000 times \(line.prefix(100))")
        program.closeInput()
        try expectEqual(program.wait(), 65, "\(program.ending)")
    }
}
