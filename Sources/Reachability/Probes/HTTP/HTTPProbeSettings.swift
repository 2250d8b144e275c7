internal import ByteComparison
internal import Expressions

/// The request of HTTP probes, and the response that they expect. By default: GET, and a status from 200 to 299.
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

        /// Whether both are the same, compared by the bytes of their texts.
        public static func == (one: Authorization, other: Authorization) -> Bool {
            switch (one, other) {
            case (.basic(let user, let password), .basic(let otherUser, let otherPassword)):
                user.isExactly(otherUser) && password.isExactly(otherPassword)
            case (.bearer(let token), .bearer(let otherToken)): token.isExactly(otherToken)
            case (.basic, .bearer), (.bearer, .basic): false
            }
        }

        /// Hashes the texts.
        public func hash(into hasher: inout Hasher) {
            switch self {
            case .basic(let user, let password):
                user.hashBytes(into: &hasher)
                password.hashBytes(into: &hasher)
            case .bearer(let token): token.hashBytes(into: &hasher)
            }
        }
    }

    struct Field: Hashable, Sendable {
        @ExactString private(set) var name: String
        @ExactString private(set) var value: String
    }

    struct FieldRule: Hashable, Sendable {
        let name: String
        let expression: Expressions.Expression
        let mustMatch: Bool
    }

    /// The request's method; `GET` by default.
    public internal(set) var method = "GET"
    /// The value of the field Host, and the TLS server name unless that is set; `nil`, the default, for the target's host and port.
    public internal(set) var host: String?
    /// The request's body; empty by default.
    public var body: [UInt8] = []
    /// The credentials; none by default. They are not sent to another origin after a redirect.
    public internal(set) var authorization: Authorization?
    /// The names of added fields that another origin receives too after a redirect, but not if it leads from https to http; none by default.
    ///
    /// Without a name here, another origin receives Accept, User-Agent, Range and other fields that say what the probe wants, and no others: they
    /// may be secrets, such as `X-Api-Key`. It never receives Authorization, Cookie, Host, Origin and Referer.
    public var forwardedFields: [String] = []
    /// The proxy of http and https probes; `nil`, the default, for connections to the server itself.
    var proxy: ProbeProxy?
    /// Whether redirects are followed, up to 10, also to other hosts; true by default. Those of a canary are not (``isCanary``).
    public var followsRedirects = true
    /// The accepted status codes, such as `200-299,401`; `nil`, the default, for 200 to 299.
    public internal(set) var statuses: String?
    /// The accepted versions of the response, `1.0` and `1.1`; empty, the default, for both.
    public var versions: Set<String> = []

    /// Whether the URL is a canary: one whose answer is known, so that another answer is that of a captive portal (RFC 8910); false by
    /// default.
    ///
    /// The known answer is the declared expectation; 204 without one (``setStatuses(_:)``, ``expectBody(_:mustMatch:)``,
    /// ``expectField(_:_:mustMatch:)``). The probe follows no redirect, because a redirect is another answer. A status of 400 or more,
    /// other than 511, is no portal's.
    public var isCanary = false

    var fields: [Field] = []
    var bodyExpression: Expressions.Expression?
    var excludedBody: Expressions.Expression?
    var fieldRules: [FieldRule] = []
    var json: [JSONExpectation] = []
    /// The accepted numbers of bytes of the body, as they are received; `nil`, the default, accepts all.
    public var bodySizes: ClosedRange<Int>?
    /// Whether a recording had rules for the body or for fields, which it does not contain.
    var hasFurtherRules = false

    /// Creates the default settings.
    public init() {}
}
