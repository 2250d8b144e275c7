/// Why something is not reachable: the lowest layer that fails, what failed there, and the facts that show it.
public struct Cause: Hashable, Sendable {
    /// Layers from the machine outwards. Additive: later versions may add layers.
    public enum Layer: String, Hashable, Sendable, CaseIterable {
        /// The interface itself: switched off, no carrier, gone.
        case link
        /// Its addresses: none, tentative, duplicate.
        case address
        /// The kernel's routing decision.
        case route
        /// The next hop does not answer on its link (ARP, neighbor discovery).
        case neighbor
        /// Name resolution.
        case dns
        /// This machine's own packet filter.
        case firewall
        /// A router on the way said no.
        case network
        /// The server's host answered, or should have, on TCP.
        case tcp
        /// The TLS handshake.
        case tls
        /// The HTTP exchange.
        case http
        /// This process's own limits.
        case local
    }

    /// What failed; the raw values are the contract's codes. Additive.
    public enum Code: String, Hashable, Sendable, CaseIterable {
        case interfaceDown = "interface-down"
        case noCarrier = "no-carrier"
        case dormant
        case noInterface = "no-interface"
        case noAddress = "no-address"
        case tentativeAddress = "tentative-address"
        case duplicateAddress = "duplicate-address"
        case noRoute = "no-route"
        case routeUnreachable = "route-unreachable"
        case routeProhibited = "route-prohibited"
        case routeBlackhole = "route-blackhole"
        case gatewaySilent = "gateway-silent"
        case hostSilent = "host-silent"
        case noResolver = "no-resolver"
        case resolverRefused = "resolver-refused"
        case resolverSilent = "resolver-silent"
        case serverFailure = "server-failure"
        case nameNotFound = "name-not-found"
        case noAddressForFamily = "no-address-for-family"
        case localReject = "local-reject"
        case netUnreachable = "net-unreachable"
        case hostUnreachable = "host-unreachable"
        case adminProhibited = "admin-prohibited"
        case portFiltered = "port-filtered"
        case packetTooBig = "packet-too-big"
        case ttlExceeded = "ttl-exceeded"
        case refused
        case timeout
        case reset
        case handshakeTimeout = "handshake-timeout"
        case certificateExpired = "certificate-expired"
        case certificateNotYetValid = "certificate-not-yet-valid"
        case certificateUntrusted = "certificate-untrusted"
        case handshakeFailed = "handshake-failed"
        case status
        case invalidResponse = "invalid-response"
        case unexpectedBody = "unexpected-body"
        case cannotWrite = "cannot-write"
        case sourceUnavailable = "source-unavailable"
        case portExhausted = "port-exhausted"
        case fileLimit = "file-limit"
    }

    /// One raw fact.
    public enum Evidence: Hashable, Sendable {
        /// Text, such as an errno's name or an address.
        case text(String)
        /// A number, such as an ICMP code.
        case number(Int)
        /// Yes or no.
        case flag(Bool)
    }

    /// The lowest layer that fails.
    public let layer: Layer
    /// What fails there.
    public let code: Code
    /// One sentence for a person, without a full stop.
    public let detail: String
    /// Raw facts by name: `errno`, `interface`, `gateway`, `icmp_type`, `offender`, …
    public let evidence: [String: Evidence]

    /// A cause with its facts.
    public init(_ layer: Layer, _ code: Code, detail: String, evidence: [String: Evidence] = [:]) {
        self.layer = layer
        self.code = code
        self.detail = detail
        self.evidence = evidence
    }

    /// Whether `other` names the same failure, whatever its wording and facts.
    public func isSameFailure(as other: Cause?) -> Bool {
        layer == other?.layer && code == other?.code
    }
}

extension Cause: CustomStringConvertible {
    /// `LAYER: DETAIL`.
    public var description: String { "\(layer.rawValue): \(detail)" }
}
