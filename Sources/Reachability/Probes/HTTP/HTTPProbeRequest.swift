internal import Wire

/// The request of an HTTP probe, validated at creation, so that no value can add a field or another request (RFC 9110 section 5.5).
package struct HTTPProbeRequest: Hashable, Sendable {
    /// A field that the user adds.
    package struct Field: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Credentials, which only the origin of the first request receives.
    package enum Authorization: Hashable, Sendable {
        /// A user and a password (RFC 7617).
        case basic(user: String, password: String)
        /// A token (RFC 6750).
        case bearer(String)
    }

    /// The error for an invalid part of a request. The description is one line that names the part, and contains no secret.
    package struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = ExternalText.shortened(description) }
    }

    /// The method, such as `GET`.
    package private(set) var method: String
    package private(set) var url: HTTPURL
    /// The value of `Host` if it is not that of the URL.
    package private(set) var host: String?
    package private(set) var fields: [Field]
    package private(set) var body: [UInt8]
    package private(set) var authorization: Authorization?
    /// The names of further fields that another origin receives, in lower case.
    private var forwarded: Set<String>
    /// The cookies that the server has set by earlier responses of the probe.
    var cookies = ProbeCookies()

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - method: a token (RFC 9110 section 9.1). Methods are case-sensitive. CONNECT is refused.
    ///   - url: the URL to request.
    ///   - host: the value of `Host`, if it is not that of the URL.
    ///   - fields: further fields. They replace `User-Agent`, `Accept` and `Accept-Encoding`. `Host`, `Connection`, `Content-Length`, `Transfer-Encoding` and
    ///     the other fields that describe the connection are refused.
    ///   - body: the content of the request.
    ///   - authorization: credentials for the field `Authorization`.
    ///   - forwarded: the names of further fields that another origin receives after a redirect, unless it leads from https to http.
    /// - Throws: ``ParseError``, which names the invalid part.
    package init(
        method: String = "GET", url: HTTPURL, host: String? = nil, fields: [Field] = [], body: [UInt8] = [],
        authorization: Authorization? = nil, forwarding forwarded: [String] = []
    ) throws(ParseError) {
        guard HTTPGrammar.isToken(method.utf8) else { throw ParseError("method: '\(method)' is not a method") }
        guard method != "CONNECT" else { throw ParseError("method: CONNECT requests a tunnel, which no probe does") }
        if let host, host.isEmpty || !host.utf8.allSatisfy(Self.isHostByte) {
            throw ParseError("host: '\(host)' is not the value of a Host field")
        }
        for field in fields {
            guard HTTPGrammar.isToken(field.name.utf8) else { throw ParseError("header: '\(field.name)' is not a field's name") }
            let name = field.name.lowercased()
            guard !Self.refusedFields.contains(name) else { throw ParseError("header: the probe itself sends '\(field.name)'") }
            guard authorization == nil || name != "authorization" else {
                throw ParseError("header: Authorization is given twice")
            }
            // The value may be a secret.
            guard field.value.utf8.allSatisfy(HTTPGrammar.isValueByte) else {
                throw ParseError("header: the value of '\(field.name)' has a line end or a control character")
            }
        }
        if let authorization, let problem = authorization.problem { throw ParseError("\(authorization): \(problem)") }
        self.method = method
        self.url = url
        self.host = host
        self.fields = fields
        self.body = body
        self.authorization = authorization
        self.forwarded = Set(forwarded.map { $0.lowercased() })
    }

    /// The value of the `Host` field.
    package var hostField: String { host ?? url.authority }

    /// Returns the request as bytes of HTTP/1.1 (RFC 9112 section 3).
    package func bytes() -> [UInt8] { bytes(through: nil) }

    /// Returns the request as bytes for a server, or for a proxy that passes it on.
    func bytes(through proxy: ProbeProxy?) -> [UInt8] {
        let target = proxy == nil ? url.target : "\(url)"
        var lines = "\(method) \(target) HTTP/1.1\r\nHost: \(hostField)\r\nConnection: close\r\n\(proxy?.fieldLines ?? "")"
        func addDefault(_ name: String, _ value: String) {
            if !fields.contains(where: { $0.name.lowercased() == name.lowercased() }) { lines += "\(name): \(value)\r\n" }
        }
        addDefault("User-Agent", "netwatch/\(PackageVersion.text)")
        addDefault("Accept", "*/*")
        // Without the field a server may choose any coding (RFC 9110 section 12.5.3).
        addDefault("Accept-Encoding", "identity")
        if let authorization { lines += "Authorization: \(authorization.fieldValue)\r\n" }
        // A request has one field Cookie at most (RFC 6265 section 5.4).
        func isCookie(_ field: Field) -> Bool { field.name.lowercased() == "cookie" }
        for field in fields where !isCookie(field) { lines += "\(field.name): \(field.value)\r\n" }
        let own = fields.filter(isCookie).map(\.value)
        if let cookie = cookies.field(for: url, after: own.isEmpty ? nil : own.joined(separator: "; ")) {
            lines += "Cookie: \(cookie)\r\n"
        }
        // Methods whose requests usually have content send the length 0 too (RFC 9110 section 8.6).
        if !body.isEmpty || ["POST", "PUT", "PATCH"].contains(method) { lines += "Content-Length: \(body.count)\r\n" }
        return Array((lines + "\r\n").utf8) + body
    }

    /// Returns the request that follows a redirect (RFC 9110 section 15.4).
    ///
    /// 303 changes the method to GET, unless it is HEAD; 301 and 302 change POST to GET, as browsers do. With the method, the content and the
    /// fields that describe it go. Another origin receives neither credentials and cookies nor another `Host`, and of the target's fields only
    /// those that are no secret.
    func redirected(to url: HTTPURL, status: Int) -> HTTPProbeRequest {
        let becomesGET = status == 303 && method != "HEAD" && method != "GET" || (301...302).contains(status) && method == "POST"
        return redirected(to: url, method: becomesGET ? "GET" : method)
    }

    /// Returns the request that a redirect to a URL with a method leads to.
    func redirected(to url: HTTPURL, method: String) -> HTTPProbeRequest {
        var request = self
        request.url = url
        if method != self.method {
            request.method = method
            request.body = []
            request.fields.removeAll { $0.name.lowercased().hasPrefix("content-") }
        }
        return url.hasSameOrigin(as: self.url)
            ? request : request.forOtherOrigin(isDowngrade: self.url.scheme == .https && url.scheme == .http)
    }

    /// The request for another origin: without credentials, cookies, the target's `Host`, and fields that may be secrets, such as `X-Api-Key`.
    func forOtherOrigin(isDowngrade: Bool) -> HTTPProbeRequest {
        var request = self
        request.host = nil
        request.authorization = nil
        request.fields.removeAll { field in
            let name = field.name.lowercased()
            return !ForwardedFields.contain(name, isNamed: forwarded.contains(name), isDowngrade: isDowngrade)
        }
        return request
    }

    private static let refusedFields: Set<String> = [
        "host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive",
        "proxy-connection", "expect", "http2-settings",
    ]

    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !"/?#@\\\"<>".utf8.contains(byte)
    }
}

