import Pacing

/// The present time of the retention, by which old history is removed.
///
/// A clock that is far in the future would remove everything. It is believed after it has shown such a time for an hour.
struct RetentionClock: Hashable, Sendable {
    /// The time beyond the elapsed time that is believed at once, in milliseconds.
    static let tolerance: Int64 = 86_400_000
    /// The time for which the wall clock must show a later time, in milliseconds.
    static let proof: Int64 = 3_600_000

    private var time: Int64
    /// The monotonic time of the last reading.
    private var monotonic: Int64
    /// The monotonic time since which the wall clock shows a time that is not believed.
    private var laterSince: Int64?

    /// Starts the clock. - Parameters: `time` is the last time of the history; `monotonic` is the present time of the monotonic clock.
    init(_ time: Int64, at monotonic: Int64) { (self.time, self.monotonic) = (time, monotonic) }

    /// Continues with another reading of the clocks. - Returns: the present time in milliseconds since 1970.
    mutating func read(wall: Int64, monotonic: Int64) -> Int64 {
        let expected = time.addingSaturated(monotonic.elapsed(since: self.monotonic))
        self.monotonic = monotonic
        if wall > expected.addingSaturated(Self.tolerance) {
            let since = laterSince ?? monotonic
            laterSince = since
            if monotonic.elapsed(since: since) < Self.proof {
                time = expected
                return time
            }
        }
        (time, laterSince) = (wall, nil)
        return time
    }
}
