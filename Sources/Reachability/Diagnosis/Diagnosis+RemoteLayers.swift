internal import Certificates
internal import Pacing

/// The layers between this machine and the server.
extension DiagnosisEvidence {
    var dnsStep: Diagnosis.Step {
        guard let endpoint else { return pathNamesStep }
        guard case .name(let name) = (proxy ?? endpoint).host else {
            return Diagnosis.Step(.dns, .notUsed, "not used: the \(proxy == nil ? "target" : "proxy") is an address")
        }
        guard let lookup = report?.lookup, lookup.code == 0, !lookup.addresses.isEmpty else {
            return Diagnosis.Step(.dns, .unproven, "\(name) was not resolved", duration: report?.resolution)
        }
        let addresses = lookup.addresses.map { "\($0)" }.joined(separator: ", ")
        var evidence: [String: Cause.Evidence] = ["name": .text(name), "addresses": .text(addresses)]
        if let source = lookup.answeredBy { evidence["answered_by"] = .text(source.rawValue) }
        if let server = lookup.server { evidence["resolver"] = .text("\(server)") }
        if let age = lookup.ageNanoseconds { evidence["answer_age_s"] = .number(Int(age / 1_000_000_000)) }
        let source =
            switch lookup.answeredBy {
            case .dns: lookup.server.map { ", by the name server \($0)" } ?? ", by a name server"
            case .hosts: ", by the hosts file"
            case .nss: ", by getaddrinfo"
            case .notAsked, nil: ""
            }
        let listed = lookup.addresses.count > 3 ? "\(lookup.addresses.count) addresses" : addresses
        return Diagnosis.Step(
            .dns, .works, "\(name) is resolved to \(listed)\(source)", duration: report?.resolution, evidence: evidence)
    }

    private var pathNamesStep: Diagnosis.Step {
        let implicit = ResolverConfiguration.Nameserver.implicit
        return Diagnosis.Step(
            .dns, .unproven,
            path.supportsDNS
                ? "\(path.resolvers.isEmpty ? "a name server" : path.resolvers.map(\.description).joined(separator: ", ")) is configured; "
                    + "no name was looked up"
                : "no name server is configured; names need one at \(implicit), which was not asked")
    }

    var firewallStep: Diagnosis.Step {
        guard case .server(let address)? = destination else { return Diagnosis.Step(.firewall, .unproven, "no packet was sent") }
        let evidence: [String: Cause.Evidence] = ["address": .text("\(address)")]
        // A filter may drop a TCP port and let the datagram of a query pass. An answer to a sweep is one to TCP.
        let isPassed =
            switch answerer {
            case .destination, .router: true
            case .host: hops?.isEmpty == false
            case .firstHop, .unknown: false
            }
        let detail =
            isPassed
            ? "this machine's packet filter lets packets to \(address) pass"
            : "no packet was refused; a filter that drops silently leaves no evidence"
        return Diagnosis.Step(.firewall, isPassed ? .works : .unproven, detail, evidence: evidence)
    }

    var networkStep: Diagnosis.Step {
        guard case .server(let address)? = destination else { return Diagnosis.Step(.network, .unproven, "no packet was sent") }
        if isLocal { return Diagnosis.Step(.network, .notUsed, "not used: the target is this machine") }
        if isOnLink { return Diagnosis.Step(.network, .notUsed, "not used: the target is on the link") }
        if answerer == .destination || answerer == .host {
            return Diagnosis.Step(
                .network, .works, "packets reach \(address), and its answers return",
                evidence: lastHopEvidence.merging(["address": .text("\(address)")]) { one, _ in one })
        }
        guard let hops else { return Diagnosis.Step(.network, .unproven, "no router reported a failure") }
        guard let last = hops.last else {
            return Diagnosis.Step(.network, .unproven, "no hop answered a sweep of \(Hop.limits) hop limits")
        }
        let list = hops.map { "\($0.address) (hop \($0.distance))" }.joined(separator: ", ")
        let evidence = lastHopEvidence.merging(["hops_answered": .number(hops.count)]) { one, _ in one }
        let answered = hops.count == 1 ? "only \(list) answers" : "\(list) answer"
        return Diagnosis.Step(
            .network, .unproven, "\(answered); nothing beyond hop \(last.distance) does", duration: last.roundTrip,
            evidence: evidence)
    }

