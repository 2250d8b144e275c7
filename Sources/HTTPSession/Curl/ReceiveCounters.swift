internal import Glibc

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
        // struct tcp_info of linux/tcp.h, which netinet/tcp.h cuts short: tcpi_unacked has 32 bits at 24, the two counters lie at 120 and 128.
        var bytes: InlineTCPInfo = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        var length = socklen_t(MemoryLayout<InlineTCPInfo>.size)
        guard getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &bytes, &length) == 0,
            length == MemoryLayout<InlineTCPInfo>.size
        else { return nil }
        (acknowledged, received) = (bytes.15, bytes.16)
        isAcknowledged = UInt32(truncatingIfNeeded: UInt64(littleEndian: bytes.3)) == 0
    }

    private typealias InlineTCPInfo = (
        UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64,
        UInt64, UInt64
    )
}
