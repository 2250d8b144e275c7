import Console
import FoundationEssentials
import Reachability

/// The document of `status`: the settled path, and each target after its first probe.
struct StatusDocument: Hashable {
    /// The time at which the document was created.
    var moment: Moment
    var path: PathUpdate
    /// The targets in the order in which the user gave them. The document has one record for each: its first.
    var targets: [ServerUpdate] { updates.map { $0.asInitial() } }
    // The last updates, as received. The monitor has the same ones, so that 100,000 targets take no memory for copies.
    private let updates: [ServerUpdate]

    init(moment: Moment, path: PathUpdate, targets: [ServerUpdate]) {
        (self.moment, self.path, updates) = (moment, path, targets)
    }

    /// The result of `status`, which decides its exit code.
    enum Verdict: Hashable {
        case holds, doesNotHold, undetermined
    }

    /// The result: that of the targets if there are any, because a server on this machine or its link is reachable without a
    /// path; else that of the path.
    var verdict: Verdict {
        guard !updates.isEmpty else { return path.path.status == .satisfied ? .holds : .doesNotHold }
        if updates.contains(where: { $0.state == .down || $0.state == .unreachable }) { return .doesNotHold }
        return updates.contains { $0.state == .unknown } ? .undetermined : .holds
    }

    /// The document as one line of JSON, without the newline.
    func encode(with encoder: RecordEncoder) -> [UInt8] {
        var bytes: [UInt8] = []
        write(with: encoder) { bytes += $0 }
        return bytes
    }

    /// Writes the document as one line of JSON, without the newline, in pieces. The document of 100,000 targets has 30 MB.
    func write(with encoder: RecordEncoder, to output: ([UInt8]) -> Void) {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("v", RecordFormat.version)
            writer.member("ts", Timestamp.text(moment))
            writer.key("path")
            writer.object { encoder.write(keysOf: path, to: &$0) }
            writer.key("targets")
            writer.array { writer in
                for (number, update) in updates.enumerated() {
                    encoder.write(Record(event: .server(TargetID(number), update.asInitial()), seq: number), to: &writer)
                    if writer.bytes.count >= Self.pieceSize { output(writer.takeBytes()) }
                }
            }
        }
        output(writer.takeBytes())
    }

    private static let pieceSize = 1 << 16
}
