/// How far an established connection has come at the deadline of its probe, by the kernel's TCP_INFO (tcp(7)).
package struct ConnectionProgress: Hashable, Sendable, Codable {
    /// The number of segments that the server's host has not acknowledged.
    package var unacknowledged: Int
    /// The number of segments that were sent again, the SYN included, without those that had arrived before.
    package var retransmissions: Int
    /// The number of bytes that the server's host has acknowledged; `nil` if the kernel does not know it.
    package var bytesAcknowledged: Int?
    /// The smoothed round trip in microseconds; 0 if it is not known.
    package var roundTripMicroseconds: Int
    /// The time since the last data were sent for the first time, in milliseconds.
    package var sinceSentMilliseconds: Int
    /// The number of segments that arrived behind a missing one.
    package var outOfOrder: Int
    /// Whether bytes wait that the kernel has not accepted.
    package var hasUnsentBytes: Bool

    package init(
        unacknowledged: Int = 0, retransmissions: Int = 0, bytesAcknowledged: Int? = nil, roundTripMicroseconds: Int = 0,
        sinceSentMilliseconds: Int = 0, outOfOrder: Int = 0, hasUnsentBytes: Bool = false
    ) {
        self.unacknowledged = unacknowledged
        self.retransmissions = retransmissions
        self.bytesAcknowledged = bytesAcknowledged
        self.roundTripMicroseconds = roundTripMicroseconds
        self.sinceSentMilliseconds = sinceSentMilliseconds
        self.outOfOrder = outOfOrder
        self.hasUnsentBytes = hasUnsentBytes
    }
}
