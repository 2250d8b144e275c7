internal import FoundationEssentials
internal import HTTPTypes
internal import Pacing

extension TransferPlan {
    /// What the request asks for, with what the session adds. `isElsewhere`: a redirect has led to another origin, where the
    /// session's own credentials do not go.
    init(_ request: TransferRequest, logins: TaskLogins, settings: SessionSettings, segments: [BodySegment], isElsewhere: Bool) {
        self.init(url: request.url.withoutUserAndFragment.absoluteString, method: request.method.rawValue)
        body = TransferPlan.framing(request, segments)
        var fields = request.headerFields
        // Field by field: a copy of the whole configuration would retain and release all that it holds.
        for field in settings.configuration.additionalHeaderFields where request.headerFields[field.name] == nil {
            if !isElsewhere || !RedirectRules.isPrivate(field.name) { fields.append(field) }
        }
        headerLines = fields.map { "\($0.name.rawName): \($0.value)" }
        for index in headerLines.indices where fields[fields.index(fields.startIndex, offsetBy: index)].value.isEmpty {
            // libcurl takes `Name:` as the order to leave a field out, and `Name;` for one without a value.
            headerLines[index] = String(headerLines[index].dropLast(2)) + ";"
        }
        // libcurl would wait a second for a 100 that most servers never send.
        if body != .none, fields[.expect] == nil { headerLines.append("Expect:") }
        login = logins.server
        proxyLogin = logins.proxy
        // Credentials of our own for the origin stand instead of a field that has been refused.
        if login != nil { headerLines.removeAll { $0.lowercased().hasPrefix("authorization:") } }
        let isNegotiated = fields[values: .authorization].contains { $0.lowercased().hasPrefix("negotiate") }
        isolatesConnection =
            isNegotiated || [login, proxyLogin].contains { $0?.schemes.contains(.negotiate) == true }
        avoidsHTTP2 = isolatesConnection
        if login == nil, fields[.authorization] == nil { sendCredentialUnasked(of: request) }
        connectTimeoutMilliseconds = (request.options.connectTimeout ?? settings.configuration.connectTimeout).wholeMilliseconds
        handlesCookies = (request.options.handlesCookies ?? true) && !TransferPlan.endsInDot(request, fields)
        if case .multipart(let form) = request.body, let throttle = form.throttle, let rate = throttle.bytesPerSecond {
            maximumSendRate = min(rate, settings.configuration.maximumSendRate ?? .max)
            packetSize = throttle.packetSize
        }
        decompresses = settings.configuration.decompressesResponses && fields[.acceptEncoding] == nil && fields[.range] == nil
    }

    /// The URL's own user and password go at once over TLS, by Basic: nobody else reads them. Over http they wait for a challenge, which may
    /// ask for them by a scheme that hides them, unless the request says otherwise.
    private mutating func sendCredentialUnasked(of request: TransferRequest) {
        guard isSecure || request.options.sendsCredentialsPreemptively == true, let credential = request.url.credential,
            let value = try? RequestFields.basicAuthorization(username: credential.user, password: credential.secret)
        else { return }
        preemptiveCredential = credential
        headerLines.append("Authorization: \(value)")
    }

    /// Whether libcurl would choose and keep cookies by a host with a dot at its end: `Domain=co.uk.` is in no list of public suffixes, and
    /// all of `co.uk.` would get the cookie. It goes by a `Host` field where there is one.
    private static func endsInDot(_ request: TransferRequest, _ fields: HTTPFields) -> Bool {
        let hosts = [request.url.host(percentEncoded: false)] + (HTTPField.Name("Host").map { fields[values: $0] } ?? [])
        return hosts.contains { host in
            host.map { $0.prefix { $0 != ":" }.drop { $0 == " " }.hasSuffix(".") } ?? false
        }
    }

    private static func framing(_ request: TransferRequest, _ segments: [BodySegment]) -> BodyFraming {
        if case .none = request.body {
            // A method that is made for a body says that there is none (RFC 9110 section 8.6).
            return [.post, .put, .patch].contains(request.method) ? .length(0) : .none
        }
        return segments.totalLength.map { .length($0) } ?? .untilEnd
    }
}

extension [BodySegment] {
    /// Whether a user's stream provides a part of the body.
    var haveStream: Bool {
        contains { segment in
            if case .stream = segment { return true }
            return false
        }
    }

    /// In bytes; `nil` where only the end tells. `.max` is more than can be sent, or said.
    var totalLength: Int64? {
        reduce(0 as Int64?) { sum, segment in
            guard let sum, let length = segment.length else { return nil }
            return sum.addingSaturated(length)
        }
    }
}

extension Duration {
    /// At least 1 where the duration is positive: libcurl takes 0 for "no limit".
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let limit = Int64.max / 1_000 - 1
        return Swift.max(1, Swift.min(limit, Swift.max(-limit, seconds)) * 1_000 + attoseconds / 1_000_000_000_000_000)
    }
}

extension TransferRequest {
    /// RFC 9110 section 9.2.2; also where the caller vouches for it with an `Idempotency-Key`.
    package var isIdempotent: Bool {
        if let name = HTTPField.Name("Idempotency-Key"), headerFields[name] != nil { return true }
        return [.get, .head, .options, .trace, .put, .delete].contains(method)
    }
}
