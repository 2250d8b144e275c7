internal import CLinux

/// The kernel's counters of a TCP connection (`TCP_INFO`, tcp(7); RFC 4898).
struct ReceiveCounters: Hashable, Sendable {
    /// Bytes that were received in order, read or not (tcpi_bytes_received). A FIN counts as one.
    var received: UInt64
    /// Bytes that the remote end has acknowledged (tcpi_bytes_acked).
    var acknowledged: UInt64
    /// Whether the remote end has acknowledged everything that was sent (tcpi_unacked).
    var isAcknowledged: Bool

    /// `nil` if the descriptor is not a TCP socket, or the kernel is older than 4.1.
    init?(_ socket: Int32) {
        var state = netwatch_tcp_state()
        guard netwatch_tcp_state_of(socket, &state) == 0, state.bytes_acknowledged != .max else { return nil }
        (acknowledged, received) = (state.bytes_acknowledged, state.bytes_received)
        isAcknowledged = state.unacknowledged == 0
    }
}
