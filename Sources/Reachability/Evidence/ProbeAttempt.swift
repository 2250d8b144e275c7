/// One TCP connect that a target's machine asks for.
package struct ProbeAttempt: Hashable, Sendable {
    /// Chosen by the machine; unique in the monitor.
    package var id: UInt64
    package var address: IPAddress
    /// The interface's index that a link-local address is valid on; 0 for others.
    package var zone: UInt32
    package var port: UInt16
    /// The interface that the socket is bound to (SO_BINDTODEVICE); `nil` leaves the choice to the kernel.
    package var interface: String?
    /// When it is too late to begin, on the monotonic clock in nanoseconds: the server would not have a fair chance to answer.
    package var latestStart: Int64

    package init(
        id: UInt64, address: IPAddress, zone: UInt32 = 0, port: UInt16, interface: String? = nil, latestStart: Int64 = .max
    ) {
        self.id = id
        self.address = address
        self.zone = zone
        self.port = port
        self.interface = interface
        self.latestStart = latestStart
    }
}

/// How an attempt ended. An attempt that the machine cancels has no result.
package struct ProbeResult: Hashable, Sendable, Codable {
    /// What the error queue of the socket told of an ICMP message (ip(7), IP_RECVERR).
    package struct Reporter: Hashable, Sendable, Codable {
        /// `SO_EE_ORIGIN_*`: 1 local, 2 ICMP, 3 ICMPv6.
        package var origin: UInt8
        package var type: UInt8
        package var code: UInt8
        /// Who sent it; this machine's own address when its own neighbor discovery failed.
        package var offender: IPAddress?

        package init(origin: UInt8, type: UInt8, code: UInt8, offender: IPAddress?) {
            self.origin = origin
            self.type = type
            self.code = code
            self.offender = offender
        }
    }

    /// The ``call`` of an attempt that was never made: others took all the time.
    package static let queue = "queue"

    package var id: UInt64
    /// 0 when the handshake was completed, else the errno.
    package var errno: Int32
    /// The call that failed: `socket`, `setsockopt`, `connect`, or `handshake` for what came later; `nil` on success.
    package var call: String?
    /// The round trip of the handshake (`tcpi_rtt`), 0 when it failed.
    package var roundTripNanoseconds: Int64
    package var reporter: Reporter?

    package init(
        id: UInt64, errno: Int32 = 0, call: String? = nil, roundTripNanoseconds: Int64 = 0, reporter: Reporter? = nil
    ) {
        self.id = id
        self.errno = errno
        self.call = call
        self.roundTripNanoseconds = roundTripNanoseconds
        self.reporter = reporter
    }
}

/// A name that a target's machine wants resolved.
package struct LookupRequest: Hashable, Sendable {
    package var id: UInt64
    package var name: String
    package var families: Set<IPAddress.Family>

    package init(id: UInt64, name: String, families: Set<IPAddress.Family>) {
        self.id = id
        self.name = name
        self.families = families
    }
}

/// What getaddrinfo(3) said.
package struct LookupAnswer: Hashable, Sendable, Codable {
    package var id: UInt64
    /// In the order of RFC 6724, as getaddrinfo gives them; at most 16.
    package var addresses: [IPAddress]
    /// `EAI_*`, 0 on success.
    package var code: Int32
    /// The errno of EAI_SYSTEM, else 0.
    package var errno: Int32
    package var elapsedNanoseconds: Int64

    package init(id: UInt64, addresses: [IPAddress] = [], code: Int32 = 0, errno: Int32 = 0, elapsedNanoseconds: Int64 = 0) {
        self.id = id
        self.addresses = addresses
        self.code = code
        self.errno = errno
        self.elapsedNanoseconds = elapsedNanoseconds
    }
}
