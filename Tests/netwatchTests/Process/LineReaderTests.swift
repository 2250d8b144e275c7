import Expectations
import Foundation
import NetworkLab
import Testing

@testable import netwatch

@Suite struct LineReaderTests {
    private func lines(_ bytes: [UInt8]) throws -> [String] {
        let directory = try Directory()
        let path = "\(directory.path)/file"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        let reader = try LineReader(path)
        var lines: [String] = []
        while let line = try reader.next() { lines.append(line) }
        return lines
    }

    @Test func `lines are returned without their newlines`() throws {
        try expectEqual(lines(Array("a\n\nb\n".utf8)), ["a", "", "b"])
        try expectEqual(lines(Array("a\nrest".utf8)), ["a", "rest"])
        try expectEqual(lines([]), [])
    }

    @Test func `lines longer than the buffer are complete`() throws {
        let long = String(repeating: "x", count: 300_000)
        try expectEqual(lines(Array("\(long)\ny\n\(long)\n".utf8)), [long, "y", long])
    }

    @Test func `an error for invalid UTF-8 names its line`() {
        #expect(throws: LineReader.DamageError(line: 2, why: "not UTF-8 text")) { try lines([0x61, 0x0a, 0xff, 0x0a]) }
    }

    @Test(.skippedUnderSanitizers) func `a line longer than 16 MiB is an error`() {
        #expect(throws: LineReader.DamageError(line: 1, why: "longer than 16 MiB")) {
            try lines([UInt8](repeating: 0x61, count: 17 << 20))
        }
    }
}
