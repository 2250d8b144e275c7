/// The reason why something is not reachable: the lowest layer that fails, what fails there, and the evidence.
public struct Cause: Hashable, Sendable {
    /// A layer, from the machine outwards. Later versions may add layers.
    public struct Layer: RawRepresentable, Hashable, Sendable, CaseIterable {
        /// The name in records: `link`, `route`, ….
        public let rawValue: String

        /// A layer by its name in records; unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ name: String) { rawValue = name }

        /// The interface itself: switched off, without carrier, gone.
        public static let link = Layer("link")
        /// The addresses of the interface: none, tentative, duplicate.
        public static let address = Layer("address")
        /// The kernel's routing decision.
        public static let route = Layer("route")
        /// The next hop, which does not answer on its link (ARP, neighbor discovery).
        public static let neighbor = Layer("neighbor")
        /// Name resolution.
        public static let dns = Layer("dns")
        /// This machine's own packet filter.
        public static let firewall = Layer("firewall")
        /// A router on the path, or the path itself.
        public static let network = Layer("network")
        /// The server's host: it answered, or should have, on TCP.
        public static let tcp = Layer("tcp")
        /// The quality of a connection that works: its loss, latency or jitter.
        public static let quality = Layer("quality")
        /// The TLS handshake.
        public static let tls = Layer("tls")
        /// The HTTP exchange.
        public static let http = Layer("http")
        /// This process's own limits and files.
        public static let local = Layer("local")

        /// The layers that this version knows, from the machine outwards.
        public static let allCases: [Layer] = [
            .link, .address, .route, .neighbor, .dns, .firewall, .network, .tcp, .quality, .tls, .http, .local,
        ]
    }

    /// What fails. Later versions may add codes.
    public struct Code: RawRepresentable, Hashable, Sendable, CaseIterable {
        /// The name in records: `no-carrier`, `refused`, ….
        public let rawValue: String

        /// A code by its name in records; unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The codes that this version knows, in the order of their layers.
        public static let allCases: [Code] = [
            .interfaceDown, .noCarrier, .dormant, .noInterface, .noAddress, .tentativeAddress, .duplicateAddress, .noRoute,
            .routeUnreachable, .routeProhibited, .routeBlackhole, .gatewaySilent, .hostSilent, .noResolver, .resolverRefused,
            .resolverSilent, .serverFailure, .nameNotFound, .noAddressForFamily, .unusableAddress, .localReject, .localDrop,
            .netUnreachable, .hostUnreachable, .adminProhibited, .portFiltered, .packetTooBig, .ttlExceeded, .tunnelSilent,
            .refused, .timeout, .reset, .loss, .latency, .jitter, .handshakeTimeout, .handshakeStalled, .certificateExpired,
            .certificateNotYetValid, .certificateUntrusted, .hostnameMismatch, .certificateRevoked, .protocolMismatch,
            .certificateExpiring, .handshakeRefused, .clientCertificateRequired, .status, .captivePortal, .invalidResponse,
            .unexpectedBody, .unexpectedHeader, .sourceUnavailable, .portExhausted, .fileLimit, .cannotRead, .cannotWrite,
            .fileChanged,
        ]
    }

    /// One fact that shows the cause.
    @nonexhaustive public enum Evidence: Hashable, Sendable {
        /// Text, such as an errno's name or an address.
        case text(String)
        /// A number, such as an ICMP code.
        case number(Int)
        /// A truth value.
        case flag(Bool)
    }

    /// The lowest layer that fails.
    public let layer: Layer
    /// What fails there.
    public let code: Code
    /// One sentence for a person, without a full stop.
    public let detail: String
    /// Facts by name: `errno`, `interface`, `gateway`, `icmp_type`, `offender`, ….
    public let evidence: [String: Evidence]

    /// Makes a cause with its evidence.
    public init(_ layer: Layer, _ code: Code, detail: String, evidence: [String: Evidence] = [:]) {
        self.layer = layer
        self.code = code
        self.detail = detail
        self.evidence = evidence
    }

    /// Whether `other` names the same failure: the layer and the code are equal. Detail and evidence may differ.
    public func isSameFailure(as other: Cause?) -> Bool {
        layer == other?.layer && code == other?.code
    }
}

extension Cause: CustomStringConvertible {
    /// `LAYER: DETAIL`.
    public var description: String { "\(layer.rawValue): \(detail)" }
}