    var tcpStep: Diagnosis.Step {
        guard let endpoint, case .server(let address)? = destination else {
            return Diagnosis.Step(.tcp, .unproven, "no connection was attempted")
        }
        guard let report, report.cause == nil || report.levels != nil else {
            return Diagnosis.Step(.tcp, .unproven, "no connection was attempted")
        }
        let port = (proxy ?? endpoint).port
        var sentence = "\(report.address ?? address) accepts connections to port \(port)"
        var evidence: [String: Cause.Evidence] = ["address": .text("\(report.address ?? address)"), "port": .number(Int(port))]
        if let proxy {
            sentence = "the proxy \(sentence)"
            evidence["proxy"] = .text(proxy.hostAndPort)
            if report.levels?.tunnelNanoseconds != nil {
                sentence += ", and opens a tunnel to \(endpoint.hostAndPort)"
            }
        }
        return Diagnosis.Step(.tcp, .works, sentence, duration: report.connection ?? report.roundTrip, evidence: evidence)
    }

    var tlsStep: Diagnosis.Step {
        // A server may redirect a request from http to https.
        guard let facts = report?.levels?.tls else {
            let scheme = endpoint?.scheme ?? .tcp
            return scheme.usesTLS
                ? Diagnosis.Step(.tls, .unproven, "no handshake was attempted")
                : Diagnosis.Step(.tls, .notUsed, "not asked: the target is \(scheme.rawValue)")
        }
        guard facts.isComplete else { return Diagnosis.Step(.tls, .unproven, "the handshake is not complete") }
        let protocols = [facts.version, facts.cipher].compactMap { $0 }.joined(separator: ", ")
        var sentence = "the handshake is complete (\(protocols))"
        if let certificate = facts.certificate {
            let end = certificate.notAfter.map { ", valid until \(CivilDate($0))" } ?? ""
            sentence +=
                facts.verificationErrors.isEmpty
                ? "; the certificate is for \(facts.serverName), by \(certificate.issuer)\(end)"
                : "; the errors of the certificate are ignored: \(TLSEvidence.texts(of: facts.verificationErrors).joined(separator: ", "))"
        }
        if facts.stapledResponse?.status == .revoked { sentence += "; it is revoked, which is ignored" }
        var evidence = TLSEvidence.evidence(of: facts)
        // The certificate that expires may be that of another address than the probe's.
        if isDegraded, let cause, cause.layer == .tls { (sentence, evidence) = (cause.detail, cause.evidence) }
        return Diagnosis.Step(.tls, .works, sentence, duration: report?.levels?.handshake, evidence: evidence)
    }

    var httpStep: Diagnosis.Step {
        guard let endpoint, endpoint.scheme.usesHTTP else {
            return Diagnosis.Step(.http, .notUsed, "not asked: the target is \(self.endpoint?.scheme.rawValue ?? "tcp")")
        }
        guard let levels = report?.levels, let facts = levels.http, let status = facts.response.status else {
            return Diagnosis.Step(.http, .unproven, "no request was answered")
        }
        var sentence = "the request is answered with \(status), \(facts.response.bodyBytes) bytes of body"
        if let last = facts.redirects.last {
            sentence += ", after a redirect to \(last)"
        } else if let other = facts.otherHost {
            sentence += ", a redirect to another host, \(other)"
        }
        let elapsed = report?.levels?.exchange?.saturatingNanoseconds ?? 0
        let cause = CauseOfHTTP(
            facts: facts, ending: levels.httpEnding ?? .exchange, host: endpoint.hostText, elapsedNanoseconds: elapsed)
        return Diagnosis.Step(.http, .works, sentence, duration: levels.exchange, evidence: cause.evidence)
    }
}
