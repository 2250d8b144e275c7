internal import Pacing

/// The slow class of targets whose route leads over a metered interface (``MeteredLimits``).
extension TargetMachine {
    /// The number of intervals between two scheduled probes. While a failure is pending it is 1, so that its verdict does not wait.
    var intervalFactor: Int {
        verdict.pending != nil ? 1 : max(meteredInterface == 0 ? 1 : settings.metered.intervalFactor, costFactor)
    }

    /// The number of intervals after which a server is probed again whose handshake costs too much: at least a minute.
    private var costFactor: Int {
        guard verdict.cause?.code == .excessiveCost else { return 1 }
        return Int((Self.costlyInterval - 1) / schedule.interval + 1)
    }

    /// The shortest interval of probes of a costly server, in nanoseconds.
    private static let costlyInterval: Int64 = 60_000_000_000

    /// Notes whether an open route leads over a metered interface.
    mutating func noteMeteredInterface(_ turn: Turn) {
        let interfaces = turn.localState.interfaces
        meteredInterface = openRoutes.values.first { interfaces[$0.interface]?.isExpensive == true }?.interface ?? 0
        if meteredInterface == 0 { pausedUntil = .min }
    }

    /// Delays the next probe, because the budget of the metered interface is used up. A delay of less than an interval is not
    /// published.
    mutating func pause(until time: Int64, _ turn: inout Turn) {
        pausedUntil = time
        guard time.addingSaturated(-turn.time) >= schedule.interval else { return }
        isPaused = true
        publish(&turn)
    }
}
