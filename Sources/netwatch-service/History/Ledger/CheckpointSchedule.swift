import Pacing

/// The times of checkpoints.
enum CheckpointSchedule {
    /// The first checkpoint after a time: a multiple of the interval since 1970. Checkpoints of an hour are thus at the ends of hours,
    /// where each block is written once.
    ///
    /// - Parameters:
    ///   - time: milliseconds since 1970.
    ///   - interval: milliseconds, above 0.
    /// - Returns: milliseconds since 1970.
    static func next(after time: Int64, every interval: Int64) -> Int64 {
        time - time.floorDivided(by: max(interval, 1)).remainder + max(interval, 1)
    }
}
