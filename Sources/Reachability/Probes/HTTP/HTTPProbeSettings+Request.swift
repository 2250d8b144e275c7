package import ByteComparison
internal import Expressions
internal import Wire

/// The checks of the settings' values.
extension HTTPProbeSettings {
    /// Sets the method.
    ///
    /// - Throws: ``InvalidValue`` if it is not a token (RFC 9110 section 5.6.2), or is CONNECT.
    public mutating func setMethod(_ method: String) throws(InvalidValue) { try change { $0.method = method } }

    /// Sets the value of the field Host.
    ///
    /// - Throws: ``InvalidValue`` if it is not the value of that field.
    public mutating func setHost(_ host: String) throws(InvalidValue) { try change { $0.host = host } }

    /// Sets the credentials.
    ///
    /// - Throws: ``InvalidValue`` if they contain a control character, or if a user's name contains a colon.
    public mutating func authorize(by authorization: Authorization) throws(InvalidValue) {
        try change { $0.authorization = authorization }
    }

    /// The names of request fields that may occur only once, in lower case (RFC 9110 section 5.3, and the fields' own specifications). Lines of Cookie are
    /// joined instead.
    package static let singleFields: Set<ExactString> = [
        "access-control-request-method", "authorization", "content-disposition", "content-location", "content-range",
        "content-type",
        "date", "from", "host", "idempotency-key", "if-modified-since", "if-range", "if-unmodified-since", "last-event-id",
        "max-forwards", "origin", "range", "referer", "sec-websocket-key", "soapaction", "traceparent", "tus-resumable",
        "upload-complete", "upload-length", "upload-offset", "user-agent",
        // WebDAV (RFC 4918 section 10).
        "depth", "destination", "if", "lock-token", "overwrite", "timeout",
    ]

    /// Adds a header field to the request. It replaces User-Agent, Accept and Accept-Encoding.
    ///
    /// - Throws: ``InvalidValue`` if the name is not a token, is one of those that the probe itself sends, or if the value contains a
    ///   control character.
    public mutating func addField(_ name: String, _ value: String) throws(InvalidValue) {
        try change { $0.fields.append(Field(name: name, value: value)) }
    }

    /// Sets the proxy through which http and https targets are probed, also after redirects.
    ///
    /// Lookups and connections are then those to the proxy. If it cannot be reached, or if it opens no tunnel to the server, the target is unreachable
    /// and the cause has the evidence `proxy`. The proxies of the environment are never used.
    ///
    /// - Parameters:
    ///   - url: a URL of http with a host, optionally with a port (default: 1080), and with a user and a password whose special characters are
    ///     percent-encoded; `nil` for no proxy.
    ///   - exceptions: the hosts that are connected to without the proxy, in the syntax of `no_proxy`: names with those below them, addresses, networks,
    ///     or `*`, separated by commas.
    /// - Throws: ``InvalidValue`` with the reason, without any part of the URL.
    public mutating func setProxy(_ url: String?, except exceptions: String = "") throws(InvalidValue) {
        proxy = if let url { try ProbeProxy(url, exceptions: exceptions) } else { nil }
    }

    /// Sets the credentials of the proxy.
    ///
    /// - Throws: ``InvalidValue`` if there is no proxy, or as ``authorize(by:)``.
    package mutating func authorizeProxy(user: String, password: String) throws(InvalidValue) {
        guard let proxy else { throw InvalidValue("there is no proxy") }
        let credentials = HTTPProbeRequest.Authorization.basic(user: user, password: password)
        if let problem = credentials.problem { throw InvalidValue(problem) }
        self.proxy = ProbeProxy(
            endpoint: proxy.endpoint, authorization: credentials.fieldValue, exceptionList: proxy.exceptionList)
    }

    /// Returns the proxy of an endpoint's probes; `nil` if they connect to the endpoint.
    package func proxy(for endpoint: Endpoint) -> Endpoint? { proxy.flatMap { $0.serves(endpoint) ? $0.endpoint : nil } }

    /// Sets the accepted status codes.
    ///
    /// - Parameter list: codes and ranges from 100 to 599, such as `200-299,401`.
    /// - Throws: ``InvalidValue`` with the reason.
    public mutating func setStatuses(_ list: String) throws(InvalidValue) {
        do { statuses = try StatusRanges(list).description } catch { throw InvalidValue(error.description) }
    }

    /// Expects that the first 64 KiB of the body, without gzip and deflate, match a regular expression in RE2's syntax, or do not match
    /// it. Each call replaces the expression of the call before.
    ///
    /// - Throws: ``InvalidValue`` if the expression is not valid.
    public mutating func expectBody(_ pattern: String, mustMatch: Bool = true) throws(InvalidValue) {
        let expression = try Self.expression(pattern)
        if mustMatch { bodyExpression = expression } else { excludedBody = expression }
    }

