import Reachability

/// The state of the service in one line, for `systemctl status`.
enum ServiceStatus {
    /// Returns the line, as in `3 of 5 targets up, uplink eth0`.
    static func line(of board: Board) -> String {
        let up = board.targets.count { $0.update.state == .up || $0.update.state == .degraded }
        let targets = board.targets.isEmpty ? "no targets" : "\(up) of \(board.targets.count) targets up"
        guard let path = board.path?.path else { return "\(targets), path not yet known" }
        let uplink = path.interface.map { "uplink \($0.name)" } ?? "no uplink"
        let recording = board.recording.reason.map { ", nothing is recorded: \($0)" } ?? ""
        return "\(targets), \(uplink)\(recording)"
    }
}
