extension Cause.Code {
    // MARK: link

    /// The interface is switched off by an administrator (no `IFF_UP`).
    public static let interfaceDown = Cause.Code("interface-down")
    /// The interface has no carrier: no cable, no association, no peer.
    public static let noCarrier = Cause.Code("no-carrier")
    /// The link is up but waits for an event, such as 802.1X authentication (`IF_OPER_DORMANT`).
    public static let dormant = Cause.Code("dormant")
    /// No interface is usable, or no interface has the given name.
    public static let noInterface = Cause.Code("no-interface")

    // MARK: address

    /// The interface has no usable address.
    public static let noAddress = Cause.Code("no-address")
    /// All addresses are tentative: duplicate address detection is still running (RFC 4862).
    public static let tentativeAddress = Cause.Code("tentative-address")
    /// Another host on the link has the address (RFC 4862).
    public static let duplicateAddress = Cause.Code("duplicate-address")

    // MARK: route

    /// The kernel has no route to the destination (`ENETUNREACH`).
    public static let noRoute = Cause.Code("no-route")
    /// A route of type `unreachable` covers the destination.
    public static let routeUnreachable = Cause.Code("route-unreachable")
    /// A route or rule of type `prohibit` covers the destination.
    public static let routeProhibited = Cause.Code("route-prohibited")
    /// A route of type `blackhole` covers the destination.
    public static let routeBlackhole = Cause.Code("route-blackhole")

    // MARK: neighbor

    /// The gateway does not answer ARP or neighbor discovery.
    public static let gatewaySilent = Cause.Code("gateway-silent")
    /// The destination is on the link and does not answer ARP or neighbor discovery.
    public static let hostSilent = Cause.Code("host-silent")

    // MARK: dns

    /// No name server is configured.
    public static let noResolver = Cause.Code("no-resolver")
    /// The name server refuses the query: its port is closed, or its answer is REFUSED (RFC 1035 section 4.1.1).
    public static let resolverRefused = Cause.Code("resolver-refused")
    /// No name server answers.
    public static let resolverSilent = Cause.Code("resolver-silent")
    /// The name server answers SERVFAIL (RFC 1035 section 4.1.1).
    public static let serverFailure = Cause.Code("server-failure")
    /// The name does not exist: NXDOMAIN (RFC 1035 section 4.1.1).
    public static let nameNotFound = Cause.Code("name-not-found")
    /// The name has no address of the requested families.
    public static let noAddressForFamily = Cause.Code("no-address-for-family")
    /// The name resolves to an address that no connection can reach: `0.0.0.0` or `::`.
    public static let unusableAddress = Cause.Code("unusable-address")

    // MARK: firewall

    /// A packet filter rule of this machine rejects the packet.
    public static let localReject = Cause.Code("local-reject")
    /// A packet filter rule of this machine drops the packet (`EPERM`).
    public static let localDrop = Cause.Code("local-drop")

    // MARK: network

    /// A router reports that it has no route to the network (ICMP type 3 codes 0, 5, 6 and 11; ICMPv6 type 1 codes 0 and 2).
    public static let netUnreachable = Cause.Code("net-unreachable")
    /// A router reports that it cannot reach the host (ICMP type 3 code 1, ICMPv6 type 1 code 3, and codes without a cause of
    /// their own).
    public static let hostUnreachable = Cause.Code("host-unreachable")
    /// A router reports that its policy forbids the packet (ICMP type 3 codes 9, 10 and 13 to 15; ICMPv6 type 1 codes 1, 5 and
    /// 6).
    public static let adminProhibited = Cause.Code("admin-prohibited")
    /// A router or host reports that the protocol or port is not reachable, as packet filters do (ICMP type 3 codes 2 and 3,
    /// ICMPv6 type 1 code 4).
    public static let portFiltered = Cause.Code("port-filtered")
    /// A router reports that the packet is too large for the next link (ICMP type 3 code 4, ICMPv6 type 2).
    public static let packetTooBig = Cause.Code("packet-too-big")
    /// A router reports that the packet exceeded its hop limit (ICMP type 11, ICMPv6 type 3).
    public static let ttlExceeded = Cause.Code("ttl-exceeded")
    /// The remote end of a tunnel does not answer.
    public static let tunnelSilent = Cause.Code("tunnel-silent")
    /// A server does not answer, and nobody else behind the gateway does.
    public static let upstreamSilent = Cause.Code("upstream-silent")

    /// A server accepts connections, and nothing that is sent on them afterwards arrives.
    public static let dataDropped = Cause.Code("data-dropped")

    // MARK: tcp

    /// The host refuses the connection (RST).
    public static let refused = Cause.Code("refused")
    /// No answer arrives before the deadline, from TCP or HTTP.
    public static let timeout = Cause.Code("timeout")
    /// The host resets the connection (RST).
    public static let reset = Cause.Code("reset")

    // MARK: quality

    /// More probes are lost than the limit allows, or so many that the server cannot be used.
    public static let loss = Cause.Code("loss")
    /// The round trip takes longer than the limit allows, or so long that probes do not end in their time.
    public static let latency = Cause.Code("latency")
    /// The complete answer takes longer than the limit allows, from the start of the connection to its end.
    public static let response = Cause.Code("response")
    /// The round trip varies more than the limit allows.
    public static let jitter = Cause.Code("jitter")

    // MARK: local

    /// No source address can be used (`EADDRNOTAVAIL`).
    public static let sourceUnavailable = Cause.Code("source-unavailable")
    /// No local port is free.
    public static let portExhausted = Cause.Code("port-exhausted")
    /// The process has reached its limit of file descriptors (`EMFILE`), or the system has (`ENFILE`).
    public static let fileLimit = Cause.Code("file-limit")
    /// A sandbox (seccomp, Landlock, a security module) forbids this process to open a socket or to connect.
    public static let notPermitted = Cause.Code("not-permitted")
    /// A local file cannot be read.
    public static let cannotRead = Cause.Code("cannot-read")
    /// A local file cannot be written.
    public static let cannotWrite = Cause.Code("cannot-write")
    /// A local file changed while it was being sent.
    public static let fileChanged = Cause.Code("file-changed")
}
