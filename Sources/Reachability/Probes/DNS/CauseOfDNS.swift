internal import Pacing

extension LevelFindings {
    /// Judges the answer of a name server, or how the conversation ended without one.
    mutating func judgeAnswer(_ connection: ProbedConnection) {
        let facts = connection.levels.facts[DNSFacts.self]
        if case .systemError(let number) = facts.failure {
            systemError = number
            return
        }
        let judged = CauseOfDNS(
            facts: facts, query: connection.endpoint.query, port: connection.endpoint.port, address: connection.address,
            host: connection.hostText, now: connection.now)
        failure = judged.cause.map { Finding($0, accusesServer: true) }
    }
}

extension DNSKind {
    /// Explains the answer.
    static func step(of endpoint: Endpoint, _ report: ProbeReport?) -> LayerStep {
        guard let report, let answer = report.levels?.facts[DNSFacts.self].answer else {
            return LayerStep(.dns, .unproven, "no question was answered")
        }
        let judged = CauseOfDNS(
            facts: report.levels?.facts[DNSFacts.self] ?? DNSFacts(), query: endpoint.query, port: endpoint.port,
            address: report.address, host: endpoint.hostText, now: report.moment)
        let count = answer.answers.count
        var sentence = "the question for \(endpoint.query.text) is answered with \(judged.codeText)"
        sentence += count == 0 ? " and no record" : count == 1 ? " and 1 record" : " and \(count) records"
        if let first = answer.answers.texts.first { sentence += ": \(first)" + (count > 1 ? ", …" : "") }
        let duration = report.levels?.answerNanoseconds.map { Duration.nanoseconds($0) } ?? report.levels?.exchange
        return LayerStep(.dns, .works, sentence, duration: duration, evidence: judged.evidence)
    }
}

/// Determines the cause of a DNS probe from its facts.
///
/// | facts, the first row that applies | cause |
/// |---|---|
/// | an accepted connection on which no answer comes, or that ends before it | no-answer |
/// | bytes that are no answer to the question | unexpected-answer |
/// | a response code that is not allowed | unexpected-rcode |
/// | records that cannot be read to their end, records that are not expected | unexpected-answer |
///
/// Silence of UDP is judged as that of any target.
struct CauseOfDNS {
    let facts: DNSFacts
    let query: DNSQuery
    let port: UInt16
    let address: IPAddress?
    /// The server in sentences.
    let host: String
    let now: Moment

    /// The cause; `nil` if the answer is an expected one, or if it is requested again by TCP.
    var cause: Cause? {
        let question = "the question for \(query.text)"
        switch facts.failure {
        case .closed:
            return make(.noAnswer, "\(host) closes the connection instead of answering \(question)", ["closed": .flag(true)])
        case .deadline(let received):
            let detail =
                received == 0
                ? "\(host) accepts the connection and does not answer \(question)" : "\(host) does not finish its answer in time"
            return make(.noAnswer, detail, ["received_bytes": .number(received)])
        case .unreadable(let reason): return make(.unexpectedAnswer, "\(host) sends what is no answer to \(question): \(reason)")
        case .systemError: return nil
        case nil: break
        }
        guard let answer = facts.answer, facts.retry == nil else { return nil }
        if let mismatch = answer.mismatch, mismatch.section == nil {
            return make(.unexpectedRcode, "\(host) answers \(question) with \(codeText), not \(mismatch.expectation)")
        }
        if let damage = answer.damage {
            return make(.unexpectedAnswer, "\(host) sends an answer that cannot be read: \(damage)")
        }
        guard let mismatch = answer.mismatch, let section = mismatch.section else { return nil }
        let records = mismatch.isExcluded == true ? "a record" : "no record"
        return make(
            .unexpectedAnswer,
            "\(host) answers \(question) with \(records) in its \(section.rawValue) section that matches \(mismatch.expectation)")
    }

    /// The name of the response code.
    var codeText: String { facts.answer.map { DNSResponseCode(number: UInt16(clamping: $0.code)).description } ?? "nothing" }

    /// The evidence of an answer, also of an expected one.
    var evidence: [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = ["question": .text(query.text), "port": .number(Int(port))]
        evidence["address"] = address.map { .text("\($0)") }
        guard let answer = facts.answer else { return evidence }
        evidence["rcode"] = .text(codeText)
        evidence["flags"] = .list(answer.flags)
        evidence["ttl"] = answer.ttl.map { .number($0) }
        evidence["serial"] = answer.serial.map { .number($0) }
        evidence["rrsig_days_left"] = answer.signatureEnd.map { .number(CertificateValidity.daysLeft(until: $0, at: now)) }
        let section = answer.mismatch?.section
        if let mismatch = answer.mismatch { evidence["expectation"] = .text(mismatch.expectation) }
        evidence["section"] = section.map { .text($0.rawValue) }
        let records = answer[section ?? .answer]
        if records.count > 0 {
            let others = records.count - records.texts.count
            evidence["records"] = .list(records.texts + (others > 0 ? ["and \(others) others"] : []))
        }
        return evidence
    }

    private func make(_ code: Cause.Code, _ detail: String, _ further: [String: Cause.Evidence] = [:]) -> Cause {
        Cause(.dns, code, detail: detail, evidence: evidence.merging(further) { $1 })
    }
}
