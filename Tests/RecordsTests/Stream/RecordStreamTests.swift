import Expectations
import Foundation
import Glibc
import NetworkLab
import Reachability
import RecordSamples
import EventLoop
import Testing

@testable import Console
@testable import Records

@Suite struct RecordStreamTests {
    struct Numbered: Decodable {
        var seq: Int
        var type: String
        var superseded: Int?
        var suppressed: Int?
    }

    static func numbered(_ lines: [String]) throws -> [Numbered] {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try lines.map { try decoder.decode(Numbered.self, from: Data($0.utf8)) }
    }

    private func stream(_ settings: RecordStream.Settings, _ pipe: OutputPipe) throws -> RecordStream {
        try RecordStream(settings, output: try StandardOutput(descriptor: pipe.writingEnd), signals: nil) { _ in }
    }

    @Test func `every event is one line, and the monitor's end ends the stream`() throws {
        let pipe = try OutputPipe()
        pipe.read()
        let script = Script(events: Samples.oneOfEach + [.ended(Samples.moment(99))])
        try expectEqual(stream(.init(targets: [Samples.endpoint("192.0.2.9:22")]), pipe).run(script.start), .monitorEnded)
        let expected = Samples.oneOfEach.enumerated().map {
            Samples.text($1, seq: $0).replacing("0.1.0", with: CommandProgram.version)
        }
        expectEqual(pipe.lines(), expected)
    }

    @Test func `--count does not count the first record`() throws {
        let pipe = try OutputPipe()
        pipe.read()
        let stops = Locked(0)
        let ending = try stream(.init(count: 2), pipe).run { sink in
            var source = Script(events: Samples.oneOfEach).start(sink)
            source.stop = { stops.withLock { $0 += 1 } }
            return source
        }
        expectEqual(ending, .finished)
        try expectEqual(Self.numbered(pipe.lines()).map(\.type), ["hello", "path", "target"])
        expectEqual(stops.withLock { $0 }, 1)
    }

    @Test func `--for stops without any event`() throws {
        let pipe = try OutputPipe()
        pipe.read()
        let stream = try stream(.init(duration: .milliseconds(20)), pipe)
        try expectEqual(stream.run(Script(events: [Samples.hello]).start), .finished)
        try expectEqual(Self.numbered(pipe.lines()).map(\.seq), [0])
    }

    @Test func `closing the reader ends the stream without another event`() throws {
        let pipe = try OutputPipe()
        pipe.read(lineCount: 1)
        try expectEqual(stream(.init(), pipe).run(Script(events: [Samples.hello]).start), .readerGone)
        expectEqual(pipe.lines().count, 1)
    }

    @Test func `--quiet writes nothing and ignores a closed reader`() throws {
        let pipe = try OutputPipe()
        pipe.closeReadingEnd()
        let stream = try stream(.init(isQuiet: true, count: 1), pipe)
        try expectEqual(stream.run(Script(events: [Samples.hello, Samples.path()]).start), .finished)
        close(pipe.writingEnd)
    }

    @Test func `a slow reader receives gapless numbers and the latest record`() throws {
        let pipe = try OutputPipe()
        let events = [Samples.hello] + (1...20_000).map { Samples.path(suppressed: 1, at: Double($0) / 1000) }
        let script = Script(events: events + [.ended(Samples.moment(99))])
        let stream = try stream(.init(), pipe)
        pipe.read()
        try expectEqual(stream.run(script.start), .monitorEnded)
        let lines = pipe.lines()
        let records = try Self.numbered(lines)
        expectEqual(records.map(\.seq), Array(0..<records.count))
        #expect(records.count < 5000)
        expectEqual(records.compactMap(\.superseded).reduce(records.count, +), events.count)
        expectEqual(records.dropFirst().compactMap(\.suppressed).reduce(0, +), 20_000)
        #expect(lines.last?.contains(#""ts":"2026-08-02T12:00:20.000Z""#) ?? false)
        #expect(lines.reduce(0) { $0 + $1.utf8.count + 1 } <= 1 << 20 + 4096)
    }

    @Test func `a full disk is an error`() throws {
        let full = open("/dev/full", O_WRONLY)
        defer { close(full) }
        let stream = try RecordStream(.init(), output: try StandardOutput(descriptor: full), signals: nil) { _ in }
        try expectEqual(stream.run(Script(events: [Samples.hello]).start), .outputFailed(errno: ENOSPC))
    }

    @Test func `a file receives every record`() throws {
        let directory = try ScratchDirectory()
        let file = open("\(directory.path)/out", O_WRONLY | O_CREAT, 0o600)
        defer { close(file) }
        let stream = try RecordStream(.init(), output: try StandardOutput(descriptor: file), signals: nil) { _ in }
        try expectEqual(stream.run(Script(events: Samples.oneOfEach + [.ended(Samples.moment(9))]).start), .monitorEnded)
        expectEqual(directory.text("out").split(separator: "\n").count, Samples.oneOfEach.count)
    }

    @Test func `an unwritable descriptor is refused at once`() throws {
        let reading = open("/dev/null", O_RDONLY)
        defer { close(reading) }
        #expect(throws: Failure(74, "standard output: closed, or not open for writing")) {
            try StandardOutput(descriptor: reading)
        }
        #expect(throws: Failure(74, "standard output: it is closed")) { try StandardOutput(descriptor: 999_999) }
    }
}
