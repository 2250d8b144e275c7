internal import Pacing

/// The slow class of targets whose route leads over a metered interface (``MeteredLimits``).
extension TargetMachine {
    /// The number of intervals between two scheduled probes.
    var intervalFactor: Int { meteredInterface == 0 ? 1 : settings.metered.intervalFactor }

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
