/// `dialogue://HOST:PORT`: what a server and its client say in turn, with TLS from any step on. The programs take `HOST:PORT` with a dialogue in its settings
/// for such a target.
struct DialogueKind: ProbeKind {
    let schemes = [
        SchemeForm(
            name: "dialogue", meaning: "answers as a dialogue has it (--set dialogue.preset=smtp)", mayBeginTLS: true,
            estimatedBytes: TLSKind.handshakeBytes + 2_048)
    ]
    let codes: [(layer: Cause.Layer, codes: [Cause.Code])] = [
        (.dialogue, [.timeout, .unexpectedAnswer, .startTLSRefused])
    ]
    let settings: [any KindSettings.Type] = [DialogueSettings.self]
    let facts: [any ProbeFacts.Type] = [DialogueFacts.self]
    let layers = Cause.Layer.ofConnections + [.tls, .dialogue]

    func settings(of scheme: Endpoint.Scheme) -> [any KindSettings.Type] { settings + TLSKind().settings }

    func plan(for endpoint: Endpoint, _ settings: ProbeSettings, after continuation: Continuation?) -> AnyProbePlan? {
        AnyProbePlan(DialoguePlan(endpoint, settings))
    }

    func judge(_ connection: ProbedConnection) -> LevelFindings {
        var findings = LevelFindings()
        findings.judgeHandshake(connection)
        if findings.isPassed { findings.judgeDialogue(connection) }
        return findings
    }

    func step(_ layer: Cause.Layer, of endpoint: Endpoint, _ report: ProbeReport?, degradation: Cause?) -> LayerStep {
        switch layer {
        case .tls where report?.levels?.tls == nil: LayerStep(.tls, .notUsed, "not asked: the dialogue has not begun TLS")
        case .tls: TLSKind.step(of: endpoint, report, degradation: degradation)
        case .dialogue: Self.step(of: endpoint, report)
        default: unused(layer, of: endpoint)
        }
    }

    func statement(of layer: Cause.Layer, of endpoint: Endpoint) -> String? {
        layer == .dialogue ? "the server's answers are those of the dialogue" : nil
    }

    func pin(_ endpoint: Endpoint, _ settings: inout ProbeSettings) { TLSKind().pin(endpoint, &settings) }
}

extension Endpoint.Scheme {
    /// A dialogue of lines on a TCP connection: ``ProbeSettings/dialogue`` has its steps.
    public static let dialogue = Endpoint.Scheme("dialogue")
}

extension ProbeSettings {
    /// What the client of a `dialogue://` target says, and what it expects. The programs take a target `HOST:PORT` with a dialogue for one of these; in
    /// code, write the scheme.
    public var dialogue: DialogueSettings {
        get { self[kind: DialogueSettings.self] }
        set { self[kind: DialogueSettings.self] = newValue }
    }
}

extension Cause.Layer {
    /// What a server says in a dialogue.
    public static let dialogue = Cause.Layer("dialogue")
}

extension Cause.Code {
    /// The server does not begin TLS when the client asks for it.
    public static let startTLSRefused = Cause.Code("starttls-refused")
}
