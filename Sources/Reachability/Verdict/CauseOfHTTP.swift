/// Determines the cause of a failed HTTP exchange from its facts.
///
/// | facts | cause |
/// |---|---|
/// | no complete response before the deadline | timeout |
/// | bytes that violate HTTP/1.1, a limit, or a connection that ends too early | invalid-response |
/// | status 511, or a declared expectation that fails after a redirect to another host | captive-portal |
/// | a status, a body or a field that is not expected | status, unexpected-body, unexpected-header |
struct CauseOfHTTP {
    let facts: HTTPResponseFacts
    let result: LevelResult
    let settings: HTTPProbeSettings
    let endpoint: Endpoint
    let address: IPAddress
    /// The destinations of the redirects that were followed, in order.
    let redirects: [Endpoint]
    /// The host of the first request.
    let origin: Endpoint

    /// The status of a network that requires a login (RFC 6585 section 6).
    private static let networkAuthenticationRequired = 511

    /// Returns the cause of the failure; `nil` if the response is as expected.
    var cause: Cause? {
        if let violation = facts.violation {
            let limit = violation.limit.map { ["limit": Cause.Evidence.text($0)] } ?? [:]
            return make(.invalidResponse, "\(subject) \(violation.detail)", limit)
        }
        guard facts.isComplete else { return incomplete }
        let answer = facts.status.map { "answers \(request) with \($0)" } ?? "answers"
        if facts.status == Self.networkAuthenticationRequired {
            return make(.captivePortal, "a captive portal answers in place of \(origin.hostText): \(subject) \(answer)")
        }
        guard let mismatch = facts.mismatch else { return nil }
        if isForeign, settings.expectation.isDeclared {
            let destination = redirects.last?.hostText ?? foreignHost ?? ""
            return make(
                .captivePortal, "a captive portal may answer in place of \(origin.hostText): it redirects to \(destination)",
                ["expectation": .text(expectation(mismatch))])
        }
        let evidence: [String: Cause.Evidence] = ["expectation": .text(expectation(mismatch))]
        switch mismatch {
        case .status: return make(.status, "\(subject) \(answer), not with \(settings.statuses)", evidence)
        case .version:
            return make(.invalidResponse, "\(subject) answers with HTTP/\(facts.version ?? "?")", evidence)
        case .body(let expression):
            return make(.unexpectedBody, "the body of \(subject) does not meet '\(expression)'", evidence)
        case .field(let name, let expression):
            return make(.unexpectedHeader, "the field \(name) of \(subject) does not meet '\(expression)'", evidence)
        }
    }

    private var incomplete: Cause {
        switch result.ending {
        case .error:
            let evidence: [String: Cause.Evidence] = ["errno": .text(SystemErrorNumber.name(of: result.errno))]
            return make(.invalidResponse, "\(subject) resets the connection before the end of its response", evidence)
        case .deadline, .completed, .closed, .failed:
            let progress =
                facts.receivedBytes == 0
                ? "does not answer \(request) before the deadline"
                : "has sent \(facts.receivedBytes) bytes of its response to \(request) before the deadline"
            return make(.timeout, "\(subject) \(progress)")
        }
    }

    private var subject: String { endpoint.addressText == nil ? "\(endpoint.authority) (\(address))" : endpoint.authority }
    private var request: String { "\(settings.method) \(Self.shortened(endpoint.path))" }

    /// Whether the answer is that of another host.
    private var isForeign: Bool { redirects.contains { $0.host != origin.host } || foreignHost != nil }

    /// The host of a redirect that was not followed, if it is another one.
    private var foreignHost: String? {
        guard let location = facts.location, let target = try? Endpoint(location), target.scheme.usesHTTP,
            target.host != origin.host
        else { return nil }
        return target.hostText
    }

    private func expectation(_ mismatch: HTTPResponseFacts.Mismatch) -> String {
        switch mismatch {
        case .status: "status \(settings.statuses)"
        case .version: "version \(settings.versions.sorted().joined(separator: ","))"
        case .body(let expression): "body \(expression)"
        case .field(let name, let expression): "\(name) \(expression)"
        }
    }

    private static func shortened(_ path: String) -> String {
        path.utf8.count > 60 ? "\(path.prefix(59))…" : path
    }

    private func make(_ code: Cause.Code, _ detail: String, _ more: [String: Cause.Evidence] = [:]) -> Cause {
        var evidence = facts.evidence(redirects: redirects)
        evidence["address"] = .text("\(address)")
        evidence["port"] = .number(Int(endpoint.port))
        evidence.merge(more) { _, new in new }
        return Cause(.http, code, detail: detail, evidence: evidence)
    }
}

extension HTTPResponseFacts {
    /// The evidence of the exchange, by the contract's names.
    func evidence(redirects: [Endpoint]) -> [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = ["body_bytes": .number(bodyBytes)]
        if let status { evidence["status"] = .number(status) }
        if let version { evidence["http_version"] = .text(version) }
        if let location { evidence["location"] = .text(location) }
        if let firstBytes { evidence["first_bytes"] = .text(HTTPExchange.excerpt(firstBytes)) }
        if !redirects.isEmpty { evidence["redirects"] = .texts(redirects.map(\.text)) }
        return evidence
    }
}
