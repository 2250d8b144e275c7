internal import Pacing

/// Probes over paths that are slow or lose packets.
extension TargetMachine {
    /// The most times of ``ProbeSettings/timeout`` that a probe over a slow path has.
    static let longestProbe: Int64 = 3
    /// The number of consecutive failures that a known loss explains. More are no chance.
    private static let lossyFailures: UInt8 = 5

    /// The time of the next probe in nanoseconds: that of the settings, or more over a slow path.
    var probeTime: Int64 {
        let timeout = settings.timeout.saturatingNanoseconds
        return slowRoundTrip > 0 ? timeout.multipliedSaturated(by: Self.longestProbe) : timeout
    }

    /// The loss before the first failure, in percent, as far as it explains the present one.
    var knownLoss: Int { failuresSinceSuccess < Self.lossyFailures ? Int(lossAtSuccess) : 0 }

    /// Returns why a connection has made no progress until the deadline; `nil` if the path is not at fault.
    func stall(_ levels: LevelResult, _ result: ProbeResult, at address: IPAddress) -> Finding? {
        guard levels.isAtDeadline, let progress = levels.progress else { return nil }
        let stalled = StalledConnection(
            progress: progress, handshakeRetransmissions: result.retransmissions ?? 0, timeout: probeTime, knownLoss: knownLoss)
        guard let cause = stalled.cause(address, port: peer.port) else { return nil }
        var finding = Finding(cause, accusesServer: false, isCertain: false)
        finding.isProvisional = cause.code == .latency && slowRoundTrip == 0
        return finding
    }

    /// Returns why a target that has answered is degraded: its probe needed more time than the settings have.
    mutating func slowness(_ run: ProbeRun, _ result: ProbeResult, at address: IPAddress, _ turn: Turn) -> Cause? {
        guard slowRoundTrip > 0 else { return nil }
        let timeout = settings.timeout.saturatingNanoseconds
        let elapsed = turn.now.elapsed(since: run.started).saturatingNanoseconds
        // The round trip of a connection whose SYN was sent twice is not known: the measured one may contain the wait for a lost SYN. The handshake and
        // the first byte of the answer take at least one each.
        let phases = [run.levels?.handshakeNanoseconds, run.levels?.processingNanoseconds].compactMap { $0 }
        let roundTrip = min(
            result.roundTripNanoseconds > 0 ? result.roundTripNanoseconds : Int64(slowRoundTrip) * 1_000, phases.min() ?? .max)
        guard elapsed > timeout, roundTrip >= timeout / StalledConnection.slowPart else {
            slowRoundTrip = 0
            return nil
        }
        let microseconds = Int(roundTrip / 1_000)
        let evidence: [String: Cause.Evidence] = [
            "address": .text("\(address)"), "rtt_us": .number(microseconds), "elapsed_ms": .number(Int(elapsed / 1_000_000)),
        ]
        let time = "\(StalledConnection.text(elapsed)), more than \(StalledConnection.text(timeout))"
        return StalledConnection.slow(roundTrip: microseconds, time, evidence)
    }

    /// Returns the finding of a silent target as one of loss, if packets were lost before.
    func lossy(_ finding: Finding, at address: IPAddress) -> Finding {
        let isSilence =
            switch (finding.cause.layer, finding.cause.code) {
            case (.tcp, .timeout), (.network, .upstreamSilent): true
            default: false
            }
        // Several networks that are silent at once have not lost packets by chance.
        guard isSilence, finding.cause.evidence["silent_networks"] == nil, knownLoss >= StalledConnection.decisiveLoss else {
            return finding
        }
        let detail =
            "\(address) does not answer, and \(knownLoss) % of the last packets between this machine and it were lost before"
        let evidence = finding.cause.evidence.merging(["loss_percent": .number(knownLoss)]) { old, _ in old }
        return Finding(Cause(.quality, .loss, detail: detail, evidence: evidence), accusesServer: false)
    }
}