extension HTTPProbeRequest.Authorization {
    /// Why the credentials cannot be sent, without a part of them; `nil` if they can.
    var problem: String? {
        func hasControl(_ text: String) -> Bool { text.utf8.contains { $0 < 0x20 || $0 == 0x7F } }
        switch self {
        case .basic(let user, let password):
            if user.utf8.contains(UInt8(ascii: ":")) { return "the user's name has a colon" }
            return hasControl(user) || hasControl(password) ? "the user's name or the password has a control character" : nil
        case .bearer(let token):
            let isValid = !token.isEmpty && token.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            return isValid ? nil : "the token is empty, or has a character other than visible ASCII"
        }
    }

    /// The value of the field Authorization or Proxy-Authorization.
    var fieldValue: String {
        switch self {
        case .basic(let user, let password): "Basic \(Base64.text(Array("\(user):\(password)".utf8)))"
        case .bearer(let token): "Bearer \(token)"
        }
    }
}

extension HTTPProbeRequest: CustomStringConvertible {
    /// The method and the URL, without credentials.
    package var description: String { "\(method) \(url)" }
}

extension HTTPProbeRequest.Authorization: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The scheme alone: the secret is not shown.
    package var description: String {
        switch self {
        case .basic: "basic"
        case .bearer: "bearer"
        }
    }

    /// The scheme alone: the secret is not shown.
    package var debugDescription: String { description }

    /// The scheme alone: the secret is not shown.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The base64 encoding (RFC 4648 section 4).
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Returns the encoded bytes, with padding.
    static func text(_ bytes: [UInt8]) -> String {
        var encoded: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
            for digit in 0..<4 {
                let isPadding = digit > group.count
                encoded.append(isPadding ? UInt8(ascii: "=") : alphabet[Int(bits >> (18 - 6 * UInt32(digit)) & 63)])
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}
