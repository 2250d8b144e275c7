import Foundation

/// A target's verdict in a record of the program.
package struct SeenVerdict: Sendable, CustomStringConvertible {
    /// The target as the user wrote it.
    package let target: String
    /// `unknown`, `up`, `degraded`, `down` or `unreachable`.
    package let status: String
    /// `LAYER/CODE`, if the record has a cause.
    package let cause: String?
    /// Whether the failures are too few for the status, and the cause is that of the failures.
    package let isPending: Bool
    /// The sentence for a person.
    package let detail: String
    /// The evidence of the cause, as text. Commas separate the texts of a list.
    package let evidence: [String: String]
    /// The interface of the target's route.
    package let interface: String?
    /// The time at which the program had read the input that caused the record, on CLOCK_MONOTONIC in nanoseconds.
    package let time: Int64
    /// The time at which the record was read from the program's output, on the same clock.
    package let arrival: Int64

    init(_ record: [String: Any], arrival: Int64) {
        self.arrival = arrival
        let cause = record["cause"] as? [String: Any]
        target = record["target"] as? String ?? ""
        status = record["status"] as? String ?? "none"
        self.cause = (cause?["layer"] as? String).map { "\($0)/\(cause?["code"] as? String ?? "")" }
        isPending = record["pending"] as? Bool ?? false
        detail = cause?["detail"] as? String ?? ""
        evidence = (cause?["evidence"] as? [String: Any] ?? [:]).mapValues { value in
            (value as? [String])?.joined(separator: ", ") ?? "\(value)"
        }
        interface = record["interface"] as? String
        time = (record["mono_ns"] as? NSNumber)?.int64Value ?? 0
    }

    /// True if both are of a target that is up over the same interface, between which there was only a failure that did not count.
    func refutes(_ former: SeenVerdict?) -> Bool { status == "up" && former?.status == "up" && interface == former?.interface }

    /// `STATUS` or `STATUS LAYER/CODE`.
    package var line: String { cause.map { "\(status) \($0)" } ?? status }
    package var description: String { line }
}
