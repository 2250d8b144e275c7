import EventLoop
import Foundation
import NetworkLab

/// The built program on the client: `netwatch watch --json -v`, as an ordinary user, and the verdicts that it has published.
package final class VerdictWatch {
    /// The options of the program: a probe each second, and two results for a verdict.
    static let options = ["--interval", "1s", "--fail-after", "2"]

    /// The targets of the program.
    package let targets: [String]
    /// The targets that must stay up.
    private let workingTargets: [String]
    private let program: Program
    /// The latest verdict of each target.
    package private(set) var latest: [String: SeenVerdict] = [:]
    /// All verdicts since the fault, in order.
    package private(set) var sinceFault: [SeenVerdict] = []
    /// The number of probes of each target, those before the fault excepted.
    package private(set) var probes: [String: Int] = [:]
    /// The latest verdict of each target that must stay up; of one that was not up, that verdict.
    private var workingVerdicts: [String: SeenVerdict] = [:]
    /// The time of the first probe since the fault that failed.
    package private(set) var firstFailure: Int64?
    /// The time of the fault, on CLOCK_MONOTONIC in nanoseconds.
    package private(set) var faultTime: Int64 = 0
    /// The time of the program's first record.
    package private(set) var startTime: Int64 = 0

    init(_ network: FaultNetwork, _ fault: Fault) throws {
        (targets, workingTargets) = (fault.targets, fault.workingTargets)
        program = try network.start(
            [Programs.netwatch, "watch", "--json", "-v"] + Self.options + fault.arguments + fault.workingTargets
                + fault.companions)
        while startTime == 0 {
            guard try read(within: .seconds(60)) else { throw LabError("the program does not start: \(program.ending)") }
        }
    }

    /// True if all targets are up, and their routes have been in use for a second probe.
    var isUp: Bool {
        latest.count == targets.count && all { $0.status == "up" } && targets.allSatisfy { probes[$0, default: 0] > 1 }
    }

    /// Begins to collect verdicts for the fault that is made now, or that existed at the start.
    func beginFault(atStart: Bool) {
        faultTime = atStart ? startTime : MonotonicClock.now()
        if !atStart { probes = [:] }
        firstFailure = nil
    }

    /// Reads records until `isReached` is true. - Returns: false if the time is over first.
    package func await(within limit: Duration, _ isReached: (VerdictWatch) throws -> Bool) throws -> Bool {
        let start = ContinuousClock.now
        while try !isReached(self) {
            let left = limit - start.duration(to: .now)
            guard left > .zero, try read(within: left) else { return false }
        }
        return true
    }

    /// True if each target's latest verdict is accepted.
    package func all(_ accepts: (SeenVerdict) -> Bool) -> Bool {
        latest.values.allSatisfy(accepts) && !latest.isEmpty
    }

    /// Why the targets that must stay up have not done so; `nil` if they have.
    var problemOfWorking: String? {
        for target in workingTargets {
            guard let verdict = workingVerdicts[target] else { return "\(target) has no verdict" }
            if verdict.status != "up" { return "\(target) must stay up, and is \(verdict): \(verdict.detail)" }
        }
        return nil
    }

    /// Ends the program.
    func stop() {
        program.stop()
    }

    /// Reads one record. - Returns: false if none comes in time.
    private func read(within limit: Duration) throws -> Bool {
        guard let line = try program.lineIfAny(within: limit) else { return false }
        guard let record = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
            throw LabError("not a record: \(line)")
        }
        let verdict = SeenVerdict(record, arrival: MonotonicClock.now())
        switch record["type"] as? String {
        case "hello": startTime = verdict.time
        // The first failure, and the success that refutes it, are no verdicts.
        case "target" where verdict.isPending || verdict.refutes(latest[verdict.target]): break
        case "target" where targets.contains(verdict.target):
            latest[verdict.target] = verdict
            // A record of an input that precedes the fault says nothing of it.
            if faultTime > 0 && verdict.time >= faultTime && verdict.status != "unknown" { sinceFault.append(verdict) }
        case "target" where workingTargets.contains(verdict.target):
            if workingVerdicts[verdict.target].map({ ["unknown", "up"].contains($0.status) }) ?? true {
                workingVerdicts[verdict.target] = verdict
            }
        case "probe" where targets.contains(verdict.target):
            probes[verdict.target, default: 0] += 1
            if faultTime > 0, verdict.time >= faultTime, record["ok"] as? Bool == false && firstFailure == nil {
                firstFailure = verdict.time
            }
        default: break
        }
        return true
    }
}
