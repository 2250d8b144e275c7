internal import Pacing

/// `dns://SERVER[:PORT]/NAME?type=TYPE`: a question by UDP, whose answer has to be an allowed one. One that does not fit is requested again by TCP
/// (``DNSStreamKind``).
///
/// The server itself is the target: the layer `dns` is its answer, and the last one. The resolution of the server's own name, if it has one, has the
/// same layer and causes of its own, by which no server is asked.
struct DNSKind: ProbeKind {
    let schemes = [
        SchemeForm(
            name: "dns", meaning: "answers a question of DNS by UDP", defaultPort: 53, path: DNSKind.path,
            pathText: DNSKind.pathText, estimatedBytes: 256)
    ]
    let codes: [(layer: Cause.Layer, codes: [Cause.Code])] = [(.dns, [.noAnswer, .unexpectedRcode, .unexpectedAnswer])]
    let settings: [any KindSettings.Type] = [DNSSettings.self]
    let facts: [any ProbeFacts.Type] = [DNSFacts.self]
    let layers: [Cause.Layer] = DNSKind.layersBefore + [.dns]
    let silence: (layer: Cause.Layer, code: Cause.Code) = (.dns, .noAnswer)
    let refusal: (layer: Cause.Layer, code: Cause.Code)? = (.dns, .resolverRefused)
    let usesTCP = false

    /// The layers up to the connection, without the resolution of a name.
    fileprivate static let layersBefore = Cause.Layer.ofConnections.filter { $0 != .dns }

    fileprivate static let pathText = "/NAME[?type=TYPE]"

    @Sendable fileprivate static func path(_ text: Substring) throws(Endpoint.ParseError) -> String? { try DNSQuery(text).path }

    func plan(for endpoint: Endpoint, _ settings: ProbeSettings, after continuation: Continuation?) -> AnyProbePlan? {
        AnyProbePlan(DNSPlan(endpoint, settings))
    }

    func judge(_ connection: ProbedConnection) -> LevelFindings {
        var findings = LevelFindings()
        findings.judgeAnswer(connection)
        return findings
    }

    func step(_ layer: Cause.Layer, of endpoint: Endpoint, _ report: ProbeReport?, degradation: Cause?) -> LayerStep {
        layer == .dns ? Self.step(of: endpoint, report) : unused(layer, of: endpoint)
    }

    func statement(of layer: Cause.Layer, of endpoint: Endpoint) -> String? {
        layer == .dns ? "the answer is an expected one" : nil
    }
}

/// `dns+tcp://` and `dns+tls://`: the same question on a TCP connection.
///
/// The kind of ``DNSKind`` has the settings, the facts and the codes of both.
struct DNSStreamKind: ProbeKind {
    let schemes = [
        SchemeForm(
            name: "dns+tcp", meaning: "the same by TCP", defaultPort: 53, path: DNSKind.path, pathText: DNSKind.pathText,
            estimatedBytes: 512),
        SchemeForm(
            name: "dns+tls", meaning: "the same over TLS", defaultPort: 853, path: DNSKind.path, pathText: DNSKind.pathText,
            usesTLS: true, estimatedBytes: TLSKind.handshakeBytes + 512),
    ]
    let layers: [Cause.Layer] = DNSKind.layersBefore + [.tls, .dns]

    func settings(of scheme: Endpoint.Scheme) -> [any KindSettings.Type] {
        DNSKind().settings + (scheme.usesTLS ? TLSKind().settings : [])
    }

    func plan(for endpoint: Endpoint, _ settings: ProbeSettings, after continuation: Continuation?) -> AnyProbePlan? {
        AnyProbePlan(DNSStreamPlan(endpoint, settings))
    }

    func judge(_ connection: ProbedConnection) -> LevelFindings {
        var findings = LevelFindings()
        findings.judgeHandshake(connection)
        if findings.isPassed { findings.judgeAnswer(connection) }
        return findings
    }

    func step(_ layer: Cause.Layer, of endpoint: Endpoint, _ report: ProbeReport?, degradation: Cause?) -> LayerStep {
        layer == .tls
            ? TLSKind.step(of: endpoint, report, degradation: degradation)
            : DNSKind().step(layer, of: endpoint, report, degradation: degradation)
    }

    func statement(of layer: Cause.Layer, of endpoint: Endpoint) -> String? {
        DNSKind().statement(of: layer, of: endpoint) ?? TLSKind().statement(of: layer, of: endpoint)
    }

    func pin(_ endpoint: Endpoint, _ settings: inout ProbeSettings) {
        if endpoint.scheme.usesTLS { TLSKind().pin(endpoint, &settings) }
    }
}

extension Endpoint.Scheme {
    /// A question of DNS by UDP (RFC 1035).
    public static let dns = Endpoint.Scheme("dns")
    /// A question of DNS by TCP (RFC 7766).
    public static let dnsOverTCP = Endpoint.Scheme("dns+tcp")
    /// A question of DNS over TLS (RFC 7858).
    public static let dnsOverTLS = Endpoint.Scheme("dns+tls")
}

extension Endpoint {
    /// What a target of DNS asks its server.
    var query: DNSQuery { (try? DNSQuery(path[...])) ?? .root }
}

extension Cause.Code {
    /// The server of a `dns://` target does not answer the question, and its host or a witness shows that the network works.
    public static let noAnswer = Cause.Code("no-answer")
    /// The response code is not one of the allowed ones.
    public static let unexpectedRcode = Cause.Code("unexpected-rcode")
    /// The records do not meet the expectation, or the bytes are no answer.
    public static let unexpectedAnswer = Cause.Code("unexpected-answer")
}
