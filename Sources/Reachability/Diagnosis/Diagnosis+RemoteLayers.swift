internal import Certificates

/// The layers between this machine and the server.
extension DiagnosisEvidence {
    var dnsStep: Diagnosis.Step {
        guard let endpoint else { return pathNamesStep }
        guard case .name(let name) = endpoint.host else {
            return Diagnosis.Step(.dns, .notUsed, "not used: the target is an address")
        }
        guard let lookup = report?.lookup, lookup.code == 0, !lookup.addresses.isEmpty else {
            return Diagnosis.Step(.dns, .unproven, "\(name) was not resolved", duration: report?.resolution)
        }
        let addresses = lookup.addresses.map { "\($0)" }.joined(separator: ", ")
        var evidence: [String: Cause.Evidence] = ["name": .text(name), "addresses": .text(addresses)]
        if let source = lookup.answeredBy { evidence["answered_by"] = .text(source.rawValue) }
        if let server = lookup.server { evidence["resolver"] = .text("\(server)") }
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
        path.supportsDNS
            ? Diagnosis.Step(.dns, .unproven, "a name server is configured; it was not asked")
            : Diagnosis.Step(.dns, .fails, "no name server is configured, so names cannot be resolved")
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
        return Diagnosis.Step(
            .tcp, .works, "\(report.address ?? address) accepts connections to port \(endpoint.port)",
            duration: report.connection ?? report.roundTrip,
            evidence: [
                "address": .text("\(report.address ?? address)"), "port": .number(Int(endpoint.port)),
            ])
    }

    var tlsStep: Diagnosis.Step {
        guard let scheme = endpoint?.scheme, scheme.usesTLS else {
            return Diagnosis.Step(.tls, .notUsed, "not asked: the target is \(endpoint?.scheme.rawValue ?? "tcp")")
        }
        guard let facts = report?.levels?.tls, let name = report?.serverName else {
            return Diagnosis.Step(.tls, .unproven, "no handshake was attempted")
        }
        guard facts.isComplete else { return Diagnosis.Step(.tls, .unproven, "the handshake is not complete") }
        let protocols = [facts.version, facts.cipher].compactMap { $0 }.joined(separator: ", ")
        var sentence = "the handshake is complete (\(protocols))"
        if let certificate = facts.certificate {
            sentence +=
                facts.verifyErrors.isEmpty
                ? "; the certificate is for \(name), by \(certificate.issuer), valid until \(CauseOfTLS.date(certificate.notAfter))"
                : "; the errors of the certificate are ignored"
        }
        if isDegraded, let cause, cause.layer == .tls { sentence = cause.detail }
        return Diagnosis.Step(
            .tls, .works, sentence, duration: report?.levels?.handshake, evidence: facts.evidence(name: name))
    }

    var httpStep: Diagnosis.Step {
        guard let endpoint, endpoint.scheme.usesHTTP else {
            return Diagnosis.Step(.http, .notUsed, "not asked: the target is \(self.endpoint?.scheme.rawValue ?? "tcp")")
        }
        guard let levels = report?.levels, let facts = levels.http, let status = facts.status else {
            return Diagnosis.Step(.http, .unproven, "no request was answered")
        }
        let redirects = levels.redirects.compactMap { try? Endpoint($0) }
        let after = redirects.last.map { ", after \(redirects.count == 1 ? "a redirect" : "\(redirects.count) redirects") to \($0.text)" }
        return Diagnosis.Step(
            .http, .works, "the request is answered with \(status)\(after ?? ""), \(facts.bodyBytes) bytes of body",
            duration: levels.exchange, evidence: facts.evidence(redirects: redirects))
    }
}