    /// Expects that the first 64 KiB of the body contain a text. It replaces the expression of ``expectBody(_:mustMatch:)``.
    ///
    /// - Throws: ``InvalidValue`` if the text is empty or too long.
    package mutating func expectBody(containing text: String) throws(InvalidValue) {
        guard !text.isEmpty else { throw InvalidValue("the text is empty") }
        // Quotes may double the text.
        let limit = Expressions.Expression.longestText / 2
        guard text.utf8.count <= limit else { throw InvalidValue("the text is longer than \(limit) bytes") }
        do { bodyExpression = try Expressions.Expression(literal: text) } catch { throw InvalidValue(error.description) }
    }

    /// Expects that a field of the response matches a regular expression in RE2's syntax, or that none of its values matches it.
    ///
    /// - Throws: ``InvalidValue`` if the name or the expression is not valid.
    public mutating func expectField(_ name: String, _ pattern: String, mustMatch: Bool = true) throws(InvalidValue) {
        guard HTTPGrammar.isToken(name.utf8) else {
            throw InvalidValue("field '\(ExternalText.shortened(name))' is not a field's name")
        }
        fieldRules.append(FieldRule(name: name, expression: try Self.expression(pattern), mustMatch: mustMatch))
    }

    /// The most values that are expected of a JSON text.
    static let jsonLimit = 16

    /// What a value of a JSON text has to be.
    ///
    /// Values are compared as they are written: `ok` with the string, `3` with the number or the string, `true` and `null` with the value or the string.
    @nonexhaustive public enum JSONComparison: Hashable, Sendable {
        case equals(String)
        /// The value exists, and is another one.
        case differs(from: String)
        /// A number above a limit.
        case above(Double)
        /// A number below a limit.
        case below(Double)
        /// A string, a number, a boolean or null whose text matches a regular expression in RE2's syntax.
        case matches(String)
        /// Whether there is a value, of whatever type.
        case exists(Bool)
    }

    /// Expects a value in the body, which has to be a JSON text (RFC 8259) of at most 64 KiB without gzip and deflate.
    ///
    /// - Parameters:
    ///   - pointer: the place of the value (RFC 6901), such as `/checks/0/status`; empty for the whole text.
    ///   - comparison: what the value has to be.
    /// - Throws: ``InvalidValue`` if the pointer or an expression is not valid, or if there are more than 16 expectations.
    public mutating func expectJSON(_ pointer: String, _ comparison: JSONComparison) throws(InvalidValue) {
        let compared: JSONExpectation.Comparison =
            switch comparison {
            case .equals(let text): .equals(text)
            case .differs(let text): .differs(text)
            case .above(let limit): .above(limit)
            case .below(let limit): .below(limit)
            case .matches(let pattern): .matches(try Self.expression(pattern))
            case .exists(let exists): .exists(exists)
            }
        guard let expectation = JSONExpectation(pointer, compared) else {
            throw InvalidValue("'\(ExternalText.shortened(pointer, to: 64))' is no JSON pointer; write it as in /checks/0/status")
        }
        guard json.count < Self.jsonLimit else { throw InvalidValue("more than \(Self.jsonLimit) values") }
        json.append(expectation)
    }

    private static func expression(_ pattern: String) throws(InvalidValue) -> Expressions.Expression {
        do { return try Expressions.Expression(pattern) } catch {
            throw InvalidValue("expression '\(ExternalText.shortened(pattern, to: 64))': \(error.description)")
        }
    }

    private mutating func change(_ body: (inout Self) -> Void) throws(InvalidValue) {
        var changed = self
        body(&changed)
        do {
            _ = try changed.checkedRequest(HTTPURL("http://localhost/"))
        } catch let error as HTTPProbeRequest.ParseError {
            throw InvalidValue(error.description)
        } catch { throw InvalidValue("\(error)") }
        self = changed
    }

    private func checkedRequest(_ url: HTTPURL) throws(HTTPProbeRequest.ParseError) -> HTTPProbeRequest {
        let credentials: HTTPProbeRequest.Authorization? =
            switch authorization {
            case .basic(let user, let password): .basic(user: user, password: password)
            case .bearer(let token): .bearer(token)
            case nil: nil
            }
        return try HTTPProbeRequest(
            method: method, url: url, host: host, fields: fields.map { HTTPProbeRequest.Field($0.name, $0.value) }, body: body,
            authorization: credentials, forwarding: forwardedFields)
    }

    /// Returns the request to a target; `nil` if the target is not a URL of http or https.
    func request(to endpoint: Endpoint) -> HTTPProbeRequest? {
        HTTPURL(endpoint).flatMap { try? checkedRequest($0) }
    }

    /// Whether the settings declare what identifies a response.
    private var identifiesResponse: Bool {
        statuses != nil || bodyExpression != nil || excludedBody != nil || !fieldRules.isEmpty || !json.isEmpty
            || bodySizes != nil
    }

    /// The response that the settings expect.
    var expectation: HTTPExpectation {
        let known = isCanary && !identifiesResponse ? StatusRanges.noContent : nil
        return HTTPExpectation(
            statuses: statuses.flatMap { try? StatusRanges($0) } ?? known, versions: versions.sorted(), body: bodyExpression,
            excludedBody: excludedBody,
            fields: fieldRules.map { HTTPExpectation.FieldRule($0.name, $0.expression, isExcluded: !$0.mustMatch) },
            json: json, sizes: bodySizes)
    }
}
