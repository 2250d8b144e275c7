internal import Pacing

/// One kind of probe: all that distinguishes its targets from those of other kinds. ``ProbeKinds`` lists them.
///
/// A folder of `Probes/` has everything of a kind: the text of its targets, its settings, what it says on a connection, its facts, the causes of its
/// failures, and its layers for people. What is common to all kinds is elsewhere, and knows none of them: names, routes, addresses, silence, counts and
/// incidents.
package protocol ProbeKind: Sendable {
    /// How its targets are written.
    var schemes: [SchemeForm] { get }
    /// The layers and codes of its causes, beside those of every target.
    var codes: [(layer: Cause.Layer, codes: [Cause.Code])] { get }
    /// The types of its settings; empty for none.
    var settings: [any KindSettings.Type] { get }
    /// Returns the types of the settings that have an effect on a target of one of its schemes.
    func settings(of scheme: Endpoint.Scheme) -> [any KindSettings.Type]
    /// The types of its facts; empty for none.
    var facts: [any ProbeFacts.Type] { get }

    /// The layers of a target's diagnosis, in the order of a packet's way.
    var layers: [Cause.Layer] { get }

    /// The cause of a target whose host, or a witness, shows that the network works, and that is silent itself.
    var silence: (layer: Cause.Layer, code: Cause.Code) { get }
    /// The cause of a target that itself reports by ICMP that nobody listens at its port; `nil` for `network/port-filtered`.
    var refusal: (layer: Cause.Layer, code: Cause.Code)? { get }
    /// Whether its probes are TCP connections.
    var usesTCP: Bool { get }
    /// Whether its targets are not probed, and report to this process (``HeartbeatMachine``).
    var isReported: Bool { get }
    /// What a silent target does not answer, in a sentence: `pings`; `nil` for its port.
    var request: String? { get }
    /// Why the system refuses a socket to this process, and the remedy; `nil` for the sockets that every process may have.
    var permission: String? { get }

    /// Returns evidence of a layer below its own, which a probe that was answered has found.
    func evidence(of layer: Cause.Layer, in report: ProbeReport) -> [String: Cause.Evidence]

    /// Returns the host and the port to which a target's connections are made: its own, or those of a proxy.
    func peer(of endpoint: Endpoint, _ settings: ProbeSettings) -> Endpoint

    /// Returns the cause of a failure before the connection to another peer than the target, which names it.
    func cause(_ cause: Cause, onTheWayTo peer: Endpoint, _ settings: ProbeSettings) -> Cause

    /// Returns what follows on a target's connection; `nil` if the connection is the whole probe. A continued probe has been redirected.
    func plan(for endpoint: Endpoint, _ settings: ProbeSettings, after continuation: Continuation?) -> AnyProbePlan?

    /// Judges what a connection has shown.
    func judge(_ connection: ProbedConnection) -> LevelFindings

    /// Explains a layer of its own, for a target whose failure, if there is one, is in another layer. `degradation` is the cause of a target that
    /// works, and does not meet its limits.
    func step(_ layer: Cause.Layer, of endpoint: Endpoint, _ report: ProbeReport?, degradation: Cause?) -> LayerStep

    /// Returns what is true of a layer of its own if the layer works, and its facts are not known; `nil` for other layers.
    func statement(of layer: Cause.Layer, of endpoint: Endpoint) -> String?

    /// Returns the target that is probed in place of one of this kind with such settings; `nil` for the target itself.
    func replacement(of endpoint: Endpoint, _ settings: ProbeSettings) -> Endpoint?

    /// Changes the settings so that the server at one address of the endpoint's name is asked for the same name.
    func pin(_ endpoint: Endpoint, _ settings: inout ProbeSettings)
}

/// What most kinds have in common.
extension ProbeKind {
    package var codes: [(layer: Cause.Layer, codes: [Cause.Code])] { [] }
    package var settings: [any KindSettings.Type] { [] }
    package func settings(of scheme: Endpoint.Scheme) -> [any KindSettings.Type] { settings }
    package var facts: [any ProbeFacts.Type] { [] }
    package var silence: (layer: Cause.Layer, code: Cause.Code) { (.tcp, .timeout) }
    package var refusal: (layer: Cause.Layer, code: Cause.Code)? { nil }
    package var usesTCP: Bool { true }
    package var isReported: Bool { false }
    package var request: String? { nil }
    package var permission: String? { nil }
    package func evidence(of layer: Cause.Layer, in report: ProbeReport) -> [String: Cause.Evidence] { [:] }
    package var layers: [Cause.Layer] { Cause.Layer.ofConnections + [.tls, .http] }
    package func peer(of endpoint: Endpoint, _ settings: ProbeSettings) -> Endpoint { endpoint }
    package func cause(_ cause: Cause, onTheWayTo peer: Endpoint, _ settings: ProbeSettings) -> Cause { cause }
    package func plan(for endpoint: Endpoint, _ settings: ProbeSettings, after continuation: Continuation?) -> AnyProbePlan? {
        nil
    }
    package func judge(_ connection: ProbedConnection) -> LevelFindings { LevelFindings() }
    package func step(_ layer: Cause.Layer, of endpoint: Endpoint, _ report: ProbeReport?, degradation: Cause?) -> LayerStep {
        unused(layer, of: endpoint)
    }
    package func statement(of layer: Cause.Layer, of endpoint: Endpoint) -> String? { nil }
    package func replacement(of endpoint: Endpoint, _ settings: ProbeSettings) -> Endpoint? { nil }
    package func pin(_ endpoint: Endpoint, _ settings: inout ProbeSettings) {}
}

