import Console
import FoundationEssentials
import Reachability

/// One settled snapshot: the path, and each target after its first probe.
struct StatusDocument: Hashable {
    /// When it was made.
    var moment: Moment
    var path: PathUpdate
    /// In the order in which the user gave them.
    var targets: [ServerUpdate]

    /// Whether what was asked about holds.
    enum Verdict: Hashable {
        case holds, doesNotHold, undetermined
    }

    /// The targets decide where there are any: a server on this machine or its link is reached without a path. Else the path does.
    var verdict: Verdict {
        guard !targets.isEmpty else { return path.path.status == .satisfied ? .holds : .doesNotHold }
        let states = targets.map(\.state)
        if states.contains(where: { $0 == .down || $0 == .unreachable }) { return .doesNotHold }
        return states.contains(.unknown) ? .undetermined : .holds
    }

    /// The document as one line of JSON, without the newline.
    func encode(with encoder: RecordEncoder) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("v", RecordFormat.version)
            writer.member("ts", Timestamp.text(moment))
            writer.key("path")
            writer.object { encoder.write(keysOf: path, to: &$0) }
            writer.key("targets")
            writer.array { writer in
                for (number, update) in targets.enumerated() {
                    encoder.write(Record(event: .server(TargetID(number), update), seq: number), to: &writer)
                }
            }
        }
        return writer.bytes
    }
}
