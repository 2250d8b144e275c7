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
            guard let record = next(of: socket) else { break }
            guard record.isICMP || found == nil else { continue }
            found = (record.errno, record.reporter)
            if record.isICMP { break }
        }
        return found
    }

    /// An error of the queue.
    struct Record {
        let errno: Int32
        let reporter: ProbeResult.Reporter
        /// The first eight bytes behind the IP header of the packet that the error concerns.
        let head: [UInt8]

        var isICMP: Bool { reporter.origin == UInt8(SO_EE_ORIGIN_ICMP) || reporter.origin == UInt8(SO_EE_ORIGIN_ICMP6) }
    }

    /// Returns the next error of the queue; `nil` if it is empty.
    static func next(of socket: Int32) -> Record? {
        var record = netwatch_socket_error()
        guard netwatch_read_error_queue(socket, &record) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: record.offender) { Array($0) }
        let offender: IPAddress? =
            switch Int32(record.offender_family) {
            case AF_INET: IPAddress(bytes: bytes.prefix(4))
            case AF_INET6: IPAddress(bytes: bytes)
            default: nil
            }
        return Record(
            errno: Int32(clamping: record.error),
            reporter: ProbeResult.Reporter(origin: record.origin, type: record.type, code: record.code, offender: offender),
            head: withUnsafeBytes(of: record.head) { Array($0) })
    }
}
