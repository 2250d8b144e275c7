/// A meter of the bytes per second over the last five seconds. Times are nanoseconds.
struct RateMeter: Hashable {
    static let window: Int64 = 5_000_000_000
    /// The minimum time between samples; closer samples are merged.
    static let step: Int64 = 100_000_000
    /// The minimum time for a meaningful rate.
    static let shortest: Int64 = 500_000_000

    private struct Sample: Hashable {
        var time: Int64
        var bytes: Int64
    }

    private var samples: [Sample]
    private var grewAt: Int64

    /// Creates a meter that starts at `bytes`.
    init(bytes: Int64, at time: Int64) {
        samples = [Sample(time: time, bytes: bytes)]
        grewAt = time
    }

    /// Adds a sample of the total number of bytes. If it is smaller than before, the meter restarts.
    mutating func add(bytes: Int64, at time: Int64) {
        guard let last = samples.last else { return }
        guard bytes >= last.bytes else {
            self = RateMeter(bytes: bytes, at: time)
            return
        }
        if bytes > last.bytes { grewAt = time }
        if samples.count > 1, time - samples[samples.count - 2].time < RateMeter.step { samples.removeLast() }
        samples.append(Sample(time: time, bytes: bytes))
        // One sample may be older than the window, so that the samples always cover it.
        while samples.count > 2, samples[1].time <= time - RateMeter.window { samples.removeFirst() }
    }

    /// Returns the bytes per second; `nil` until the time is long enough.
    func rate(at now: Int64) -> Int64? {
        guard let first = samples.first, let last = samples.last, now - first.time >= RateMeter.shortest else { return nil }
        let span = now - first.time
        return Int64(Double(last.bytes - first.bytes) / Double(span) * 1e9)
    }

    /// Returns the time since the last byte.
    func silence(at now: Int64) -> Int64 { now - grewAt }
}
