import Console
import Reachability
import Records

/// The document of `netwatch report`: the availability of targets in a period, for claims against a provider.
struct ReportDocument: Hashable, Sendable {
    /// The maximum number of worst outages of a target.
    static let worst = 10
    /// The maximum number of outages of a target in the text.
    private static let shownOutages = 3

    struct Target: Hashable, Sendable {
        var names: HistoryNames.Target
        /// The times in each state, which sum to the period.
        var summary: PeriodSummary
        /// The number of outages in the period.
        var outages: Int
        /// The longest outages, the longest first.
        var worst: [Incident]

        var text: String { names.text }
        var id: String? { names.identity.id }
        var availability: Availability { Availability(summary.times) }
    }

    /// The time at which the document was created.
    var moment: Moment
    /// The period in milliseconds since 1970.
    var period: Range<Int64>
    var source: HistorySource
    var timeZone: String
    /// The names of the targets of incidents.
    var names: HistoryNames
    var targets: [Target]

    /// Creates a document. Targets without recorded time are left out, such as those that the configuration no longer has, unless the
    /// entire period has none.
    init(
        moment: Moment, period: Range<Int64>, source: HistorySource, timeZone: String, names: HistoryNames = HistoryNames(),
        targets: [Target]
    ) {
        (self.moment, self.period, self.source, self.timeZone, self.names) = (moment, period, source, timeZone, names)
        let recorded = targets.filter { !$0.summary.hasNoRecordedTime }
        self.targets = recorded.isEmpty ? targets : recorded
    }

    private static let states: [RecordedState] = [
        .up, .degraded, .down, .unreachable, .unknown, .maintenance, .notRecorded,
    ]

    var jsonParts: [PartedDocument<JSONWriter>.Part] {
        typealias Document = PartedDocument<JSONWriter>
        let head: Document.Part = { writer in
            writer.beginObject()
            writer.periodHead(period, of: source, at: moment)
            writer.member("time_zone", timeZone)
            writer.key("targets")
            writer.beginArray()
        }
        let targets = Document.parts(targets) { targets, writer in
            for target in targets { writer.object { write(target, to: &$0) } }
        }
        let end: Document.Part = { writer in
            writer.endArray()
            writer.endObject()
        }
        return [head] + targets + [end]
    }

