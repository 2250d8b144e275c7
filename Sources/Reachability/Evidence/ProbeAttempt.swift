/// One TCP connection attempt that a target's machine requests.
package struct ProbeAttempt: Hashable, Sendable {
    /// The attempt's number, which the machine chooses; unique within the monitor.
    package var id: UInt64
    package var address: IPAddress
    /// The index of the interface of a link-local address; 0 for other addresses.
    package var zone: UInt32
    package var port: UInt16
    /// The interface to which the socket is bound (SO_BINDTODEVICE); `nil` leaves the choice to the kernel.
    package var interface: String?
    /// The source address and the mark of the packets; `nil` for packets without them.
    package var selector: RouteSelector?
    /// The index of the interface of a link-local source address; 0 for other attempts.
    var sourceZone: UInt32 = 0
    /// The latest start on the monotonic clock in nanoseconds. After it, the server would not have enough time to answer.
    package var latestStart: Int64
    /// The conversation on the connection; `nil` for a connection alone.
    var plan: AnyProbePlan?
    /// The end of the levels on the monotonic clock in nanoseconds.
    package var deadline: Int64
    /// Whether the connection is limited to small segments (TCP_MAXSEG, tcp(7)).
    package var hasSmallSegments: Bool
    /// Whether the probe began with a place for its TLS handshake (``ProbeAdmission``). Other handshakes may have to wait.
    var hasHandshakePlace = false

    package init(
        id: UInt64, address: IPAddress, zone: UInt32 = 0, port: UInt16, interface: String? = nil, latestStart: Int64 = .max
    ) {
        self.init(id: id, address: address, zone: zone, port: port, interface: interface, latestStart: latestStart, plan: nil)
    }

    init(
        id: UInt64, address: IPAddress, zone: UInt32 = 0, port: UInt16, interface: String? = nil, latestStart: Int64 = .max,
        plan: AnyProbePlan?, deadline: Int64 = .max, hasSmallSegments: Bool = false
    ) {
        self.plan = plan
        self.deadline = deadline
        self.hasSmallSegments = hasSmallSegments
        self.id = id
        self.address = address
        self.zone = zone
        self.port = port
        self.interface = interface
        self.latestStart = latestStart
    }
}

/// The result of an attempt. An attempt that the machine cancels has no result.
package struct ProbeResult: Hashable, Sendable, Codable {
    /// The source of an ICMP message, from the socket's error queue (ip(7), IP_RECVERR).
    package struct Reporter: Hashable, Sendable, Codable {
        /// `SO_EE_ORIGIN_*`: 1 local, 2 ICMP, 3 ICMPv6.
        package var origin: UInt8
        package var type: UInt8
        package var code: UInt8
        /// The sender of the message; an address of this machine if its own neighbor discovery failed.
        package var offender: IPAddress?

        package init(origin: UInt8, type: UInt8, code: UInt8, offender: IPAddress?) {
            self.origin = origin
            self.type = type
            self.code = code
            self.offender = offender
        }
    }

    /// The ``call`` of an attempt that was never made, because other attempts used all the time.
    package static let queue = "queue"
    /// The ``call`` of an error that came in answer to a datagram.
    static let answer = "answer"

    /// The ``call`` that gives a socket its source address.
    static let bind = "bind"
    /// The ``call`` that gives the packets of a socket their mark.
    static let markOption = "setsockopt SO_MARK"

    /// Whether the failure came after a packet was sent. Otherwise a call of this machine failed.
    var isOfNetwork: Bool { call == "handshake" || call == Self.answer }

    package var id: UInt64
    /// 0 if the handshake completed, otherwise the errno.
    package var errno: Int32
    /// The call that failed: `socket`, `setsockopt`, `setsockopt SO_MARK`, `bind`, `connect`, `sendto`, or `handshake` and `answer` for a later failure; `nil` on success.
    package var call: String?
    /// The round trip of the handshake (`tcpi_rtt`); 0 if the handshake failed, or if a retransmission prevents the measurement.
    package var roundTripNanoseconds: Int64
    package var reporter: Reporter?
    /// The number of SYN segments that were sent again before the handshake completed (`tcpi_total_retrans`); `nil` in recordings of
    /// earlier versions.
    package var retransmissions: Int?
    /// The result of the levels above TCP; `nil` if there are none, or while they run: a connection with levels has two results.
    package var levels: LevelResult? {
        get { boxedLevels?.value }
        set { boxedLevels = newValue.map { Boxed($0) } }
    }
    // Boxed: most results have none.
    private var boxedLevels: Boxed<LevelResult>?

    private enum CodingKeys: String, CodingKey {
        case id, errno, call, roundTripNanoseconds, reporter, retransmissions
        case boxedLevels = "levels"
    }

    package init(
        id: UInt64, errno: Int32 = 0, call: String? = nil, roundTripNanoseconds: Int64 = 0, reporter: Reporter? = nil,
        retransmissions: Int? = nil
    ) {
        self.id = id
        self.errno = errno
        self.call = call
        self.roundTripNanoseconds = roundTripNanoseconds
        self.reporter = reporter
        self.retransmissions = retransmissions
    }
}
