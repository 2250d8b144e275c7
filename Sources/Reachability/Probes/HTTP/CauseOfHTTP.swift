internal import Wire

/// Determines the cause of an HTTP probe from its facts.
///
/// | facts, the first row that applies | cause |
/// |---|---|
/// | status 511 | captive-portal |
/// | a declared expectation is not met by the response behind a redirect to another host | captive-portal |
/// | the expectation of the canary URL is not met, or it redirects to another host without an end | captive-portal |
/// | a redirect that cannot be followed | invalid-response |
/// | a status that is not accepted | status |
/// | bytes that are no response, a limit, a connection that ends too early | invalid-response |
/// | the deadline | timeout |
/// | a version that is not accepted | invalid-response |
/// | a field, a body that is not expected, a body that cannot be decoded | unexpected-header, unexpected-body |
///
/// A final response of 400 or more is never a portal's, except 511: a portal shows a page. No response of a server whose certificate
/// is verified is a portal's, and no redirect of such a server leads to one.
package struct CauseOfHTTP {
    private let facts: HTTPProbeFacts
    private let ending: HTTPEnding
    private let host: String
    private let elapsedNanoseconds: Int64?

    /// Creates the judgment of an exchange.
    ///
    /// - Parameters:
    ///   - facts: the facts of the exchange.
    ///   - ending: the event that ended it.
    ///   - host: the name or address of the target, for the sentence.
    ///   - elapsedNanoseconds: the time from the start of the probe; `nil` if it is not known.
    package init(facts: HTTPProbeFacts, ending: HTTPEnding, host: String, elapsedNanoseconds: Int64?) {
        (self.facts, self.ending, self.host, self.elapsedNanoseconds) = (facts, ending, host, elapsedNanoseconds)
    }

    private var response: HTTPResponseFacts { facts.response }

    /// The cause; `nil` if the probe succeeded.
    package var cause: Cause? {
        if isCaptivePortal { return captivePortal }
        if let failure = facts.redirectFailure { return make(.invalidResponse, "\(host) \(Self.phrase(failure))") }
        if let mismatch = facts.mismatch, mismatch.kind == .status {
            return make(.status, statusSentence(mismatch))
        }
        if let failure = response.failure { return make(.invalidResponse, "\(subject) \(Self.phrase(failure, response))") }
        switch ending {
        case .systemError(let number): return systemError(number)
        case .deadline:
            let part = response.status != nil ? "the complete response" : "a complete head"
            return make(
                .timeout,
                response.receivedBytes == 0
                    ? "\(subject) does not answer the request in time" : "\(subject) does not send \(part) in time")
        case .exchange: break
        }
        return facts.mismatch.map(unexpected)
    }

    /// The evidence of every HTTP probe, also of a successful one.
    var evidence: [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = [:]
        evidence["elapsed_ms"] = elapsedNanoseconds.map { .number(Int($0 / 1_000_000)) }
        if let status = response.status {
            evidence["status"] = .number(status)
            evidence["body_bytes"] = .number(response.bodyBytes)
        }
        if let coding = response.contentEncoding { evidence["content_encoding"] = .text(coding) }
        if let version = response.version { evidence["http_version"] = .text(version) }
        if let location = response.location { evidence["location"] = .text(location) }
        if !facts.redirects.isEmpty { evidence["redirects"] = .list(facts.redirects) }
        if facts.isDowngraded { evidence["downgraded"] = .flag(true) }
        if let limit = facts.redirectFailure?.limit ?? response.limit { evidence["limit"] = .text(limit.text) }
        if let mismatch = facts.mismatch {
            evidence["expectation"] = .text(mismatch.expectation)
            evidence["found"] = mismatch.found.map { .text($0) }
        }
        if let excerpt = response.excerpt { evidence["first_bytes"] = .text(excerpt) }
        if case .systemError(let number) = ending { evidence["errno"] = .text(SystemErrorNumber.name(of: number)) }
        return evidence
    }

    /// Whether a captive portal answers instead of the server (RFC 6585 section 6, RFC 8910).
    private var isCaptivePortal: Bool {
        if facts.isAuthentic == true { return false }
        if response.status == 511 { return true }
        if facts.isCanary, portalHost != nil, facts.redirectFailure != nil { return true }
        guard let mismatch = facts.mismatch, let status = response.status, status < 400 else { return false }
        if facts.isCanary { return mismatch.kind != .version }
        return facts.isDeclared && portalHost != nil && mismatch.kind != .version
    }

    /// The host of a portal, if there is one: a server whose certificate is verified redirects to none.
    private var portalHost: String? { facts.isRedirectAuthentic == true ? nil : facts.otherHost }

    private var captivePortal: Cause {
        if response.status == 511 {
            return make(.captivePortal, "\(subject) answers 511: the network requires a login")
        }
        if let other = portalHost {
            return make(.captivePortal, "a login page of the network answers for \(host): it redirects to \(other)")
        }
        if let status = response.status, (300...399).contains(status), let location = response.location {
            return make(.captivePortal, "a login page of the network answers for \(host): it redirects to \(location)")
        }
        return make(.captivePortal, "a login page of the network answers for \(host), with \(statusText) and another page")
    }

    /// The server that sent the last response: the target's, or the one to which the target redirects.
    private var subject: String {
        facts.redirects.last.map { "\(host) redirects to \($0), which" } ?? host
    }

    private var statusText: String {
        [response.status.map(String.init), response.reason].compactMap { $0 }.joined(separator: " ")
    }

    private func statusSentence(_ mismatch: HTTPMismatch) -> String {
        let isRedirect = response.status.map { (300...399).contains($0) } ?? false
        let destination = isRedirect ? response.location.map { " with a redirect to \($0)" } ?? "" : ""
        return "\(subject) answers \(statusText)\(destination), not \(mismatch.expectation)"
    }

    private func make(_ code: Cause.Code, _ detail: String) -> Cause {
        Cause(.http, code, detail: detail, evidence: evidence)
    }

    private static func phrase(_ failure: RedirectFailure) -> String {
        switch failure.kind {
        case .loop: "redirects in a loop, back to \(failure.location)"
        case .limit where failure.limit == .location: "redirects to a URL of more than \(HTTPLimit.location.text)"
        case .limit: "redirects more than \(HTTPLimit.redirects.value) times"
        case .location: "redirects to '\(failure.location)', which no probe can request (\(failure.reason ?? "no URL"))"
        }
    }

    /// Returns what an invalid response is, as the end of a sentence about its sender.
    static func phrase(_ failure: HTTPResponseReader.Failure, _ response: HTTPResponseFacts) -> String {
        let excerpt = response.excerpt ?? ""
        return switch failure {
        case .noResponse: "closes the connection without a response"
        case .tls: "answers with TLS instead of HTTP; use https://"
        case .http2: "speaks only HTTP/2, and the probe speaks HTTP/1.1"
        case .notHTTP: excerpt.isEmpty ? "does not speak HTTP" : "does not speak HTTP: it answers '\(excerpt)'"
        case .version: "answers with another version of HTTP: '\(excerpt)'"
        case .statusLine: "answers with an invalid status line: '\(excerpt)'"
        case .field: "sends an invalid header field: '\(excerpt)'"
        case .length: "sends an invalid Content-Length: '\(excerpt)'"
        case .transferEncoding: "sends an invalid Transfer-Encoding: '\(excerpt)'"
        case .chunk: "sends an invalid chunk: '\(excerpt)'"
        case .upgrade: "changes the protocol (status 101), which the probe did not request"
        case .truncatedHead: "closes the connection before its header fields are complete"
        case .truncatedBody: "closes the connection before its body is complete"
        case .limit: "sends more than \(response.limit?.text ?? "a limit allows")"
        }
    }

    /// The cause of an errno without a message of a router.
    private func systemError(_ number: Int32) -> Cause {
        let name = SystemErrorNumber.name(of: number)
        switch SystemErrorNumber(rawValue: number) {
        case .connectionReset, .connectionAborted, .brokenPipe:
            let time = response.receivedBytes == 0 ? "without a response" : "before its response is complete"
            return make(.invalidResponse, "\(subject) resets the connection \(time)")
        case .timedOut: return make(.timeout, "\(subject) does not acknowledge the request in time")
        case .networkUnreachable:
            return Cause(.network, .netUnreachable, detail: "the network of \(host) became unreachable", evidence: evidence)
        case .hostUnreachable, .hostDown:
            return Cause(.network, .hostUnreachable, detail: "\(host) became unreachable", evidence: evidence)
        default: return make(.invalidResponse, "the connection to \(host) fails before the response is complete (\(name))")
        }
    }

    private func unexpected(_ mismatch: HTTPMismatch) -> Cause {
        let (expectation, field, coding) = (mismatch.expectation, mismatch.field ?? "", mismatch.coding ?? "")
        return switch mismatch.kind {
        case .status: make(.status, statusSentence(mismatch))
        case .version: make(.invalidResponse, "\(subject) answers with HTTP/\(response.version ?? "?"), not HTTP/\(expectation)")
        case .header: make(.unexpectedHeader, "\(subject) sends no field \(field) that matches '\(expectation)'")
        case .excludedHeader: make(.unexpectedHeader, "\(subject) sends a field \(field) that matches '\(expectation)'")
        case .body: make(.unexpectedBody, "\(subject) sends a body that does not match '\(expectation)'")
        case .excludedBody: make(.unexpectedBody, "\(subject) sends a body that matches '\(expectation)'")
        case .size: make(.unexpectedBody, "\(subject) sends a body of \(response.bodyBytes) bytes, not \(expectation)")
        case .json: make(.unexpectedBody, "\(subject) sends \(mismatch.found ?? "nothing") where \(expectation) is expected")
        case .notJSON:
            make(
                .unexpectedBody,
                "\(subject) sends a body that is no JSON text in its first 64 KiB, and \(expectation) is expected")
        case .unsupportedCoding:
            make(
                .unexpectedBody,
                "\(subject) sends a body with the coding '\(coding)', which is not decoded and not compared with '\(expectation)'"
            )
        case .damagedCoding:
            make(.unexpectedBody, "\(subject) sends a body that is not the \(coding) that its Content-Encoding announces")
        case .truncatedCoding: make(.unexpectedBody, "\(subject) sends a body that ends within its \(coding) data")
        }
    }
}
