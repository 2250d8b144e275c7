internal import Certificates
internal import Pacing

extension LevelFindings {
    /// Judges the connections of an HTTP probe: the proxy, the handshake, and the response.
    init(ofHTTP connection: ProbedConnection) {
        let (levels, endpoint) = (connection.levels, connection.endpoint)
        let facts = levels.facts[HTTPFacts.self]
        // The host of the target, in sentences about what its server answers.
        let firstHost = connection.continuation?.facts[HTTPFacts.self].redirection?.value.redirects.firstHost ?? endpoint.hostText
        let http = connection.settings.http
        let proxy = http.proxy(for: endpoint).map { $0 != endpoint } == true ? http.proxy : nil
        if levels.localFailure == nil, let proxy, let failure = facts.proxyFailure {
            self.failure = Finding(CauseOfProxy.cause(failure, proxy, to: endpoint), accusesServer: false)
            return
        }
        judgeHandshake(connection, host: proxy.map { _ in endpoint.hostText }) { cause, tls in
            let finding =
                proxy.map { CauseOfProxy.finding(cause, tls, $0, to: endpoint) } ?? Finding(cause, accusesServer: true)
            return finding.with(
                finding.cause.behind(facts.handshakeRedirects ?? [], of: firstHost), accusesServer: finding.accusesServer)
        }
        guard isPassed, let exchange = facts.exchange else { return }
        let judged = CauseOfHTTP(
            facts: exchange, ending: facts.ending ?? .exchange, host: firstHost,
            elapsedNanoseconds: connection.elapsedNanoseconds)
        failure = judged.cause.map { Finding($0, accusesServer: $0.layer == .http) }
        // Without TLS, the proxy may have answered in place of the server.
        if let proxy, levels.tls == nil, let cause = failure?.cause {
            failure = CauseOfProxy.finding(cause, exchange.response, proxy)
        }
    }
}

extension HTTPKind {
    /// Explains the exchange.
    func step(of endpoint: Endpoint, _ report: ProbeReport?) -> LayerStep {
        guard let levels = report?.levels, let facts = levels.http, let status = facts.response.status else {
            return LayerStep(.http, .unproven, "no request was answered")
        }
        var sentence = "the request is answered with \(status), \(facts.response.bodyBytes) bytes of body"
        if let last = facts.redirects.last {
            sentence += ", after a redirect to \(last)"
        } else if let other = facts.otherHost {
            sentence += ", a redirect to another host, \(other)"
        }
        let cause = CauseOfHTTP(
            facts: facts, ending: levels.httpEnding ?? .exchange, host: endpoint.hostText,
            elapsedNanoseconds: levels.exchange?.saturatingNanoseconds ?? 0)
        return LayerStep(.http, .works, sentence, duration: levels.exchange, evidence: cause.evidence)
    }
}
