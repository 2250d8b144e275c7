import Console
import Reachability
import Records

/// The evidence about one target as JSON, and its outages as CSV.
struct TargetDocument {
    static let contentType = "application/json"

    let board: Board
    let target: BoardTarget
    let detail: TargetDetail
    let query: TargetQuery

    /// Returns the document: indented, because people copy it.
    func json() -> [UInt8] {
        let update = target.update
        var writer = JSONWriter(isIndented: true)
        writer.object { writer in
            writer.member("v", 1)
            writer.member("ts", Timestamp.text(board.moment))
            writer.member("instance", board.instance)
            writer.member("target", update.endpoint.text)
            writer.member("id", target.id)
            writer.member("name", target.title)
            writer.member("group", target.group)
            writer.key("labels")
            if target.labels.isEmpty {
                writer.null()
            } else {
                writer.object { writer in
                    for (name, value) in target.labels.sorted(by: { $0.key < $1.key }) {
                        writer.key(text: name)
                        writer.value(value)
                    }
                }
            }
            writer.member("severity", target.severity?.rawValue)
            writer.member("status", update.statusName.rawValue)
            writer.member("maintenance", target.isInMaintenance)
            writer.member(update.cause)
            writer.member("since", Timestamp.text(update.statusMoment))
            let current = target.current
            writer.member("rtt_ms", milliseconds: current.roundTrip)
            writer.member("response_ms", milliseconds: current.responseTime)
            writer.member("certificate_days_left", current.certificateDaysLeft(at: board.moment))
            writer.member("address", update.address?.description)
            writer.member("interface", update.interface?.name)
            RecordEncoder.write(update.addresses, to: &writer)
            writer.key("last_probe")
            if let report = detail.report {
                writer.object { writer in
                    writer.member("ts", Timestamp.text(report.moment))
                    RecordEncoder.write(keysOf: report, target.identity, to: &writer)
                }
            } else {
                writer.null()
            }
            writer.key("layers")
            writer.array { writer in
                let layers = board.path.map { TargetLayers(update, path: $0.path, detail) }
                for step in layers?.steps ?? [] {
                    writer.object { writer in
                        writer.member("layer", step.layer.rawValue)
                        writer.member("ok", step.finding.isWorking)
                        writer.member("ms", milliseconds: step.duration)
                        writer.member("detail", step.detail)
                        writer.member(evidence: step.evidence)
                    }
                }
                if let other = layers?.other {
                    writer.object { writer in
                        writer.member("layer", other.layer.rawValue)
                        writer.member("ok", update.statusName == .degraded)
                        writer.member("ms", milliseconds: nil)
                        writer.member("detail", other.detail)
                        writer.member(evidence: other.evidence)
                    }
                }
            }
            writer.key("availability")
            writer.object { writer in
                for span in BarSpan.allCases {
                    writer.key(text: span.rawValue)
                    writer.object { writer in
                        // Cells begin with an hour or a day.
                        writer.member("since", board.cells[span].first.map { Self.text($0.lowerBound) })
                        writer.member("until", Timestamp.text(board.moment))
                        Self.write(board.times(of: target, in: span), to: &writer)
                    }
                }
            }
            writer.key("outages")
            writer.array { writer in
                for outage in detail.outages.prefix(TargetDetail.outageLimit) {
                    writer.object { Self.write(outage, to: &$0) }
                }
            }
            writer.key("timeline")
            writer.array { writer in
                for entry in TimelineEntry.merged(detail) { writer.object { Self.write(entry, to: &$0) } }
            }
        }
        return writer.bytes
    }

    /// Returns the outages as CSV with a line of names.
    func csv() -> [UInt8] {
        var document = CSVDocument()
        document.add([
            "target", "id", "name", "status", "from", "to", "seconds", "layer", "code", "detail", "incident", "recorded",
        ])
        for outage in detail.outages {
            let seconds = outage.end.map { "\($0.elapsed(since: outage.start) / 1_000)" }
            document.add([
                target.update.endpoint.text, target.id, target.title, outage.state.name, Self.text(outage.start),
                outage.end.map(Self.text), seconds, outage.cause?.layer.rawValue, outage.cause?.code.rawValue,
                outage.cause?.detail,
                outage.incident, outage.isRecorded ? "true" : "false",
            ])
        }
        return document.bytes
    }

    private static func text(_ milliseconds: Int64) -> String {
        // 64 bits of nanoseconds cover the years 1677 to 2262.
        let limit = Int64.max / 1_000_000
        return Timestamp.text(wallClockNanoseconds: min(max(milliseconds, -limit), limit) * 1_000_000)
    }

    private static func write(_ times: StateTimes, to writer: inout JSONWriter) {
        let availability = Availability(times)
        func thousandths(_ part: Double?) -> Int? { part.map { Int(($0 * 100_000).rounded(.down)) } }
        writer.member("percent", thousandths: thousandths(availability.server))
        writer.member("percent_with_local_causes", thousandths: thousandths(availability.withLocalCauses))
        writer.member("percent_observed", thousandths: thousandths(availability.observed))
        writer.key("seconds")
        writer.object { writer in
            for state in RecordedState.allCases {
                writer.key(text: state.name)
                writer.value(thousandths: Int(times[state]))
            }
        }
    }

    private static func write(_ outage: TargetDetail.Outage, to writer: inout JSONWriter) {
        writer.member("status", outage.state.name)
        writer.member("from", text(outage.start))
        writer.member("to", outage.end.map(text))
        writer.member(outage.cause)
        writer.member("incident", outage.incident)
        writer.member("recorded", outage.isRecorded)
    }

    private static func write(_ entry: TimelineEntry, to writer: inout JSONWriter) {
        writer.member("ts", text(entry.time))
        switch entry.content {
        case .state(let change):
            writer.member("type", "target")
            writer.member("status", change.state.name)
            writer.member(change.cause)
        case .path(let event):
            writer.member("type", "path")
            writer.member("status", event.isSatisfied ? "satisfied" : "unsatisfied")
            writer.member("interface", event.interface)
            writer.member("reasons", event.reasons)
            writer.member(event.cause)
        case .gap(let gap):
            writer.member("type", "gap")
            writer.member("to", text(gap.period.upperBound))
            writer.member("reason", gap.reason.rawValue)
        }
    }
}
