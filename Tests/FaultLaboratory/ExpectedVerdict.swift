/// The verdict that a fault requires, with its evidence and its time.
package struct ExpectedVerdict: Sendable, CustomStringConvertible {
    /// The lines of which one is required: `up`, `unreachable link/interface-down`.
    package var lines: [String]
    /// Evidence that the cause must have.
    package var evidence: [String: String] = [:]
    /// The interface that the record must name, if that is part of the verdict.
    package var interface: String?
    /// The time from the fault to the verdict.
    package var limit: Duration
    /// The time from the first probe that failed to the verdict, if that is limited.
    package var confirmation: Duration?
    /// Lines that may be published before the verdict.
    package var meanwhile: [String] = []
    /// The number of later probes during which the verdict must not change.
    package var steadyProbes: Int = 0

    /// The time for what the kernel reports by an event.
    package static let atOnce = Duration.milliseconds(100)
    /// The time for a definite answer to a probe: the next probe begins within the interval of a second, and the second one that counts a second
    /// later.
    package static let answered = Duration.milliseconds(2_300)
    /// The time for a server that costs much: the next probe begins within the interval of a second, and the second one a second later.
    package static let costly = Duration.milliseconds(2_300)
    /// The time for failed lookups of two probes, which begin a second apart.
    package static let lookups = Duration.milliseconds(2_400)
    /// The time for silence: the next probe begins within the interval of a second, and the verdict follows within twice the
    /// deadline of 3 s.
    package static let silent = Duration.milliseconds(7_500)

    /// The time from the first failure to the next probe that counts, one interval later, two round trips included.
    private static let confirmation = Duration.milliseconds(1_300)

    /// The server is at fault.
    package static func down(_ cause: String, _ evidence: [String: String] = [:], within limit: Duration = answered) -> Self {
        Self(
            lines: ["down \(cause)"], evidence: evidence, limit: limit,
            confirmation: limit == answered ? confirmation : nil, steadyProbes: limit == silent ? 1 : 2)
    }

    /// Something before the server is at fault.
    package static func unreachable(_ cause: String, _ evidence: [String: String] = [:], within limit: Duration) -> Self {
        Self(
            lines: ["unreachable \(cause)"], evidence: evidence, limit: limit,
            confirmation: limit == answered ? confirmation : nil, steadyProbes: limit == atOnce ? 0 : limit == silent ? 1 : 2)
    }

    /// The target works, with restrictions that the cause names. Another address may be in use before the cause is confirmed.
    package static func degraded(_ cause: String, _ evidence: [String: String] = [:], within limit: Duration) -> Self {
        Self(lines: ["degraded \(cause)"], evidence: evidence, limit: limit, meanwhile: ["up"], steadyProbes: 2)
    }

    /// The target works.
    package static func up(within limit: Duration, interface: String? = nil) -> Self {
        Self(lines: ["up"], interface: interface, limit: limit, steadyProbes: 2)
    }

    /// Sets the number of later probes that must not change the verdict. A target without a path is not probed.
    package func steady(for probes: Int) -> Self {
        var copy = self
        copy.steadyProbes = probes
        return copy
    }

    /// Adds lines that may be published before the verdict.
    package func after(_ lines: String...) -> Self {
        var copy = self
        copy.meanwhile += lines
        return copy
    }

    package var description: String {
        ([lines.joined(separator: " or ")] + evidence.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            + (interface.map { ["interface=\($0)"] } ?? [])).joined(separator: " ")
    }

    /// Describes a verdict with the evidence that this expectation names.
    package func describe(_ verdict: SeenVerdict) -> String {
        ([verdict.line] + evidence.keys.sorted().map { "\($0)=\(verdict.evidence[$0] ?? "none")" }
            + (interface == nil ? [] : ["interface=\(verdict.interface ?? "none")"])).joined(separator: " ")
    }

    func isMet(by verdict: SeenVerdict) -> Bool {
        (lines.contains(verdict.line) || lines.contains(verdict.status))
            && evidence.allSatisfy { verdict.evidence[$0.key] == $0.value }
            && (interface == nil || verdict.interface == interface)
    }

    /// True if a record may be published between the fault and the verdict.
    func allows(_ verdict: SeenVerdict) -> Bool {
        isMet(by: verdict) || meanwhile.contains(verdict.line) || meanwhile.contains(verdict.status)
    }
}
