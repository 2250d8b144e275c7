import Console
import FoundationEssentials
import Reachability

/// The document of `status`: the settled path, and each target after its first probe.
struct StatusDocument: Hashable {
    /// The time at which the document was created.
    var moment: Moment
    var path: PathUpdate
    /// The targets in the order in which the user gave them.
    var targets: [ServerUpdate]

    /// The result of `status`, which decides its exit code.
    enum Verdict: Hashable {
        case holds, doesNotHold, undetermined
    }

    /// The result: that of the targets if there are any, because a server on this machine or its link is reachable without a
    /// path; else that of the path.
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
