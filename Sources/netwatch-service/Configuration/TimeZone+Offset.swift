import FoundationEssentials

/// Returns the offset of local time from UTC in milliseconds, at a time in milliseconds since 1970.
typealias TimeZoneOffset = @Sendable (Int64) -> Int64

extension TimeZone {
    /// The offset of the zone from UTC, as a function of the time.
    var offset: TimeZoneOffset {
        { Int64(secondsFromGMT(for: Date(timeIntervalSince1970: Double($0) / 1_000))) * 1_000 }
    }
}