extension ProbeKind {
    /// Whether the kind itself explains a layer: the layers behind the connection in its own order.
    package func owns(_ layer: Cause.Layer) -> Bool {
        if isReported { return layers.contains(layer) }
        return layers.drop { $0 != .tcp }.dropFirst().contains(layer) || layer == .tcp && !usesTCP
    }

    /// Returns why its targets cannot be probed with these settings, as the end of a sentence about one; `nil` if they can.
    package func lack(in settings: ProbeSettings) -> String? {
        func lack<Settings: KindSettings>(_: Settings.Type) -> String? { settings[kind: Settings.self].lack }
        for type in self.settings {
            if let reason = lack(type) { return reason }
        }
        return nil
    }

    /// The step of a layer that the target does not need.
    func unused(_ layer: Cause.Layer, of endpoint: Endpoint) -> LayerStep {
        LayerStep(layer, .notUsed, "not asked: the target is \(endpoint.scheme.rawValue)")
    }
}

/// How the targets of a scheme are written, and what their probes need.
package struct SchemeForm: Sendable {
    /// The word before `://`.
    let name: String
    /// What a server that is up does, in help: "accepts a TCP connection".
    let meaning: String
    /// The port of a target without one; `nil` if a port is required.
    var defaultPort: UInt16?
    /// Whether targets have a port. Otherwise ``defaultPort`` is 0.
    var hasPort = true
    /// Whether a target is a name that means something to this process alone, and is written `SCHEME:NAME`.
    var isNameAlone = false
    /// The path of a target without one; empty for schemes without a path.
    var emptyPath = ""
    /// Parses what follows the host and the port, and returns the path in its usual form; `nil` for ``emptyPath``. `nil` for schemes without a path.
    var path: (@Sendable (Substring) throws(Endpoint.ParseError) -> String?)?
    /// What follows the port in help: `[/PATH]`.
    var pathText = ""
    /// Whether a target without a scheme has this one.
    var isUnwritten = false
    /// Whether the connection is the whole probe, without a plan.
    var isConnectionAlone = false
    /// Whether connections begin with a TLS handshake, which costs much more than the connection.
    var usesTLS = false
    /// Whether a conversation may begin TLS later.
    var mayBeginTLS = false
    /// The bytes that a probe needs beyond its connection, before they are measured.
    var estimatedBytes = 0
}

extension SchemeForm {
    /// What a target of the scheme begins with: `tls://`.
    package var prefix: String { isNameAlone ? "\(name):" : "\(name)://" }

    /// How a target is written, in help: `tls://HOST[:PORT]`.
    package var text: String {
        guard !isNameAlone else { return "\(prefix)NAME" }
        let port = !hasPort ? "" : defaultPort == nil ? ":PORT" : "[:PORT]"
        let text = "\(prefix)HOST\(port)\(pathText)"
        return isUnwritten ? "HOST\(port), \(text)" : text
    }

    /// What ``meaning`` says, with the default port.
    package var explanation: String { meaning + (hasPort ? defaultPort.map { " (\($0))" } ?? "" : "") }
}

/// A connection whose conversation has ended, to be judged by its kind.
package struct ProbedConnection: Sendable {
    /// What was said.
    let levels: LevelResult
    /// The address to which the connection was made.
    let address: IPAddress
    /// The route to the address.
    let route: ChosenRoute
    let endpoint: Endpoint
    let settings: ProbeSettings
    /// The redirect that has led to this endpoint; `nil` if there is none.
    let continuation: Continuation?
    /// The start of the probe.
    let started: Moment
    let now: Moment

    /// The time since the start of the probe.
    var elapsedNanoseconds: Int64 { now.elapsed(since: started).saturatingNanoseconds }
    /// The target's host in a sentence.
    var hostText: String { route.kind == .local || address.isLoopback ? "this machine (\(address))" : "\(address)" }
}

/// What the conversation on one connection shows about a target. Its bytes are the server's own, so that a failure is its fault.
package struct LevelFindings: Sendable {
    /// Why the probe fails; `nil` if it succeeds.
    var failure: Finding?
    /// Why a server that works is degraded.
    var degradation: Cause?
    /// The errno of a connection that a layer below has ended.
    var systemError: Int32?

    /// Whether nothing speaks against the server yet.
    var isPassed: Bool { failure == nil && systemError == nil }
}
