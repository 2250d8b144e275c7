import EventLoop
import Foundation
package import NetworkLab

/// A fault of a component that many targets share, and the one incident that it must be. Routers limit their ICMP messages as Linux does by default.
package struct IncidentFault: Sendable, CustomStringConvertible {
    /// The fault in words.
    package let name: String
    /// The targets that the fault affects.
    package let targets: [String]
    /// Further targets, which have no incident.
    package var workingTargets: [String] = []
    /// The name servers in the client's resolv.conf.
    package var nameServers: [String] = []
    /// Whether the row opens tun devices.
    package var needsTun = false
    /// Completes the network before the program starts.
    package var prepare: @Sendable (FaultNetwork) throws -> Void
    package let make: @Sendable (FaultNetwork) throws -> Void
    package let repair: @Sendable (FaultNetwork) throws -> Void
    /// The required subject: `gateway 10.1.0.1`.
    package let subject: String
    /// The required cause: `neighbor/gateway-silent`.
    package let cause: String

    package var description: String { name }

    /// The time that a failure lasts before its incident opens, in seconds.
    private static let openAfter = 12
    /// The time for which a published incident must stay the only one.
    private static let settling = Duration.seconds(12)

    /// Makes the network, the fault and its repair, and observes the incidents of the program. - Returns: what is wrong; `nil` if nothing is.
    package func run() throws -> String? {
        let network = try FaultNetwork(nameServers: nameServers)
        try prepare(network)
        let watch = try IncidentWatch(
            network.start(
                [Programs.netwatch, "watch", "--json", "--interval", "1s", "--open-after", "\(Self.openAfter)s"] + targets
                    + workingTargets))
        let all = targets.count + workingTargets.count
        guard try watch.await(within: .seconds(120), { $0.up.count == all }) else {
            return "only \(watch.up.count) targets of \(all) are up before the fault: \(watch.causes)"
        }
        // Each route is in use for another probe.
        _ = try watch.await(within: .seconds(3)) { _ in false }
        try make(network)
        let isComplete = try watch.await(within: .seconds(90)) { $0.open.values.contains { $0.count == targets.count } }
        if isComplete { _ = try watch.await(within: Self.settling) { _ in false } }
        let (opened, causes) = (watch.last, watch.causes)
        try repair(network)
        let isRepaired = try watch.await(within: .seconds(120)) { $0.up.count == all && $0.open.isEmpty }
        if isRepaired { _ = try watch.await(within: .seconds(Self.openAfter + 3)) { _ in false } }
        watch.stop()
        let history = watch.log.joined(separator: "\n")
        guard opened.count == 1, let incident = opened.values.first else {
            return "\(opened.count) incidents:\n\(history)\ncauses of the targets: \(causes)"
        }
        let (found, expected) = (
            "\(incident.subject) \(incident.cause) ×\(incident.count)", "\(subject) \(cause) ×\(targets.count)"
        )
        guard found == expected else { return "\(found) in place of \(expected):\n\(history)\ncauses of the targets: \(causes)" }
        guard isRepaired else { return "after the repair: \(watch.causes)\n\(history)" }
        guard watch.last.count == 1, watch.last.values.first?.state == "over" else { return "after the repair:\n\(history)" }
        return nil
    }

    /// Runs the row on a thread of its own, so that it does not block a thread of the pool.
    package func problem() async throws -> String? {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try detachThread { continuation.resume(with: Result { try run() }) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}

/// The incidents that the built program publishes, and the states of its targets.
private final class IncidentWatch {
    struct Incident {
        let subject, cause, state: String
        let count: Int
    }

    private let program: Program
    /// The last state of each incident.
    private(set) var last: [String: Incident] = [:]
    /// The targets that are up now, and the causes of the others.
    private(set) var up: Set<String> = []
    private var failures: [String: String] = [:]
    /// A line for each record of an incident.
    private(set) var log: [String] = []

    init(_ program: Program) { self.program = program }

    var open: [String: Incident] { last.filter { $0.value.state == "open" } }

    /// The causes of the targets that are not up, with their numbers.
    var causes: [String: Int] { Dictionary(failures.values.map { ($0, 1) }, uniquingKeysWith: +) }

    func stop() { program.stop() }

    /// Reads records until `isReached` is true. - Returns: false if the time is over first.
    func await(within limit: Duration, _ isReached: (IncidentWatch) -> Bool) throws -> Bool {
        let start = ContinuousClock.now
        while !isReached(self) {
            let left = limit - start.duration(to: .now)
            guard left > .zero, let line = try program.lineIfAny(within: left) else { return false }
            try read(line)
        }
        return true
    }

    private func read(_ line: String) throws {
        guard let record = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
            throw LabError("not a record: \(line)")
        }
        let cause = (record["cause"] as? [String: Any]).map { "\($0["layer"] ?? "")/\($0["code"] ?? "")" } ?? "none"
        switch record["type"] as? String {
        case "target":
            guard let target = record["target"] as? String, let status = record["status"] as? String else { return }
            if status == "up" { up.insert(target) } else { up.remove(target) }
            failures[target] = status == "up" ? nil : "\(status) \(cause)"
        case "incident":
            guard let id = record["incident"] as? String, let subject = record["subject"] as? [String: Any] else { return }
            let incident = Incident(
                subject: "\(subject["kind"] ?? "") \(subject["name"] as? String ?? "")", cause: cause,
                state: record["state"] as? String ?? "", count: record["target_count"] as? Int ?? 0)
            last[id] = incident
            log.append(
                "\(record["ts"] ?? "") \(id) \(incident.state) \(incident.subject) \(cause) ×\(incident.count) from \(record["from"] ?? "") into \(record["into"] ?? "")"
            )
        default: break
        }
    }
}
