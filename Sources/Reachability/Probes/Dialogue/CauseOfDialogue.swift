internal import Pacing

extension LevelFindings {
    /// Judges the answers of a dialogue, or how it ended before its last step.
    mutating func judgeDialogue(_ connection: ProbedConnection) {
        let facts = connection.levels.facts[DialogueFacts.self]
        if case .systemError(let number) = facts.failure {
            systemError = number
            return
        }
        let judged = CauseOfDialogue(
            facts: facts, address: connection.address, port: connection.endpoint.port, host: connection.hostText)
        failure = judged.cause.map { Finding($0, accusesServer: true) }
    }
}

extension DialogueKind {
    /// Explains the dialogue.
    static func step(of endpoint: Endpoint, _ report: ProbeReport?) -> LayerStep {
        guard let report, let facts = report.levels?.facts[DialogueFacts.self], let done = facts.done, facts.failure == nil else {
            return LayerStep(.dialogue, .unproven, "no dialogue has begun")
        }
        let judged = CauseOfDialogue(facts: facts, address: report.address, port: endpoint.port, host: endpoint.hostText)
        var sentence = "the dialogue of \(done) \(done == 1 ? "step" : "steps") is complete"
        if let answer = facts.answer { sentence += "; the last answer is \"\(answer)\"" }
        return LayerStep(.dialogue, .works, sentence, duration: report.levels?.exchange, evidence: judged.evidence)
    }
}

/// Determines the cause of a dialogue's failure from its facts.
///
/// | facts, the first row that applies | cause |
/// |---|---|
/// | the server offers no TLS | starttls-refused |
/// | the client has asked for TLS, and the server refuses, or closes the connection at once | starttls-refused |
/// | nothing has come since the last step until the deadline, or nothing that a preset takes for a refusal | timeout |
/// | something else has come, or the server closes the connection | unexpected-answer |
struct CauseOfDialogue {
    let facts: DialogueFacts
    let address: IPAddress?
    let port: UInt16
    /// The server in sentences.
    let host: String

    /// The cause; `nil` if the dialogue is complete.
    var cause: Cause? {
        guard let failure = facts.failure else { return nil }
        let awaited = facts.awaited ?? "its next answer"
        let other = facts.others?.last
        switch failure {
        case .systemError: return nil
        case .withoutTLS(let reason): return make(.startTLSRefused, "\(host) offers no TLS: \(reason)")
        case .refused(let text): return make(code, "\(host) answers \"\(text)\", not \(awaited)")
        case .unreadable(let reason): return make(.unexpectedAnswer, "\(host) sends what is not \(awaited): \(reason)")
        case .closed:
            let before = other.map { "answers \"\($0)\", and closes the connection before \(awaited)" }
            return make(
                other == nil ? code : .unexpectedAnswer,
                "\(host) \(before ?? "closes the connection instead of sending \(awaited)")", ["closed": .flag(true)])
        case .deadline:
            guard let other else {
                let before = facts.done == 0 ? " accepts the connection and" : ""
                return make(.timeout, "\(host)\(before) does not send \(awaited) in time")
            }
            return make(
                facts.knowsRefusals == true ? .timeout : .unexpectedAnswer,
                "\(host) answers \"\(other)\", and does not send \(awaited) in time")
        }
    }

    private var code: Cause.Code { facts.asksForTLS == true ? .startTLSRefused : .unexpectedAnswer }

    /// The evidence, also of a complete dialogue.
    var evidence: [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = ["port": .number(Int(port)), "steps": .number(facts.done ?? 0)]
        evidence["address"] = address.map { .text("\($0)") }
        evidence["answer"] = facts.answer.map { .text($0) }
        if facts.failure != nil {
            evidence["expectation"] = facts.awaited.map { .text($0) }
            evidence["other_lines"] = facts.others.map { .list($0) }
        }
        for (name, value) in facts.captures ?? [:] { evidence["captured_\(name)"] = .text(value) }
        return evidence
    }

    private func make(_ code: Cause.Code, _ detail: String, _ further: [String: Cause.Evidence] = [:]) -> Cause {
        Cause(.dialogue, code, detail: detail, evidence: evidence.merging(further) { $1 })
    }
}
