import Expectations
import FoundationEssentials
import Glibc
import Testing

@testable import Reachability

@Suite struct RecordingWriterTests {
    private static let header = RecordingHeader(
        program: "x", identity: MonitorIdentity(bootID: "b", namespaceName: nil, namespaceInode: 7),
        configuration: MonitorConfiguration())

    @Test func `a recording into a FIFO without a reader is refused at once`() throws {
        let directory = try TemporaryDirectory()
        expectEqual(mkfifo(directory.at("pipe"), 0o600), 0)
        #expect(throws: MonitorError.recording(path: directory.at("pipe"), errno: ENXIO)) {
            try RecordingWriter(path: directory.at("pipe"), header: Self.header)
        }
    }

    @Test func `a recording empties its own file, and leaves a file with a second hard link or of another user as it is`() throws
    {
        let directory = try TemporaryDirectory()
        try directory.write("older and longer than a header can be: \(String(repeating: "x", count: 1_000))", to: "own")
        let writer = try RecordingWriter(path: directory.at("own"), header: Self.header)
        expectNil(writer.finish())
        #expect(try !String(contentsOfFile: directory.at("own"), encoding: .utf8).contains("older"))
        try directory.write("older", to: "linked")
        expectEqual(Glibc.link(directory.at("linked"), directory.at("other")), 0)
        #expect(throws: MonitorError.recording(path: directory.at("other"), errno: EMLINK)) {
            try RecordingWriter(path: directory.at("other"), header: Self.header)
        }
        try expectEqual(String(contentsOfFile: directory.at("linked"), encoding: .utf8), "older")
        try directory.link("symlink", to: directory.at("own"))
        #expect(throws: MonitorError.recording(path: directory.at("symlink"), errno: ELOOP)) {
            try RecordingWriter(path: directory.at("symlink"), header: Self.header)
        }
        // Only root can make a file that belongs to another user.
        guard geteuid() == 0 else { return }
        try directory.write("older", to: "foreign")
        guard chown(directory.at("foreign"), 65_534, 65_534) == 0 else { return }
        #expect(throws: MonitorError.recording(path: directory.at("foreign"), errno: EPERM)) {
            try RecordingWriter(path: directory.at("foreign"), header: Self.header)
        }
        try expectEqual(String(contentsOfFile: directory.at("foreign"), encoding: .utf8), "older")
    }

    @Test func `inputs that wait for a reader of a FIFO are limited in bytes`() throws {
        let directory = try TemporaryDirectory()
        expectEqual(mkfifo(directory.at("pipe"), 0o600), 0)
        let reader = open(directory.at("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        let writer = try RecordingWriter(path: directory.at("pipe"), header: Self.header, limit: 1 << 20)
        let moment = Moment(monotonicNanoseconds: 1, wallClockNanoseconds: 1)
        let input = RecordedInput(moment: moment, input: .datagram([UInt8](repeating: 0, count: 1 << 16)))
        // The writer takes all waiting inputs at once, so it may hold as many bytes as wait: twice the limit together.
        let failure = (0..<48).lazy.compactMap { _ in writer.append(input) }.first
        expectEqual(failure, ENOBUFS)
        close(reader)
        _ = writer.finish()
    }

    @Test func `a FIFO whose reader does not read delays neither the beginning nor the end of a recording`() throws {
        let directory = try TemporaryDirectory()
        expectEqual(mkfifo(directory.at("pipe"), 0o600), 0)
        let reader = open(directory.at("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(reader) }
        let writer = try RecordingWriter(path: directory.at("pipe"), header: Self.header, pipeTimeout: 50)
        let moment = Moment(monotonicNanoseconds: 1, wallClockNanoseconds: 1)
        // A pipe holds half of it.
        expectNil(writer.append(RecordedInput(moment: moment, input: .datagram([UInt8](repeating: 0, count: 1 << 17)))))
        expectEqual(writer.finish(), ENOBUFS)
        #expect(throws: MonitorError.recording(path: directory.at("pipe"), errno: ENOBUFS)) {
            try RecordingWriter(path: directory.at("pipe"), header: Self.header, pipeTimeout: 50)
        }
    }
}
