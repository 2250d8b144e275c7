extension Cause.Code {
    private init(_ name: String) { rawValue = name }

    // MARK: link

    /// The interface is switched off by an administrator (no `IFF_UP`).
    public static let interfaceDown = Cause.Code("interface-down")
    /// The interface has no carrier: no cable, no association, no peer.
    public static let noCarrier = Cause.Code("no-carrier")
    /// The link waits, as for 802.1X (`IF_OPER_DORMANT`).
    public static let dormant = Cause.Code("dormant")
    /// There is no interface that could be used, or none of the given name.
    public static let noInterface = Cause.Code("no-interface")

    // MARK: address

    /// The interface has no usable address.
    public static let noAddress = Cause.Code("no-address")
    /// The only addresses are tentative: duplicate address detection has not ended (RFC 4862).
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

    /// The gateway does not answer neighbor discovery or ARP.
    public static let gatewaySilent = Cause.Code("gateway-silent")
    /// The destination, which is on the link, does not answer neighbor discovery or ARP.
    public static let hostSilent = Cause.Code("host-silent")

    // MARK: dns

    /// No name server is configured.
    public static let noResolver = Cause.Code("no-resolver")
    /// The name server refuses: its port is closed, or it answers REFUSED.
    public static let resolverRefused = Cause.Code("resolver-refused")
    /// No name server answers.
    public static let resolverSilent = Cause.Code("resolver-silent")
    /// The name server answers SERVFAIL.
    public static let serverFailure = Cause.Code("server-failure")
    /// The name does not exist (NXDOMAIN).
    public static let nameNotFound = Cause.Code("name-not-found")
    /// The name has no address of the families that are asked for.
    public static let noAddressForFamily = Cause.Code("no-address-for-family")
    /// The name's address cannot be connected to: `0.0.0.0`, `::`.
    public static let unusableAddress = Cause.Code("unusable-address")

    // MARK: firewall

    /// A rule of this machine rejects the packet.
    public static let localReject = Cause.Code("local-reject")
    /// A rule of this machine drops the packet (`EPERM`).
    public static let localDrop = Cause.Code("local-drop")

    // MARK: network

    /// A router reports that it has no route to the network (ICMP).
    public static let netUnreachable = Cause.Code("net-unreachable")
    /// A router reports that the host does not answer on its link (ICMP).
    public static let hostUnreachable = Cause.Code("host-unreachable")
    /// A router reports that its policy forbids the packet (ICMP).
    public static let adminProhibited = Cause.Code("admin-prohibited")
    /// A router or host reports that its policy forbids the port (ICMP).
    public static let portFiltered = Cause.Code("port-filtered")
    /// A router reports that the packet is too large for the next link (ICMP).
    public static let packetTooBig = Cause.Code("packet-too-big")
    /// A router reports that the packet has made too many hops (ICMP).
    public static let ttlExceeded = Cause.Code("ttl-exceeded")
    /// The far end of a tunnel does not answer.
    public static let tunnelSilent = Cause.Code("tunnel-silent")

    // MARK: tcp

    /// The host refuses the connection (RST).
    public static let refused = Cause.Code("refused")
    /// Nobody answers in time; also of HTTP.
    public static let timeout = Cause.Code("timeout")
    /// The host ends the connection (RST).
    public static let reset = Cause.Code("reset")

    // MARK: quality

    /// More probes are lost than the limit allows.
    public static let loss = Cause.Code("loss")
    /// The round trip takes longer than the limit allows.
    public static let latency = Cause.Code("latency")
    /// The round trip varies more than the limit allows.
    public static let jitter = Cause.Code("jitter")

    // MARK: tls

    /// The server accepts the connection and says nothing of TLS in time.
    public static let handshakeTimeout = Cause.Code("handshake-timeout")
    /// The handshake begins and does not end in time.
    public static let handshakeStalled = Cause.Code("handshake-stalled")
    /// The certificate is no longer valid.
    public static let certificateExpired = Cause.Code("certificate-expired")
    /// The certificate is not valid yet.
    public static let certificateNotYetValid = Cause.Code("certificate-not-yet-valid")
    /// No trusted authority vouches for the certificate, or a pin does not match.
    public static let certificateUntrusted = Cause.Code("certificate-untrusted")
    /// The certificate is for other names.
    public static let hostnameMismatch = Cause.Code("hostname-mismatch")
    /// The certificate is revoked.
    public static let certificateRevoked = Cause.Code("certificate-revoked")
    /// The two sides have no version or cipher of TLS in common, or the server does not speak TLS.
    public static let protocolMismatch = Cause.Code("protocol-mismatch")
    /// The certificate expires soon.
    public static let certificateExpiring = Cause.Code("certificate-expiring")
    /// The server ends the handshake: by an alert, by closing, or by a reset.
    public static let handshakeRefused = Cause.Code("handshake-refused")
    /// The server wants a client certificate, or another one than it got.
    public static let clientCertificateRequired = Cause.Code("client-certificate-required")

    // MARK: http

    /// The status is another than the expected ones.
    public static let status = Cause.Code("status")
    /// A captive portal answers instead of the server (RFC 8910).
    public static let captivePortal = Cause.Code("captive-portal")
    /// The response is not valid HTTP, or not an acceptable one.
    public static let invalidResponse = Cause.Code("invalid-response")
    /// The body is another than the expected one.
    public static let unexpectedBody = Cause.Code("unexpected-body")
    /// A header field is missing or another than the expected one.
    public static let unexpectedHeader = Cause.Code("unexpected-header")

    // MARK: local

    /// No source address can be used (`EADDRNOTAVAIL`).
    public static let sourceUnavailable = Cause.Code("source-unavailable")
    /// No local port is free.
    public static let portExhausted = Cause.Code("port-exhausted")
    /// The process has no file descriptor left (`EMFILE`, `ENFILE`).
    public static let fileLimit = Cause.Code("file-limit")
    /// A local file cannot be read.
    public static let cannotRead = Cause.Code("cannot-read")
    /// A local file cannot be written.
    public static let cannotWrite = Cause.Code("cannot-write")
    /// A local file changed while it was being sent.
    public static let fileChanged = Cause.Code("file-changed")
}
