import Console
import Reachability
import Records

/// The document of `netwatch history` and `/api/v1/history`: what happened in a period.
struct HistoryDocument: Hashable, Sendable {
    /// The samples of a target.
    struct Samples: Hashable, Sendable {
        /// The text of the target.
        var target: String
        var samples: [Sample]
    }

    /// A change of the path.
    struct PathChange: Hashable, Sendable {
        /// The time in milliseconds since 1970.
        var time: Int64
        /// The keys of the `path` record as JSON.
        var record: String

        /// The record as read; `nil` if it is not a path.
        fileprivate var event: TargetDetail.PathEvent? { .init(time: time, record: record) }
    }

    /// The time at which the document was created.
    var moment: Moment
    /// The period in milliseconds since 1970.
    var period: Range<Int64>
    var source: HistorySource
    /// The newest first.
    var incidents: [BoardIncident]
    var names = HistoryNames()
    /// The oldest first.
    var gaps: [HistoryGap]
    /// The changes of the path, the oldest first.
    var pathEvents: [PathChange] = []
    /// `nil` if they were not asked for.
    var samples: [Samples]?
    /// The position after which the next document continues; `nil` if nothing follows.
    var next: String?

    var jsonParts: [PartedDocument<JSONWriter>.Part] {
        typealias Document = PartedDocument<JSONWriter>
        let head: Document.Part = { writer in
            writer.beginObject()
            writer.periodHead(period, of: source, at: moment)
            writer.key("incidents")
            writer.beginArray()
        }
        let incidents = Document.parts(incidents) { [names] incidents, writer in
            for incident in incidents {
                writer.object { writer in
                    RecordEncoder.write(
                        keysOf: incident.incident, names.identity(of: incident.incident), isRecorded: incident.isRecorded,
                        to: &writer)
                }
            }
        }
        let gaps = Document.parts(gaps) { gaps, writer in
            for gap in gaps { Self.write(gap, to: &writer) }
        }
        let pathEvents = Document.parts(pathEvents) { events, writer in
            for event in events { writer.json(event.timedRecord) }
        }
        let end: Document.Part = { writer in
            writer.member("next", next)
            writer.endObject()
        }
        return [head] + incidents + [Self.nextArray("gaps")] + gaps + [Self.nextArray("path_events")] + pathEvents
            + [Self.endArray] + sampleParts + [end]
    }

    private static func endArray(_ writer: inout JSONWriter) { writer.endArray() }

    /// Returns the part between two arrays.
    private static func nextArray(_ key: StaticString) -> PartedDocument<JSONWriter>.Part {
        { writer in
            writer.endArray()
            writer.key(key)
            writer.beginArray()
        }
    }

    private var sampleParts: [PartedDocument<JSONWriter>.Part] {
        guard let samples else {
            return [
                { writer in
                    writer.key("samples")
                    writer.null()
                }
            ]
        }
        let begin: PartedDocument<JSONWriter>.Part = { writer in
            writer.key("samples")
            writer.beginArray()
        }
        let parts = samples.flatMap { target in
            PartedDocument<JSONWriter>.parts(target.samples) { samples, writer in
                for sample in samples { Self.write(sample, of: target.target, to: &writer) }
            }
        }
        return [begin] + parts + [Self.endArray]
    }

