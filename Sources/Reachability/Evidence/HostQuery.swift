/// A query whether a host is alive: UDP datagrams and a TCP connection to a port that is expected to be closed. A host without a filter
/// answers each datagram with an ICMP message from its own address (RFC 1122 section 4.1.3.1, RFC 4443 section 3.1), and the connection
/// with a reset. Hosts limit their ICMP messages, also those that other packets have drawn, and no resets. No privilege is needed.
package struct HostQuery: Hashable, Sendable {
    /// The host's address, and the interface that leads to it.
    package var host: Neighbor.Key
    /// Whether the datagrams are bound to the interface (SO_BINDTOIFINDEX). The kernel chooses the route of others.
    package var isBound: Bool
    /// The silent port of the host, if packets to and from it that this machine drops are to be counted; otherwise `nil`.
    package var port: UInt16?
    /// The source address and the mark of the packets, by which the kernel chooses the route as for the target's own; `nil` for packets without them.
    package var selector: RouteSelector?

    package init(_ host: Neighbor.Key, isBound: Bool, selector: RouteSelector? = nil, port: UInt16? = nil) {
        self.host = host
        self.isBound = isBound
        self.port = port
        self.selector = selector
    }
}

/// Whether this machine dropped SYN segments to a port, or the answers to them, as the counters of its network namespace show.
package struct DropCount: Hashable, Sendable, Codable {
    /// The place in this machine where the packets ended.
    package enum Place: String, Hashable, Sendable, Codable {
        /// The packet filter dropped the segments before they were sent.
        case output
        /// The packet filter dropped the answers.
        case input
        /// The answers came over an interface to which the route to their sender does not lead (strict `rp_filter`).
        case reversePath = "rp_filter"
    }

    package var port: UInt16
    /// `nil` if this machine dropped nothing.
    package var place: Place?

    package init(_ port: UInt16, _ place: Place?) { (self.port, self.place) = (port, place) }
}

/// The outcome of a query.
package struct HostReply: Hashable, Sendable, Codable {
    package enum Outcome: String, Hashable, Sendable, Codable {
        /// The host answered: an ICMP message from its own address, or a datagram.
        case answered
        /// No answer arrived in time.
        case silent
        /// Another host reported an error; ``HostReply/reporter`` is its message.
        case reported
        /// A system call failed with ``HostReply/errno``. EPERM means that this machine's packet filter drops the datagram.
        case refused
    }

    package var outcome: Outcome
    package var errno: Int32
    package var reporter: ProbeResult.Reporter?
    /// The question that was answered; `nil` without an answer, and in recordings of earlier versions, which asked by datagrams alone.
    package var question: HopAnswers.Question?
    /// What this machine dropped at ``HostQuery/port``; `nil` if it was not counted.
    package var drops: DropCount?

    package init(
        _ outcome: Outcome, errno: Int32 = 0, reporter: ProbeResult.Reporter? = nil, to question: HopAnswers.Question? = nil,
        drops: DropCount? = nil
    ) {
        self.drops = drops
        self.question = question
        self.outcome = outcome
        self.errno = errno
        self.reporter = reporter
    }
}
