/// `heartbeat:NAME`: a job that reports to the service when it has run. Nothing is probed: ``HeartbeatMachine`` waits for the reports.
struct HeartbeatKind: ProbeKind {
    let schemes = [
        SchemeForm(
            name: "heartbeat", meaning: "a job that reports to the service in time", defaultPort: 0, hasPort: false,
            isNameAlone: true)
    ]
    let codes: [(layer: Cause.Layer, codes: [Cause.Code])] = [(.heartbeat, [.late, .failed, .overrun])]
    let layers: [Cause.Layer] = [.heartbeat]
    let settings: [any KindSettings.Type] = [HeartbeatSettings.self]
    let facts: [any ProbeFacts.Type] = [HeartbeatFacts.self]
    let usesTCP = false
    let isReported = true

    func step(_ layer: Cause.Layer, of endpoint: Endpoint, _ report: ProbeReport?, degradation: Cause?) -> LayerStep {
        guard layer == .heartbeat else { return unused(layer, of: endpoint) }
        guard let facts = report?.levels?.facts[HeartbeatFacts.self], !facts.isEmpty else {
            return LayerStep(.heartbeat, .unproven, "the job has not reported since the service began")
        }
        guard facts.outcome == .success else { return LayerStep(.heartbeat, .unproven, facts.sentence, evidence: facts.evidence) }
        return LayerStep(.heartbeat, .works, facts.sentence, duration: facts.duration, evidence: facts.evidence)
    }

    func statement(of layer: Cause.Layer, of endpoint: Endpoint) -> String? { layer == .heartbeat ? "the job has reported" : nil }
}

extension Endpoint.Scheme {
    /// A job that reports when it has run.
    public static let heartbeat = Endpoint.Scheme("heartbeat")
}

extension Cause.Layer {
    /// The reports of a job.
    public static let heartbeat = Cause.Layer("heartbeat")
}

extension Cause.Code {
    /// A report of the job is missing.
    public static let late = Cause.Code("late")
    /// The job has reported that it failed.
    public static let failed = Cause.Code("failed")
    /// The job has begun, and has not ended in its time.
    public static let overrun = Cause.Code("overrun")
}