    private static func write(_ sample: Sample, of target: String, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("target", target)
            writer.member("t", Timestamp.text(milliseconds: sample.time))
            writer.member("status", sample.state.name)
            writer.member("rtt_ms", milliseconds: sample.roundTrip.map(Sample.duration))
            writer.member("response_ms", milliseconds: sample.responseTime.map(Sample.duration))
        }
    }

    private static func write(_ gap: HistoryGap, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("from", Timestamp.text(milliseconds: gap.period.lowerBound))
            writer.member("to", Timestamp.text(milliseconds: gap.period.upperBound))
            writer.member("reason", gap.reason.rawValue)
        }
    }

    /// The incidents, gaps and changes of the path as CSV, a line each.
    var csvParts: [PartedDocument<CSVDocument>.Part] {
        typealias Document = PartedDocument<CSVDocument>
        let head: Document.Part = { document in
            document.add(["kind", "from", "to", "seconds", "scope", "subject", "cause", "detail", "targets", "name"])
        }
        let incidents = Document.parts(incidents) { [names] incidents, document in
            for incident in incidents.map(\.incident) {
                let (from, to) = (incident.began.milliseconds, incident.ended?.milliseconds)
                document.add([
                    "incident", Timestamp.text(milliseconds: from), to.map { Timestamp.text(milliseconds: $0) },
                    to.map { CSVDocument.seconds($0 - from) }, incident.scope.rawValue, "\(incident.subject)",
                    incident.cause.name, incident.cause.detail,
                    "\(incident.targetCount)", names.identity(of: incident)?.name,
                ])
            }
        }
        let gaps = Document.parts(gaps) { gaps, document in
            for gap in gaps {
                document.add([
                    "gap", Timestamp.text(milliseconds: gap.period.lowerBound),
                    Timestamp.text(milliseconds: gap.period.upperBound),
                    CSVDocument.seconds(gap.period.upperBound - gap.period.lowerBound), nil, nil, gap.reason.rawValue, nil, nil,
                    nil,
                ])
            }
        }
        let pathEvents = Document.parts(pathEvents) { events, document in
            for event in events.compactMap(\.event) {
                document.add([
                    "path", Timestamp.text(milliseconds: event.time), nil, nil, nil, event.interface, event.cause?.name,
                    ([event.isSatisfied ? "satisfied" : "unsatisfied"] + event.reasons).joined(separator: " "), nil,
                    nil,
                ])
            }
        }
        return [head] + incidents + gaps + pathEvents
    }

    /// The incidents, gaps and changes of the path for people, the newest first.
    var lineParts: [PartedDocument<[HistoryLine]>.Part] {
        typealias Document = PartedDocument<[HistoryLine]>
        let head: Document.Part = { [source] lines in lines.append(HistoryLine(time: .max, text: source.line)) }
        let incidents = Document.parts(incidents) { [names] incidents, lines in
            lines += incidents.map { incident in
                let text = Self.line(incident, names.names(of: incident.incident))
                return HistoryLine(time: incident.incident.began.milliseconds, text: TextStyle.printable(text))
            }
        }
        let gaps = Document.parts(gaps) { gaps, lines in
            lines += gaps.map { HistoryLine(time: $0.period.lowerBound, text: TextStyle.printable(Self.line($0))) }
        }
        let pathEvents = Document.parts(pathEvents) { events, lines in
            lines += events.compactMap(\.event).map {
                HistoryLine(time: $0.time, text: TextStyle.printable(Self.line($0)))
            }
        }
        return [head] + incidents + gaps + pathEvents
    }

    /// Returns the lines, the newest first. That of the source is before them.
    static func ordered(_ lines: [HistoryLine]) -> [String] {
        let texts = lines.sorted { $0.time > $1.time }.map(\.text)
        return lines.contains { $0.time < .max } ? texts : texts + ["no incident, no gap and no change of the path"]
    }

    private static func line(_ incident: BoardIncident, _ names: [String]) -> String {
        let value = incident.incident
        let (from, to) = (value.began.milliseconds, value.ended?.milliseconds)
        let length = to.map { "for \(TimeSpan.rough(.milliseconds($0 - from)))" } ?? "open"
        let kind = value.kind == .flapping ? "flapping  " : ""
        let end = value.state == .over || value.isOpen ? "" : ", \(value.stateSentence)"
        let count = value.targetCount == 1 ? "1 target" : "\(value.targetCount) targets"
        // The subject names a single target already.
        let further = value.targetCount > 3 ? ", …" : ""
        let list = value.subject.kind == .target || names.isEmpty ? "" : " (\(names.prefix(3).joined(separator: ", "))\(further))"
        let mark = incident.isRecorded ? "" : ", not recorded"
        let subject = value.subjectSentence(names)
        return "\(Timestamp.text(milliseconds: from))  \(length)  \(kind)\(subject)  \(count)\(list)  \(value.cause)\(end)\(mark)"
    }

    private static func line(_ event: TargetDetail.PathEvent) -> String {
        let state =
            event.isSatisfied
            ? "satisfied\(event.interface.map { " over \($0)" } ?? "")"
            : "not satisfied\(event.cause.map { ": \($0)" } ?? "")"
        let reasons = event.reasons.isEmpty ? "" : "  (\(event.reasonText))"
        return "\(Timestamp.text(milliseconds: event.time))  the path is \(state)\(reasons)"
    }

    private static func line(_ gap: HistoryGap) -> String {
        let reason =
            switch gap.reason {
            case .suspend: "the machine was suspended"
            case .stopped: "the service did not run"
            case .notRecorded: "nothing was recorded: the disk was full, the clock was set, or the process did not run"
            }
        let length = gap.period.upperBound - gap.period.lowerBound
        return "\(Timestamp.text(milliseconds: gap.period.lowerBound))  for \(TimeSpan.rough(.milliseconds(length)))  \(reason)"
    }
}

extension HistoryDocument.PathChange {
    /// The record as JSON, with its time as the key `ts`.
    fileprivate var timedRecord: String {
        let remainder = record.drop { $0 != "\"" && $0 != "}" }
        return "{\"ts\":\"\(Timestamp.text(milliseconds: time))\"\(remainder.hasPrefix("\"") ? "," : "")\(remainder)"
    }
}

extension JSONWriter {
    /// Writes the keys with which a document about a period begins. - Parameter period: milliseconds since 1970.
    mutating func periodHead(_ period: Range<Int64>, of source: HistorySource, at moment: Moment) {
        member("v", RecordFormat.version)
        member("ts", Timestamp.text(moment))
        member("since", Timestamp.text(milliseconds: period.lowerBound))
        member("until", Timestamp.text(milliseconds: period.upperBound))
        source.write(to: &self)
    }
}

extension Timestamp {
    /// Returns the text of a time in milliseconds since 1970.
    static func text(milliseconds: Int64) -> String {
        text(wallClockNanoseconds: milliseconds.multipliedReportingOverflow(by: 1_000_000).partialValue)
    }
}

extension Sample {
    /// Returns the duration of a number of units.
    static func duration(_ units: UInt32) -> Duration { .microseconds(Int64(units) * Int64(roundTripUnit)) }
}

extension CSVDocument {
    /// Returns the text of a time in seconds.
    static func seconds(_ milliseconds: Int64) -> String {
        let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1_000)
        return rest == 0 ? "\(seconds)" : "\(seconds).\(String(1_000 + rest).dropFirst())"
    }
}
