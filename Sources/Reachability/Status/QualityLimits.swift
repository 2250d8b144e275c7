internal import Pacing

/// The limits beyond which a server that answers is ``ServerStatus/degraded(via:_:)``.
///
/// Loss, round trip, response time and jitter are measured over a window of the last results. A server is degraded from the result with
/// which one of them reaches its limit. It stays degraded until the value has been clearly below the limit for a complete window: a
/// quarter of the limit for loss, three quarters for the round trip and the response time, half for jitter. A value that varies around its
/// limit therefore does not change the status with each result.
///
/// ```swift
/// var settings = ProbeSettings()
/// settings.quality.roundTrip = .milliseconds(200)
/// ```
public struct QualityLimits: Hashable, Sendable {
    // Every target has limits. These units need 20 bytes.
    private static let none = UInt32.max
    private var lossPartsPerMillion: UInt32
    private var roundTripMicroseconds: UInt32
    private var jitterMicroseconds: UInt32
    private var responseMicroseconds: UInt32
    private var results: UInt8

    /// The part of the results that may be lost before the server is degraded, from 0 to 1; default 0.2. `nil` if loss does not
    /// degrade a server.
    ///
    /// At least one result has to be lost, also if the limit is 0. While fewer results than a window are known, the missing ones
    /// count as received.
    public var loss: Double? {
        get { lossPartsPerMillion == Self.none ? nil : Double(lossPartsPerMillion) / 1_000_000 }
        set {
            // A value that is no number is no limit.
            guard let newValue, !newValue.isNaN else { return lossPartsPerMillion = Self.none }
            lossPartsPerMillion = UInt32((min(max(newValue, 0), 1) * 1_000_000).rounded())
        }
    }

    /// The median round trip at which the server is degraded, in whole microseconds, at least one; default `nil`, for no limit.
    ///
    /// It is compared when at least half of the window has a round trip.
    public var roundTrip: Duration? {
        get { Self.duration(roundTripMicroseconds) }
        set { roundTripMicroseconds = Self.microseconds(newValue) }
    }

    /// The median response time at which the server is degraded, in whole microseconds, at least one; default `nil`, for no limit.
    ///
    /// A response time goes from the start of the connection to the complete answer (``ServerUpdate/responseTime``). The median is
    /// compared when at least half of the window has a response time.
    public var responseTime: Duration? {
        get { Self.duration(responseMicroseconds) }
        set { responseMicroseconds = Self.microseconds(newValue) }
    }

    /// The jitter at which the server is degraded, in whole microseconds, at least one; default `nil`, for no limit.
    ///
    /// Jitter is the mean difference between consecutive round trips (RFC 3393) in the window, without the two largest
    /// differences: a single slow answer makes two of them. It is compared when at least half of the window has a round trip.
    public var jitter: Duration? {
        get { Self.duration(jitterMicroseconds) }
        set { jitterMicroseconds = Self.microseconds(newValue) }
    }

    /// The number of results over which the values are measured, from 5 to 20; default 20.
    public var window: Int {
        get { Int(results) }
        set { results = UInt8(min(max(newValue, 5), 20)) }
    }

    /// Creates limits. Omitted values have their defaults; values out of range are set to the nearest one in range.
    ///
    /// - Parameters:
    ///   - loss: the part of the results that may be lost, from 0 to 1.
    ///   - roundTrip: the limit of the median round trip.
    ///   - responseTime: the limit of the median response time.
    ///   - jitter: the limit of the jitter.
    ///   - window: the number of results over which the values are measured.
    public init(
        loss: Double? = 0.2, roundTrip: Duration? = nil, responseTime: Duration? = nil, jitter: Duration? = nil, window: Int = 20
    ) {
        (lossPartsPerMillion, roundTripMicroseconds, jitterMicroseconds) = (Self.none, Self.none, Self.none)
        (responseMicroseconds, results) = (Self.none, 20)
        self.loss = loss
        self.roundTrip = roundTrip
        self.responseTime = responseTime
        self.jitter = jitter
        self.window = window
    }

    private static func duration(_ microseconds: UInt32) -> Duration? {
        microseconds == none ? nil : .microseconds(Int64(microseconds))
    }

    private static func microseconds(_ duration: Duration?) -> UInt32 {
        duration.map { UInt32(clamping: min(max(1, $0.saturatingNanoseconds / 1_000), Int64(none - 1))) } ?? none
    }
}
