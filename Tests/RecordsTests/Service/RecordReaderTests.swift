import Console
import Expectations
import Reachability
import RecordSamples
import Testing

@testable import Records

/// Records that a service has encoded, and their text.
@Suite struct RecordReaderTests {
    private let header = StreamHeader(
        version: "0.9.1", identity: MonitorIdentity(bootID: "b", namespaceName: "blue", namespaceInode: 7),
        targets: [Samples.endpoint("192.0.2.9:22")])

    private static let events: [MonitorEvent] = [
        Samples.hello, Samples.path(), Samples.path(Samples.satisfied, [.interfaceChanged, .addressesChanged], at: 2),
        Samples.server(0, initial: true), Samples.server(0, "192.0.2.9:22", .down, cause: Samples.refused, at: 4),
        Samples.server(2, "a.example:1", addresses: Samples.addresses, at: 5), Samples.server(1, "https://a.example/", .unknown),
        Samples.server(0, "192.0.2.9:22", .degraded, at: 9),
        Samples.server(0, pending: Samples.refused, at: 10), Samples.server(1, "a:1", .unknown, pending: Samples.refused, at: 10),
        Samples.incident(3), Samples.incident(12, over: 62), Samples.incident(1),
        Samples.incident(2, kind: .flapping), Samples.incident(1, kind: .flapping, over: 9, into: "17-4"),
        .resync(.overrun, Samples.moment(2)),
        .gap(from: Samples.moment(3), to: Samples.moment(60)),
    ]

    private func lines(_ printer: inout RecordPrinter, _ record: Record) -> [String] {
        printer.lines(record).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [false, true]) func `a record has the text that its monitor would write`(isLive: Bool) throws {
        let style = TextStyle(choice: .always, isTerminal: true, environment: [:])
        let format: OutputFormat = isLive ? .live(style) : .plain(style)
        let office = TargetIdentity(id: "office", name: "The office", group: "North", labels: ["site": "Köln"])
        var names = TargetNames()
        names.add("The office", of: Samples.endpoint("192.0.2.9:22"))
        var own = RecordPrinter(format: format, header: header)
        var reader = RecordReader()
        var printer: RecordPrinter?
        for (seq, event) in Self.events.enumerated() {
            var record = Record(event: event, seq: seq, superseded: seq == 4 ? 2 : 0)
            if case .server(TargetID(0), _) = event { record.identity = office }
            if case .incident(let incident) = event { record.targetNames = names.names(of: incident) }
            let found = reader.record(RecordEncoder(header: header).encode(record))
            let read = try #require(found, "\(event)")
            expectEqual(read.seq, record.seq)
            expectEqual(read.superseded, record.superseded)
            expectEqual(read.identity, record.identity)
            expectEqual(read.targetNames, record.targetNames)
            expectEqual(read.kind, record.kind)
            if read.kind == .hello { printer = RecordPrinter(format: format, header: try #require(reader.header)) }
            var other = try #require(printer)
            let (text, expected) = (lines(&other, read), lines(&own, record))
            expectEqual(text, expected, "\(event)")
            printer = other
        }
        expectEqual(reader.header, header)
    }

    @Test func `the text of a stream has the names of its targets, also in incidents`() throws {
        var reader = RecordReader()
        var lines = PlainLines(header: header, style: TextStyle())
        func line(_ event: MonitorEvent, _ name: String? = nil, id: String? = nil) throws -> String {
            let record = Record(event: event, identity: name.map { TargetIdentity(id: id, name: $0) })
            let read = reader.record(RecordEncoder(header: header).encode(record))
            return String(lines.line(try #require(read)).split(separator: " ", maxSplits: 1)[1])
        }
        _ = try line(Samples.hello)
        try expectEqual(
            line(Samples.server(0, "192.0.2.0:22", .down, cause: Samples.refused), "The office", id: "office"),
            "target The office down tcp/refused: \(Samples.refused.detail)")
        _ = try line(Samples.server(1, "192.0.2.1:22"))
        #expect(try line(Samples.incident(2)).contains("2 targets (The office, 192.0.2.1:22), "))
        let subject = Incident.Subject(.target, "192.0.2.0:22")
        #expect(try line(Samples.incident(1, subject: subject)).contains("target The office open 1 target (The office), "))
        // A reload renames it.
        _ = try line(Samples.server(0, "192.0.2.0:22", .down, cause: Samples.refused), "The branch office", id: "office")
        #expect(try line(Samples.incident(2)).contains("2 targets (The branch office, 192.0.2.1:22), "))
        // Two targets with one text: nobody knows which of them is meant.
        _ = try line(Samples.server(2, "192.0.2.0:22"), "Another one")
        #expect(try line(Samples.incident(1, subject: subject)).contains("target 192.0.2.0:22 open 1 target (192.0.2.0:22), "))
    }

    @Test(
        arguments: [
            ([("A", "a:1"), (nil, "b:1")], ["A", "b:1"]), ([(nil, "a:1"), (nil, "b:1")], ["a:1", "b:1"]),
            ([(nil, "a:1"), ("A", "a:1")], ["a:1", "b:1"]), ([("A", "a:1"), ("A", "a:1"), ("B", "b:1")], ["A", "B"]),
            ([("A", "a:1"), ("Other", "a:1")], ["a:1", "b:1"]),
        ] as [([(name: String?, text: String)], [String])])
    func `a text that several targets have stands for none of their names`(
        targets: [(name: String?, text: String)], names: [String]
    ) {
        let found = TargetNames(targets)
        expectEqual(["a:1", "b:1"].map { found.name(of: $0) }, names)
    }

    @Test func `a gap of the service is one in which it did not run`() throws {
        var reader = RecordReader()
        let gap = Record(event: .gap(from: Samples.moment(3), to: Samples.moment(60)), gapReason: .stopped)
        let read = reader.record(Samples.encoder.encode(gap))
        expectEqual(read?.gapReason, .stopped)
    }

    @Test(arguments: [
        "", "{}", "[]", "{\"type\":\"other\",\"seq\":1,\"ts\":\"x\",\"mono_ns\":1}",
        "{\"type\":\"target\",\"seq\":1,\"ts\":\"x\",\"mono_ns\":1,\"target\":\"a:1\",\"status\":\"new\"}",
        "{\"type\":\"target\",\"seq\":1,\"ts\":\"x\",\"mono_ns\":1,\"target\":\"quic://a\",\"status\":\"up\"}",
    ])
    func `a record of another kind is ignored`(text: String) {
        var reader = RecordReader()
        let read = reader.record(Array(text.utf8))
        expectNil(read)
    }

    @Test func `times and numbers beyond any clock are read`() {
        var reader = RecordReader()
        let text = """
            {"type":"target","seq":1,"ts":"9999-12-31T23:59:59.999Z","mono_ns":-9223372036854775808,"target":"a:1","status":"up",\
            "since":"0001-01-01T00:00:00.000Z","rtt_ms":1e300}
            """
        let read = reader.record(Array(text.utf8))
        expectEqual(read?.kind, .target)
    }
}