    /// The percentiles of response times by their names.
    private static let responseParts: [(name: String, part: Double)] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]

    private func write(_ target: Target, to writer: inout JSONWriter) {
        let (summary, availability) = (target.summary, target.availability)
        writer.member("target", target.names.text)
        TargetIdentity?(target.names.identity).write(to: &writer)
        writer.key("availability")
        writer.value(decimal: availability.server)
        writer.key("availability_with_local")
        writer.value(decimal: availability.withLocalCauses)
        writer.key("observed")
        writer.value(decimal: availability.observed)
        writer.key("seconds")
        writer.object { writer in
            for state in Self.states {
                writer.key(text: state.name)
                writer.value(decimal: Double(summary.times[state]) / 1_000)
            }
        }
        writer.member("probes", summary.probes)
        writer.member("lost", summary.lost)
        writer.key("rtt_ms")
        writer.object { writer in
            let roundTrips = summary.roundTrips
            writer.member("min", milliseconds: roundTrips.minimum.map(Sample.duration))
            writer.member("p50", milliseconds: roundTrips.quantile(0.5).map(Sample.duration))
            writer.member("p95", milliseconds: roundTrips.quantile(0.95).map(Sample.duration))
            writer.member("max", milliseconds: roundTrips.maximum.map(Sample.duration))
        }
        writer.key("response_ms")
        writer.object { writer in
            for (name, part) in Self.responseParts {
                writer.key(text: name)
                writer.milliseconds(summary.responseTimes.quantile(part).map(Sample.duration))
            }
        }
        writer.member("outages", target.outages)
        writer.key("worst")
        writer.array { writer in
            for incident in target.worst {
                writer.object {
                    RecordEncoder.write(keysOf: incident, names.identity(of: incident), isRecorded: true, to: &$0)
                }
            }
        }
    }

    /// A line of CSV for each target.
    var csvParts: [PartedDocument<CSVDocument>.Part] {
        typealias Document = PartedDocument<CSVDocument>
        let head: Document.Part = { document in
            document.add(
                ["target", "id", "since", "until", "availability", "availability_with_local", "observed"]
                    + Self.states.map { "\($0.name)_s" }
                    + ["probes", "lost", "rtt_min_ms", "rtt_p50_ms", "rtt_p95_ms", "rtt_max_ms", "outages", "title"]
                    + Self.responseParts.map { "response_\($0.name)_ms" })
        }
        return [head]
            + Document.parts(targets) { targets, document in
                for target in targets { document.add(cells(target)) }
            }
    }

    private func cells(_ target: Target) -> [String?] {
        let (summary, availability) = (target.summary, target.availability)
        let roundTrips = summary.roundTrips
        let measured = [
            roundTrips.minimum, roundTrips.quantile(0.5), roundTrips.quantile(0.95), roundTrips.maximum,
        ]
        var cells: [String?] = [
            target.text, target.id, Timestamp.text(milliseconds: period.lowerBound),
            Timestamp.text(milliseconds: period.upperBound), Self.share(availability.server),
            Self.share(availability.withLocalCauses), Self.share(availability.observed),
        ]
        cells += Self.states.map { CSVDocument.seconds(summary.times[$0]) }
        cells += ["\(summary.probes)", "\(summary.lost)"]
        cells += measured.map { $0.map { Milliseconds.text(Sample.duration($0)) } }
        cells += ["\(target.outages)", target.names.title]
        cells += Self.responseParts.map { part in
            summary.responseTimes.quantile(part.part).map { Milliseconds.text(Sample.duration($0)) }
        }
        return cells
    }

    private static func share(_ value: Double?) -> String? {
        value.map { number in
            var writer = JSONWriter()
            writer.value(decimal: number)
            return String(decoding: writer.bytes, as: UTF8.self)
        }
    }

    /// A table for people, and the worst outages of each target.
    var lineParts: [PartedDocument<[HistoryLine]>.Part] {
        typealias Document = PartedDocument<[HistoryLine]>
        let head: Document.Part = { lines in
            let (since, until) = (
                Timestamp.text(milliseconds: period.lowerBound), Timestamp.text(milliseconds: period.upperBound)
            )
            lines.append(HistoryLine(text: source.line))
            lines.append(HistoryLine(text: "from \(since) to \(until)"))
            if targets.isEmpty { lines.append(HistoryLine(text: "no targets")) }
        }
        return [head]
            + Document.parts(targets) { targets, lines in
                for target in targets { lines += Self.lines(target).map { HistoryLine(text: TextStyle.printable($0)) } }
            }
    }

    static func ordered(_ lines: [HistoryLine]) -> [String] { lines.map(\.text) }

    private static func lines(_ target: Target) -> [String] {
        let availability = target.availability
        var parts = ["\(target.names.title): \(percent(availability.server))"]
        if availability.withLocalCauses != availability.server {
            parts.append("with faults of this machine and of the network \(percent(availability.withLocalCauses))")
        }
        parts.append("observed \(percent(availability.observed))")
        let responseTimes = responseParts.compactMap { name, part in
            target.summary.responseTimes.quantile(part).map { "\(name) \(PageText.roundTrip(Sample.duration($0)))" }
        }
        if !responseTimes.isEmpty { parts.append("response \(responseTimes.joined(separator: " "))") }
        parts.append(target.outages == 1 ? "1 outage" : "\(target.outages) outages")
        var outages = target.worst.prefix(shownOutages).map { incident in
            let length = incident.ended.map { $0.milliseconds - incident.began.milliseconds }
            let text = length.map { TimeSpan.rough(.milliseconds($0)) } ?? "open"
            let kind = incident.kind == .flapping ? "flapping  " : ""
            return "  \(Timestamp.text(incident.began))  \(text)  \(kind)\(incident.cause)"
        }
        let hidden = target.outages - outages.count
        if hidden > 0 {
            outages.append(
                "  and \(hidden) shorter \(hidden == 1 ? "one" : "ones"); 'netwatch history --target \(target.id ?? target.text)' lists all"
            )
        }
        return [parts.joined(separator: ", ")] + outages
    }

    private static func percent(_ share: Double?) -> String {
        guard let share else { return "not observed" }
        // 99.9996 % is not 100 %.
        let thousandths = share >= 1 ? 100_000 : min(99_999, Int((share * 100_000).rounded()))
        return "\(thousandths / 1_000).\(String(1_000 + thousandths % 1_000).dropFirst()) %"
    }
}
