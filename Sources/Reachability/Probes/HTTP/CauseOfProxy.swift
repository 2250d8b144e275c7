internal import Certificates
internal import Wire

/// The causes of probes that a proxy prevents. The evidence `proxy` names it, and the server is not accused: no packet has reached it.
enum CauseOfProxy {
    /// Returns the cause of a tunnel that the proxy has not opened.
    static func cause(_ failure: ProxyTunnelFailure, _ proxy: ProbeProxy, to server: Endpoint) -> Cause {
        let response = failure.response
        var evidence: [String: Cause.Evidence] = ["proxy": .text(proxy.text)]
        evidence["status"] = response.status.map { .number($0) }
        evidence["first_bytes"] = response.excerpt.map { .text($0) }
        let tunnel = "a tunnel to \(server.hostAndPort)"
        func cause(_ code: Cause.Code, _ detail: String) -> Cause {
            Cause(.http, code, detail: "the proxy \(proxy.text) \(detail)", evidence: evidence)
        }
        if let failure = response.failure {
            let isClosed = failure == .noResponse || failure == .truncatedHead
            let reason = isClosed ? "closes the connection instead of opening \(tunnel)" : CauseOfHTTP.phrase(failure, response)
            return cause(.invalidResponse, reason)
        }
        switch (failure.ending, response.status) {
        case (_, 407?): return authenticationRequired(proxy, evidence)
        case (_, let status?):
            let text = [String(status), response.reason].compactMap { $0 }.joined(separator: " ")
            return cause(.status, "does not open \(tunnel): \(text)")
        case (.deadline, nil): return cause(.timeout, "does not answer the request for \(tunnel) in time")
        default: return cause(.invalidResponse, "ends the connection instead of opening \(tunnel)")
        }
    }

    /// Returns the finding of a request that the proxy should have passed on. 407 is its own answer, and so are probably 502 and 504 (RFC 9110 section
    /// 15.6), and those that say so. If there is no answer, nobody knows which of the two is silent. The server is accused only of other answers.
    static func finding(_ cause: Cause, _ response: HTTPResponseFacts?, _ proxy: ProbeProxy) -> Finding {
        let status = response?.status
        if status == 407 { return Finding(authenticationRequired(proxy, cause.evidence), accusesServer: false) }
        let isOfServer = status.map { ![502, 504].contains($0) && response?.isOfProxy != true } ?? false
        guard !isOfServer else { return Finding(cause, accusesServer: cause.layer == .http) }
        return Finding(cause.naming(proxy, "\(cause.detail), through the proxy \(proxy.text)"), accusesServer: false)
    }

    /// Returns the finding of a handshake in a tunnel. Many proxies open a tunnel before they have a connection to the server: if not one byte has
    /// arrived, nobody knows which of the two is at fault.
    static func finding(_ cause: Cause, _ facts: TLSHandshakeFacts, _ proxy: ProbeProxy, to server: Endpoint) -> Finding {
        guard facts.bytesReceived == 0 else { return Finding(cause, accusesServer: true) }
        let tunnel = "the tunnel of the proxy \(proxy.text) to \(server.hostAndPort)"
        let ending = cause.code == .handshakeRefused ? "ends without a byte of the server" : "carries no byte of the server"
        return Finding(cause.naming(proxy, "\(tunnel) \(ending)"), accusesServer: false)
    }

    /// Returns the cause of a proxy that requires credentials, or others (407, RFC 9110 section 15.5.8).
    static func authenticationRequired(_ proxy: ProbeProxy, _ evidence: [String: Cause.Evidence]) -> Cause {
        let detail =
            "the proxy \(proxy.text) "
            + (proxy.authorization.isEmpty
                ? "requires a user and a password (407)" : "does not accept the user and the password (407)")
        return Cause(.http, .status, detail: detail, evidence: evidence).naming(proxy, detail)
    }
}

extension Cause {
    /// Returns the cause of a probe whose way to the proxy fails, with the proxy in its evidence and its sentence.
    func before(_ proxy: ProbeProxy) -> Cause {
        guard evidence["proxy"] == nil else { return self }
        let isOfThisMachine = [Layer.link, .address, .route, .firewall, .local].contains(layer)
        return naming(proxy, isOfThisMachine ? detail : "the proxy \(proxy.text) cannot be reached: \(detail)")
    }

    /// Returns the cause with the proxy in its evidence, and a sentence.
    fileprivate func naming(_ proxy: ProbeProxy, _ detail: String) -> Cause {
        Cause(layer, code, detail: detail, evidence: evidence.merging(["proxy": .text(proxy.text)]) { old, _ in old })
    }
}
