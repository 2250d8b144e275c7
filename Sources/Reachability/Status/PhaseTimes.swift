import Pacing

/// A phase of a probe. The response time is the sum of all but the name's resolution.
package enum ProbePhase: String, Hashable, Sendable, CaseIterable {
    case resolution = "dns"
    case connect
    case handshake = "tls"
    case firstByte = "first_byte"
    case transfer
}

/// The times of the phases of a probe, in microseconds, at most 71 minutes each.
package struct PhaseTimes: Hashable, Sendable {
    private static let none = UInt32.max

    private var resolution = none
    private var connect = none
    private var handshake = none
    private var firstByte = none
    private var transfer = none

    /// Creates the times of a probe that has reached no phase.
    package init() {}

    /// The time of a phase; `nil` if the probe did not reach it.
    package subscript(phase: ProbePhase) -> Duration? {
        get {
            let value =
                switch phase {
                case .resolution: resolution
                case .connect: connect
                case .handshake: handshake
                case .firstByte: firstByte
                case .transfer: transfer
                }
            return value == Self.none ? nil : .microseconds(Int64(value))
        }
        set {
            let value =
                newValue.map { UInt32(clamping: min(Int64(Self.none) - 1, max(0, $0.saturatingNanoseconds) / 1_000)) }
                ?? Self.none
            switch phase {
            case .resolution: resolution = value
            case .connect: connect = value
            case .handshake: handshake = value
            case .firstByte: firstByte = value
            case .transfer: transfer = value
            }
        }
    }
}
