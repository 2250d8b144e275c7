import Console
import FoundationEssentials
package import Reachability

/// The document of `status`: the settled path, each target after its first probe, and the canary.
package struct StatusDocument: Hashable {
    /// The time at which the document was created.
    package var moment: Moment
    package var path: PathUpdate
    /// The targets in the order in which the user gave them. The document has one record for each: its first.
    package var targets: [ServerUpdate] { updates.map { $0.asInitial() } }
    // The last updates, as received. The monitor has the same ones, so that 100,000 targets take no memory for copies.
    private let updates: [ServerUpdate]

    /// The canary; `nil` if none is configured.
    package let canary: ServerUpdate?
    /// The last lookup of a name by this process; `nil` if it has looked up none.
    package let lookup: LookupResult?

    /// The rule for ``verdict``.
    package let rule: FailureRule

    package init(
        moment: Moment, path: PathUpdate, targets: [ServerUpdate], canary: ServerUpdate? = nil, lookup: LookupResult? = nil,
        rule: FailureRule = FailureRule()
    ) {
        self.lookup = lookup
        (self.moment, self.path, updates, self.rule) = (moment, path, targets, rule)
        self.canary = canary?.asInitial()
    }

    /// The result of `status`, which decides its exit code.
    package enum Verdict: Hashable {
        case holds, doesNotHold, undetermined

        /// The result of one server.
        package init(_ state: StatusName) {
            self =
                switch state {
                case .up, .degraded: .holds
                case .down, .unreachable: .doesNotHold
                case .unknown: .undetermined
                }
        }

        /// Returns the common result: one that does not hold decides, then one that is not determined.
        package func combined(with other: Self?) -> Self {
            let other = other ?? .holds
            if self == .doesNotHold || other == .doesNotHold { return .doesNotHold }
            return self == .undetermined || other == .undetermined ? .undetermined : .holds
        }
    }

    /// The result: that of the targets if there are any, because a server on this machine or its link is reachable without a
    /// path; else that of the path. A canary counts in both cases, and changes nothing of the path.
    package var verdict: Verdict { verdictWithoutCanary.combined(with: canary.map(rule.verdict)) }

    private var verdictWithoutCanary: Verdict {
        guard !updates.isEmpty else { return path.path.status == .satisfied ? .holds : .doesNotHold }
        return updates.reduce(.holds) { $0.combined(with: rule.verdict($1)) }
    }

    /// The document as one line of JSON, without the newline.
    package func encode(with encoder: RecordEncoder) -> [UInt8] {
        var bytes: [UInt8] = []
        write(with: encoder) { bytes += $0 }
        return bytes
    }

    /// Writes the document as one line of JSON, without the newline, in pieces. The document of 100,000 targets has 30 MB.
    package func write(with encoder: RecordEncoder, to output: ([UInt8]) -> Void) {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("v", RecordFormat.version)
            writer.member("ts", Timestamp.text(moment))
            writer.key("path")
            writer.object { RecordEncoder.write(keysOf: path, to: &$0) }
            writer.key("targets")
            writer.array { writer in
                for (number, update) in updates.enumerated() {
                    encoder.write(Record(event: .server(TargetID(number), update.asInitial()), seq: number), to: &writer)
                    if writer.bytes.count >= Self.pieceSize { output(writer.takeBytes()) }
                }
            }
            RecordEncoder.write(canary: canary, to: &writer)
        }
        output(writer.takeBytes())
    }

    private static let pieceSize = 1 << 16
}
