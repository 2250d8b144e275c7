/// A search for an answer from behind a first hop, because a target behind it is silent: connections to the target whose hop limits
/// end at the routers behind the hop (`IP_TTL`, `IPV6_UNICAST_HOPS`), and connections to targets behind the hop that answered before.
/// It sends at most nine packets, and none to a host that is not a target.
package struct HopSearch: Hashable, Sendable {
    /// The end of a connection.
    package struct Destination: Hashable, Sendable {
        package var address: IPAddress
        package var port: UInt16
        /// The interface to which the socket is bound (SO_BINDTODEVICE); `nil` leaves the choice to the kernel.
        package var interface: String?
        /// The source address and the mark of the packets; `nil` for packets without them.
        package var selector: RouteSelector?

        package init(_ address: IPAddress, port: UInt16, interface: String? = nil, selector: RouteSelector? = nil) {
            self.address = address
            self.port = port
            self.interface = interface
            self.selector = selector
        }
    }

    /// A target that answered before.
    package struct Other: Hashable, Sendable {
        package var target: TargetID
        package var destination: Destination

        package init(_ target: TargetID, _ destination: Destination) {
            self.target = target
            self.destination = destination
        }
    }

    /// The first hop; for a tunnel the unspecified address (``ChosenRoute/firstHop(to:in:)``).
    package var hop: Neighbor.Key
    /// The silent target.
    package var silent: Destination
    /// At most two.
    package var others: [Other]

    package init(_ hop: Neighbor.Key, _ silent: Destination, others: [Other] = []) {
        self.hop = hop
        self.silent = silent
        self.others = others
    }

    /// The hop limits of the connections to the silent target. Nobody has asked the far end of a tunnel yet.
    package var limits: ClosedRange<Int> { hop.address.isUnspecified ? 1...7 : 2...8 }
}

/// What a search has found: a reply for each answer, and one at its end. Late answers may follow.
package struct HopSearchReply: Hashable, Sendable, Codable {
    /// An answer to one of the connections.
    package struct Answer: Hashable, Sendable, Codable {
        /// The sender: a router, or the destination itself.
        package var sender: IPAddress
        /// The hop limit of the connection; `nil` for one to a target that answered before.
        package var limit: Int?
        /// The number of the target that answered; `nil` for a connection with a hop limit.
        package var target: Int?
        /// The time from the SYN to the answer in nanoseconds.
        package var roundTripNanoseconds: Int64

        package init(_ sender: IPAddress, limit: Int? = nil, target: Int? = nil, roundTripNanoseconds: Int64 = 0) {
            self.sender = sender
            self.limit = limit
            self.target = target
            self.roundTripNanoseconds = roundTripNanoseconds
        }
    }

    /// The answer; `nil` at the end of the search.
    package var answer: Answer?
    /// Whether packets were sent. Without descriptors or memory, there is no search, and its silence says nothing.
    package var wasSent: Bool

    package init(_ answer: Answer? = nil, wasSent: Bool = true) {
        self.answer = answer
        self.wasSent = wasSent
    }
}
