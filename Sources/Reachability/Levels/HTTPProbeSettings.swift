internal import Expressions

/// The request of HTTP probes, and the response that they expect. By default: GET, up to 10 redirects, and a status from 200 to 299.
public struct HTTPProbeSettings: Hashable, Sendable {
    /// The error for a value that HTTP or the syntax of expressions does not allow.
    public struct InvalidValue: Error, Hashable, Sendable, CustomStringConvertible {
        /// One line that names the value and the reason.
        public let description: String

        init(_ description: String) { self.description = description }
    }

    /// Credentials for the target's own origin.
    @nonexhaustive public enum Authorization: Hashable, Sendable {
        /// Basic authentication (RFC 7617).
        case basic(user: String, password: String)
        /// A bearer token (RFC 6750).
        case bearer(String)
    }

    struct Field: Hashable, Sendable {
        let name: String
        let value: String
    }

    /// The request's method.
    public private(set) var method = "GET"
    /// The value of the field Host, and by default the TLS server name; `nil` for the target's host and port.
    public private(set) var host: String?
    /// The request's body.
    public var body: [UInt8] = []
    /// The credentials. They are not sent to another origin after a redirect.
    public private(set) var authorization: Authorization?
    /// The maximum number of redirects that a probe follows, 0 to 10; 0 takes a redirect as the response.
    public var redirectLimit: Int {
        get { limit }
        set { limit = min(max(newValue, 0), Self.maximumRedirects) }
    }
    /// The accepted status codes; 200 to 299 by default.
    public var statuses: StatusCodes {
        get { expectation.statuses }
        set { expectation.statuses = newValue }
    }
    /// The accepted versions of the response, `1.0` and `1.1`; empty, the default, for any.
    public var versions: Set<String> {
        get { expectation.versions }
        set { expectation.versions = newValue }
    }

    private static let maximumRedirects = 10
    private var limit = maximumRedirects
    private(set) var fields: [Field] = []
    private(set) var expectation = HTTPExpectation()

    /// Creates the default settings.
    public init() {}

    /// Creates the settings of a recording, which has no expressions.
    init(
        method: String, host: String?, redirectLimit: Int, statuses: StatusCodes, versions: Set<String>, isDeclared: Bool
    ) {
        self.method = method
        self.host = host
        self.redirectLimit = redirectLimit
        expectation.statuses = statuses
        expectation.versions = versions
        expectation.hasFurtherRules = isDeclared
    }

    /// Sets the method.
    ///
    /// - Throws: ``InvalidValue`` if it is not a token (RFC 9110 section 5.6.2).
    public mutating func setMethod(_ method: String) throws(InvalidValue) {
        guard Self.isToken(method) else { throw InvalidValue("method '\(HTTPExchange.excerpt(Array(method.utf8)))' is not a token") }
        self.method = method
    }

    /// Sets the value of the field Host.
    ///
    /// - Throws: ``InvalidValue`` if it contains a space or a control character.
    public mutating func setHost(_ host: String) throws(InvalidValue) {
        guard !host.isEmpty, host.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw InvalidValue("host '\(HTTPExchange.excerpt(Array(host.utf8)))' contains a character that a host cannot have")
        }
        self.host = host
    }

    /// Sets the credentials.
    ///
    /// - Throws: ``InvalidValue`` if they contain a control character, or if a user's name contains a colon.
    public mutating func authorize(by authorization: Authorization) throws(InvalidValue) {
        let isValid =
            switch authorization {
            case .basic(let user, let password): Self.isText(user + password) && !user.contains(":")
            case .bearer(let token): !token.isEmpty && token.utf8.allSatisfy { (0x21...0x7e).contains($0) }
            }
        guard isValid else { throw InvalidValue("the credentials contain a character that they cannot have") }
        self.authorization = authorization
    }

    /// Adds a header field to the request. Host, Content-Length, Connection and Transfer-Encoding are those of the probe in any case.
    ///
    /// - Throws: ``InvalidValue`` if the name is not a token, or the value contains a control character.
    public mutating func addField(_ name: String, _ value: String) throws(InvalidValue) {
        guard Self.isToken(name), Self.isText(value) else {
            throw InvalidValue("field '\(HTTPExchange.excerpt(Array(name.utf8)))' is not valid")
        }
        fields.append(Field(name: name, value: value))
    }

    /// Expects that the first 64 KiB of the body match a regular expression in RE2's syntax, or do not match it.
    ///
    /// - Throws: ``InvalidValue`` if the expression is not valid.
    public mutating func expectBody(_ pattern: String, mustMatch: Bool = true) throws(InvalidValue) {
        expectation.body.append(try Self.rule(pattern, mustMatch))
    }

    /// Expects that a field of the response matches a regular expression in RE2's syntax, or that none of its values matches it.
    ///
    /// - Throws: ``InvalidValue`` if the name or the expression is not valid.
    public mutating func expectField(_ name: String, _ pattern: String, mustMatch: Bool = true) throws(InvalidValue) {
        guard Self.isToken(name) else { throw InvalidValue("field '\(HTTPExchange.excerpt(Array(name.utf8)))' is not valid") }
        expectation.add(field: name, try Self.rule(pattern, mustMatch))
    }

    private static func rule(_ pattern: String, _ mustMatch: Bool) throws(InvalidValue) -> HTTPExpectation.Rule {
        do { return HTTPExpectation.Rule(expression: try Expression(pattern), mustMatch: mustMatch) } catch {
            throw InvalidValue("expression '\(HTTPExchange.excerpt(Array(pattern.utf8)))': \(error.reason)")
        }
    }

    private static func isToken(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(HTTPExchange.isToken) }

    private static func isText(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 } }
}

extension HTTPProbeSettings.Authorization {
    /// The value of the field Authorization.
    var fieldValue: String {
        switch self {
        case .basic(let user, let password): "Basic \(Self.base64(Array("\(user):\(password)".utf8)))"
        case .bearer(let token): "Bearer \(token)"
        }
    }

    // RFC 4648 section 4
    static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for index in 0..<4 {
                text.append(index > group.count ? UInt8(ascii: "=") : alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
