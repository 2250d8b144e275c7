/// The registry of all kinds of probes: one line for each. A kind is added at the end, because the order is that of their layers.
package enum ProbeKinds {
    package static let all: [any ProbeKind] = [
        TCPKind(),
        TLSKind(),
        HTTPKind(),
        PingKind(),
        DNSKind(),
        DNSStreamKind(),
        DialogueKind(),
        HeartbeatKind(),
    ]

    /// The schemes of all kinds, in order, each with its kind. ``Endpoint/Scheme`` is a place here.
    fileprivate static let schemes: [(form: SchemeForm, kind: any ProbeKind)] = all.flatMap { kind in
        kind.schemes.map { ($0, kind) }
    }
}

extension Endpoint.Scheme: RawRepresentable, CaseIterable {
    /// All schemes of this version.
    public static let allCases = ProbeKinds.schemes.indices.map { Endpoint.Scheme(index: UInt8(clamping: $0)) }
    /// The scheme of targets that are written without one.
    static let unwritten = allCases.first { $0.form.isUnwritten } ?? allCases[0]

    /// Creates a scheme from its word; `nil` if this version does not know it.
    public init?(rawValue: String) {
        guard let scheme = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = scheme
    }

    /// Creates a scheme that a kind declares.
    init(_ word: String) {
        // No kind declares it: a defect of this package, which every test meets.
        guard let scheme = Self(rawValue: word) else { preconditionFailure("no kind of probes declares \(word)") }
        self = scheme
    }

    /// The word before `://`.
    public var rawValue: String { form.name }
    /// The port of an endpoint without one; `nil` if a port is required.
    public var defaultPort: UInt16? { form.defaultPort }
    /// Whether an answer takes more than the round trip: something is said on a connection.
    package var hasResponse: Bool { kind.usesTCP && !form.isConnectionAlone }
    package var form: SchemeForm { ProbeKinds.schemes[Int(index)].form }
    /// Whether settings have an effect on the probes.
    package func has<Settings: KindSettings>(_: Settings.Type) -> Bool {
        kind.settings(of: self).contains { $0 == Settings.self }
    }
    /// The kind of the probes.
    package var kind: any ProbeKind { ProbeKinds.schemes[Int(index)].kind }
}

extension Cause.Layer: CaseIterable {
    /// The layers of every target, up to its connection.
    package static let ofConnections: [Cause.Layer] = [.link, .address, .route, .neighbor, .dns, .firewall, .network, .tcp]

    /// The layers that this version knows, ordered from this machine outwards.
    public static let allCases: [Cause.Layer] = ofConnections + [.quality] + ofKinds + [.local]

    /// The layers above the connection: what a server says.
    private static let ofKinds = ProbeKinds.all.flatMap(\.codes).map(\.layer).filter { !ofConnections.contains($0) }

    /// Whether the layer is above the connection, so that its failure is that of the server's own answer.
    package var isAboveConnection: Bool { Self.ofKinds.contains(self) }

    /// The index in the order of layers from this machine outwards: 0 for the link.
    var depth: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

extension Cause {
    /// Whether no answer came, and nothing tells why: the server is silent, as far as anybody knows.
    package var isSilence: Bool { Self.silences.contains { $0 == (layer, code) } }

    private static let silences = ProbeKinds.all.map(\.silence)
}

extension Cause.Code: CaseIterable {
    /// The codes that this version knows, in the order of their layers.
    public static let allCases: [Cause.Code] = byLayer.flatMap(\.codes).reduce(into: []) { codes, code in
        // A code of two layers is listed once.
        if !codes.contains(code) { codes.append(code) }
    }

    /// The codes of each layer: every combination of a layer and a code that a cause of this version can have.
    package static let byLayer: [(layer: Cause.Layer, codes: [Cause.Code])] = {
        let ofKinds = ProbeKinds.all.flatMap(\.codes)
        return Cause.Layer.allCases.map { layer in
            (layer, (ofEveryTarget[layer] ?? []) + ofKinds.filter { $0.layer == layer }.flatMap(\.codes))
        }
    }()
}
