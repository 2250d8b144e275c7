/// The cause of an unsatisfied path or an unreachable server: the lowest layer that fails, the failure in that layer, and the
/// evidence.
public struct Cause: Hashable, Sendable {
    /// A layer of the network, ordered from this machine outwards. Later versions may add layers.
    public struct Layer: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The layer's name in records: `link`, `route`, ….
        public let rawValue: String

        /// The layer's name in records.
        public var description: String { rawValue }

        /// Creates a layer from its name in records. Unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        init(_ name: String) { rawValue = name }

        /// The interface itself: switched off, without carrier, or removed.
        public static let link = Layer("link")
        /// The addresses of the interface: none, tentative, duplicate.
        public static let address = Layer("address")
        /// The kernel's routing decision.
        public static let route = Layer("route")
        /// The next hop, if it does not answer on its link (ARP, neighbor discovery).
        public static let neighbor = Layer("neighbor")
        /// Name resolution.
        public static let dns = Layer("dns")
        /// This machine's own packet filter.
        public static let firewall = Layer("firewall")
        /// The network between the first hop and the server: a router, or the path itself.
        public static let network = Layer("network")
        /// The TCP connection with the server's host.
        public static let tcp = Layer("tcp")
        /// The quality of a working connection: its loss, latency, response time or jitter.
        public static let quality = Layer("quality")
        /// The limits and files of this process.
        public static let local = Layer("local")
    }

    /// The failure within a layer. Later versions may add codes.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The code's name in records: `no-carrier`, `refused`, ….
        public let rawValue: String

        /// The code's name in records.
        public var description: String { rawValue }

        /// Creates a code from its name in records. Unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        init(_ name: String) { rawValue = name }

        /// The codes of each layer that do not depend on the kind of a target.
        static let ofEveryTarget: [Layer: [Code]] = [
            .link: [.interfaceDown, .noCarrier, .dormant, .noInterface],
            .address: [.noAddress, .tentativeAddress, .duplicateAddress],
            .route: [.noRoute, .routeUnreachable, .routeProhibited, .routeBlackhole],
            .neighbor: [.gatewaySilent, .hostSilent],
            .dns: [
                .noResolver, .resolverRefused, .resolverSilent, .serverFailure, .nameNotFound, .noAddressForFamily,
                .unusableAddress,
            ],
            .firewall: [.localReject, .localDrop],
            .network: [
                .netUnreachable, .hostUnreachable, .adminProhibited, .portFiltered, .packetTooBig, .ttlExceeded, .tunnelSilent,
                .upstreamSilent, .dataDropped,
            ],
            .tcp: [.refused, .timeout, .reset],
            .quality: [.loss, .latency, .response, .jitter],
            .local: [.sourceUnavailable, .portExhausted, .fileLimit, .notPermitted, .cannotRead, .cannotWrite, .fileChanged],
        ]

        /// The layers that have this code; empty if this version does not know it.
        package var layers: [Layer] { Self.byLayer.filter { $0.codes.contains(self) }.map(\.layer) }
    }

    /// One fact that supports the cause. Later versions may add kinds of evidence.
    @nonexhaustive public enum Evidence: Hashable, Sendable {
        /// Text, such as the name of an errno, or an address.
        case text(String)
        /// A number, such as an ICMP code.
        case number(Int)
        /// A truth value.
        case flag(Bool)
        /// Several texts, such as the names of a certificate.
        case list([String])
    }

    /// The lowest layer that fails.
    public var layer: Layer { values.value.layer }
    /// The failure in that layer.
    public var code: Code { values.value.code }
    /// One sentence for a person, without a final period.
    public var detail: String {
        switch values.value.account {
        case .stated(let detail, _): detail
        case .interface(let fault): fault.detail
        }
    }
    /// The facts that support the cause, by name: `errno`, `interface`, `gateway`, `icmp_type`, `offender`, ….
    public var evidence: [String: Evidence] {
        Dictionary(facts.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }
    /// The facts of ``evidence`` in the order of their names.
    package var sortedEvidence: [(name: String, value: Evidence)] { facts.map { ($0.name, $0.value) } }
    /// The approximate size of the cause as JSON in bytes. The sentence about an interface is not made only to count its bytes.
    package var estimatedSize: Int {
        switch values.value.account {
        case .stated(let detail, let facts): 60 + detail.utf8.count + 30 * facts.count
        case .interface: 300
        }
    }

    fileprivate struct Fact: Hashable, Sendable {
        let name: String
        let value: Evidence
    }

    private var facts: [Fact] {
        switch values.value.account {
        case .stated(_, let facts): facts
        case .interface(let fault): Self.facts(fault.evidence)
        }
    }

    /// The detail and the facts, or the state of an interface from which they are made when they are read.
    fileprivate enum Account: Sendable {
        // The facts are sorted by name. A dictionary takes about twice the memory, and a monitor may have a cause for each of
        // 100,000 targets.
        case stated(detail: String, facts: [Fact])
        indirect case interface(InterfaceFault)
    }

    fileprivate struct Values: Sendable {
        let layer: Layer
        let code: Code
        let account: Account
    }

    private let values: Boxed<Values>

    /// Creates a cause.
    ///
    /// - Parameters:
    ///   - layer: the lowest layer that fails.
    ///   - code: the failure in that layer.
    ///   - detail: one sentence for a person, without a final period.
    ///   - evidence: the facts that support the cause, by name.
    public init(_ layer: Layer, _ code: Code, detail: String, evidence: [String: Evidence] = [:]) {
        values = Boxed(Values(layer: layer, code: code, account: .stated(detail: detail, facts: Self.facts(evidence))))
    }

    /// Creates the cause of a path whose interface is unusable. Detail and evidence are made when they are read: the loss of a path
    /// must not wait for them.
    package init(_ fault: InterfaceFault) {
        values = Boxed(Values(layer: fault.kind.layer, code: fault.kind.code, account: .interface(fault)))
    }

    fileprivate static func facts(_ evidence: [String: Evidence]) -> [Fact] {
        evidence.map { Fact(name: $0.key, value: $0.value) }.sorted { $0.name < $1.name }
    }

    /// Returns whether `other` is the same failure with the same detail. Evidence may differ.
    package func hasSameDetail(as other: Cause?) -> Bool {
        guard let other, isSameFailure(as: other) else { return false }
        if case .interface(let own) = values.value.account, case .interface(let theirs) = other.values.value.account {
            return own.interface == theirs.interface
        }
        return detail == other.detail
    }

    /// Returns whether `other` has the same layer and the same code. Detail and evidence may differ.
    public func isSameFailure(as other: Cause?) -> Bool {
        layer == other?.layer && code == other?.code
    }
}

extension Cause.Values: Hashable {
    fileprivate static func == (left: Cause.Values, right: Cause.Values) -> Bool {
        guard left.layer == right.layer, left.code == right.code else { return false }
        switch (left.account, right.account) {
        case (.stated(let detail, let facts), .stated(let otherDetail, let otherFacts)):
            return detail == otherDetail && facts == otherFacts
        case (.interface(let fault), .interface(let other)): return fault == other
        case (.stated(let detail, let facts), .interface(let fault)), (.interface(let fault), .stated(let detail, let facts)):
            return detail == fault.detail && facts == Cause.facts(fault.evidence)
        }
    }

    // Equal causes may have different accounts, so only these are hashed.
    fileprivate func hash(into hasher: inout Hasher) {
        hasher.combine(layer)
        hasher.combine(code)
    }
}

extension Cause: CustomStringConvertible {
    /// The layer's name and the detail: `LAYER: DETAIL`.
    public var description: String { "\(layer.rawValue): \(detail)" }

    /// The layer and the code, as people and records write them: `tcp/timeout`.
    package var name: String { "\(layer.rawValue)/\(code.rawValue)" }
}
