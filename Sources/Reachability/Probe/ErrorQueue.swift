internal import CLinux
internal import Glibc

/// The error queue of a socket (ip(7), IP_RECVERR).
enum ErrorQueue {
    // One ICMP message is usual. The limit protects the loop against a flood of forged ones.
    private static let recordsRead = 8

    /// Lets the socket keep the ICMP messages that concern it, with their senders.
    static func enable(on socket: Int32, _ family: IPAddress.Family) {
        let (level, option) =
            family == .v4
            ? (Int32(IPPROTO_IP), Int32(IP_RECVERR)) : (Int32(IPPROTO_IPV6), Int32(IPV6_RECVERR))
        var value: Int32 = 1
        setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Returns the first ICMP message of the queue, or another error if there is none.
    static func report(of socket: Int32) -> (errno: Int32, reporter: ProbeResult.Reporter)? {
        var found: (Int32, ProbeResult.Reporter)?
        for _ in 0..<recordsRead {
            var record = netwatch_socket_error()
            guard netwatch_read_error_queue(socket, &record) == 1 else { break }
            let isICMP = record.origin == UInt8(SO_EE_ORIGIN_ICMP) || record.origin == UInt8(SO_EE_ORIGIN_ICMP6)
            guard isICMP || found == nil else { continue }
            let bytes = withUnsafeBytes(of: record.offender) { Array($0) }
            let offender: IPAddress? =
                switch Int32(record.offender_family) {
                case AF_INET: IPAddress(bytes: bytes.prefix(4))
                case AF_INET6: IPAddress(bytes: bytes)
                default: nil
                }
            found = (
                Int32(clamping: record.error),
                ProbeResult.Reporter(origin: record.origin, type: record.type, code: record.code, offender: offender)
            )
            if isICMP { break }
        }
        return found
    }
}
