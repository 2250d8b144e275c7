/// The limits of probes over a metered interface: one whose ``NetworkInterface/isExpensive`` is true, such as a cellular modem or a
/// tunnel above it.
///
/// A server whose route leads over a metered interface is probed less often, and its probes share a budget of bytes. If the budget is
/// used up, the probes pause until it is refilled: ``ServerUpdate/isPaused`` is true, and the status stays as it is.
///
/// ```swift
/// var settings = ProbeSettings()
/// settings.metered.bytesPerDay = 1_000_000
/// ```
public struct MeteredLimits: Hashable, Sendable {
    /// The factor by which the interval of probes is longer over a metered interface, from 1 to 1,000; default 6. A result is
    /// confirmed at the usual times.
    public var intervalFactor: Int {
        get { Int(factor) }
        set { factor = Self.factor(newValue) }
    }

    /// The number of bytes that probes may use over one metered interface per day, at least 1; default 5,000,000. `nil` for no limit.
    ///
    /// The budget is refilled evenly, and the bytes of one hour may be used at once. All servers of a monitor with the same value
    /// share the budget of an interface. The bytes that are sent are estimated: 100 for a connection attempt by IPv4 and 140 by IPv6,
    /// 60 or 80 for a repeated SYN segment, 46 and the length of the name for each question to a name server, 87 for a question to a
    /// gateway. A TLS handshake and an HTTP exchange count with 8,192 bytes each when their attempt begins. When they end, the bytes
    /// that they sent and received replace these, with the headers of the packets.
    public var bytesPerDay: Int? {
        get { bytes == 0 ? nil : Int(clamping: bytes) }
        set { bytes = newValue.map { UInt64(max($0, 1)) } ?? 0 }
    }

    private var bytes: UInt64
    private var factor: UInt16

    /// Creates limits. Omitted values have their defaults; values out of range are set to the nearest one in range.
    public init(intervalFactor: Int = 6, bytesPerDay: Int? = 5_000_000) {
        factor = Self.factor(intervalFactor)
        bytes = bytesPerDay.map { UInt64(max($0, 1)) } ?? 0
    }

    private static func factor(_ value: Int) -> UInt16 { UInt16(min(max(value, 1), 1_000)) }
}
