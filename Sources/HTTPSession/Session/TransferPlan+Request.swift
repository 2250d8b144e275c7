internal import FoundationEssentials
internal import HTTPTypes
internal import Pacing

extension TransferPlan {
    /// The plan of a request, with the fields that the session adds. `change` is that of a redirect to another origin, which does not
    /// receive the session's own credentials; `nil` without one.
    init(
        _ request: TransferRequest, logins: TaskLogins, settings: SessionSettings, segments: [BodySegment],
        change: RedirectRules.Change?
    ) {
        self.init(url: request.url.withoutUserAndFragment.absoluteString, method: request.method.rawValue)
        body = TransferPlan.framing(request, segments)
        var fields = request.headerFields
        // Field by field: a copy of the configuration would retain and release all its members.
        for field in settings.configuration.additionalHeaderFields where request.headerFields[field.name] == nil {
            if change?.mayForward(field.name, settings.configuration.forwardedHeaderFields) ?? true { fields.append(field) }
        }
        if let own = fields.takeCookies() { cookies = own }
        login = logins.server
        proxyLogin = logins.proxy
        // Credentials for the origin replace an Authorization field that the server has refused. libcurl would send none beside the field.
        if logins.answersServer { fields[.authorization] = nil }
        let hasExpectation = !fields.isEmpty && fields[.expect] != nil
        // An expectation is about the content (RFC 9110 section 10.1.1).
        if hasExpectation, body == .none || body == .length(0) { fields[.expect] = nil }
        headerLines = fields.map { "\($0.name.rawName): \($0.value)" }
        for index in headerLines.indices where fields[fields.index(fields.startIndex, offsetBy: index)].value.isEmpty {
            // For libcurl `Name:` omits a field, and `Name;` is a field without a value.
            headerLines[index] = String(headerLines[index].dropLast(2)) + ";"
        }
        // Otherwise libcurl would wait a second for a 100, which most servers never send.
        if hasExpectation { expectsContinue = fields[.expect]?.lowercased() == "100-continue" }
        if body != .none, fields[.expect] == nil { headerLines.append("Expect:") }
        let isNegotiated = fields[values: .authorization].contains { $0.lowercased().hasPrefix("negotiate") }
        isolatesConnection =
            isNegotiated || [login, proxyLogin].contains { $0?.schemes.contains(.negotiate) == true }
        avoidsHTTP2 = isolatesConnection || settings.avoidsHTTP2(for: body)
        if !logins.answersServer, fields[.authorization] == nil { sendCredentialPreemptively(of: request) }
        connectTimeoutMilliseconds = (request.options.connectTimeout ?? settings.configuration.connectTimeout).wholeMilliseconds
        handlesCookies = settings.network.cookieStore != nil && request.options.handlesCookies ?? true
        if case .multipart(let form) = request.body, let throttle = form.throttle, let rate = throttle.bytesPerSecond {
            maximumSendRate = min(rate, settings.configuration.maximumSendRate ?? .max)
            packetSize = throttle.packetSize
        }
        decompresses = settings.configuration.decompressesResponses && fields[.acceptEncoding] == nil && fields[.range] == nil
    }

    /// Sends the request without `Expect`, because the server has refused it (417).
    mutating func omitExpectation() {
        guard expectsContinue else { return }
        headerLines.removeAll { $0.lowercased().hasPrefix("expect:") }
        headerLines.append("Expect:")
        expectsContinue = false
    }

    /// Sends the URL's user and password by Basic before a challenge, if TLS protects them or the request asks for it. Otherwise they are sent after
    /// a challenge over http, which may use a scheme that protects them.
    private mutating func sendCredentialPreemptively(of request: TransferRequest) {
        guard isSecure || request.options.sendsCredentialsPreemptively == true, let credential = request.url.credential,
            let value = try? RequestFields.basicAuthorization(username: credential.user, password: credential.secret)
        else { return }
        preemptiveCredential = credential
        headerLines.append("Authorization: \(value)")
    }

    static func framing(_ request: TransferRequest, _ segments: [BodySegment]) -> BodyFraming {
        if case .none = request.body {
            // A method that anticipates content sends `Content-Length: 0` without it (RFC 9110 section 8.6).
            return [.post, .put, .patch].contains(request.method) ? .length(0) : .none
        }
        return segments.totalLength.map { .length($0) } ?? .untilEnd
    }
}

extension HTTPFields {
    /// Removes the field `Cookie`, and returns its value: one line, whatever the number of its lines (RFC 6265 section 5.4); `nil` without one.
    fileprivate mutating func takeCookies() -> String? {
        guard contains(.cookie) else { return nil }
        let value = self[values: .cookie].filter { !$0.isEmpty }.joined(separator: "; ")
        self[.cookie] = nil
        return value
    }
}

extension [BodySegment] {
    /// Whether a stream of the user provides some of the body.
    var haveStream: Bool {
        contains { segment in
            if case .stream = segment { return true }
            return false
        }
    }

    /// The length of all segments in bytes; `nil` if one of them has no known length. `.max` is more than can be sent.
    var totalLength: Int64? {
        reduce(0 as Int64?) { sum, segment in
            guard let sum, let length = segment.length else { return nil }
            return sum.addingSaturated(length)
        }
    }
}

extension Duration {
    /// The duration in whole milliseconds, at least 1: for libcurl 0 means "no limit".
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let limit = Int64.max / 1_000 - 1
        return Swift.max(1, Swift.min(limit, Swift.max(-limit, seconds)) * 1_000 + attoseconds / 1_000_000_000_000_000)
    }
}

extension TransferRequest {
    /// Whether the request is idempotent, by its method (RFC 9110 section 9.2.2) or by an `Idempotency-Key` of the caller.
    package var isIdempotent: Bool {
        if let name = HTTPField.Name("Idempotency-Key"), headerFields[name] != nil { return true }
        return method.isIdempotent
    }
}

extension HTTPRequest.Method {
    /// Whether the method is idempotent (RFC 9110 section 9.2.2).
    package var isIdempotent: Bool { [.get, .head, .options, .trace, .put, .delete].contains(self) }
}
