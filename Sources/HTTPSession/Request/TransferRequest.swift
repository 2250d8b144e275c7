public import FoundationEssentials
public import HTTPTypes

/// What to ask of a server: the method, the address, the fields and the body, and how far to go for it.
///
/// A value: a copy changes nothing of a task that has been made from it. What is `nil` is taken from the session's
/// ``SessionConfiguration``.
public struct TransferRequest: Sendable {
    /// `http` or `https`. A user and a password in it are sent at once over TLS (Basic, RFC 7617), and over http when the server asks for
    /// them, unless ``Options/sendsCredentialsPreemptively`` is set. They are never sent in a `Referer` or to the origin of a redirect. A host of
    /// other scripts is kept in ASCII (`xn--…`, RFC 5891).
    public var url: URL {
        get { parts.value.url }
        set { parts.value.url = newValue.withASCIIHost }
    }
    /// RFC 9110 section 9, or any other token.
    public var method: HTTPRequest.Method {
        get { parts.value.method }
        set { parts.value.method = newValue }
    }
    /// Field names of HTTP/1.1 framing (`Content-Length`, `Transfer-Encoding`, `Connection`) are the engine's: setting one is an
    /// error (``HTTPSessionError/Code/invalidRequest``).
    public var headerFields: HTTPFields {
        get { parts.value.headerFields }
        // Where they are: `set` would have all of them copied for each that is set.
        _modify { yield &parts.value.headerFields }
    }
    /// What is sent with it.
    public var body: RequestBody {
        get { parts.value.body }
        set { parts.value.body = newValue }
    }
    /// How far to go for it.
    public var options: Options {
        get { parts.value.options }
        _modify { yield &parts.value.options }
    }

    private var parts: CopyOnWrite<Parts>

    private struct Parts: Sendable {
        var url: URL
        var method: HTTPRequest.Method
        var headerFields: HTTPFields
        var body: RequestBody
        var options: Options
    }

    /// How far to go for one request. Timeouts are 1 ms to 10 years, sizes not negative: anything else ends the task
    /// (``HTTPSessionError/Code/invalidRequest``).
    public struct Options: Hashable, Sendable {
        /// How long nothing may arrive or leave before the attempt ends (`URLSessionConfiguration.timeoutIntervalForRequest`).
        public var requestTimeout: Duration?
        /// From the start of the task to its end, with every redirect, wait and retry
        /// (`URLSessionConfiguration.timeoutIntervalForResource`).
        public var resourceTimeout: Duration?
        /// Name resolution, TCP and TLS together.
        public var connectTimeout: Duration?
        /// Which task starts first where tasks wait for a connection.
        public var priority = Priority.default
        /// `false`: no cookie is sent or kept.
        public var handlesCookies: Bool?
        /// `true`: the user and the password of an http URL are sent before the server asks for them, where everybody on the path reads them.
        public var sendsCredentialsPreemptively: Bool?
        /// `false`: never over a cellular interface.
        public var allowsCellularAccess: Bool?
        /// `false`: never over an interface that Reachability calls expensive.
        public var allowsExpensiveAccess: Bool?
        /// `false`: never over an interface that Reachability calls constrained.
        public var allowsConstrainedAccess: Bool?
        /// Whether the task waits for a network that is gone.
        public var waitsForConnectivity: Bool?
        /// When the task tries again by itself.
        public var retryPolicy: RetryPolicy?
        /// The longest response kept in memory, in bytes; data tasks only.
        public var maximumResponseSize: Int?

        /// Nothing but what the session says.
        public init() {}
    }

    /// RFC 9218 calls it urgency; here it orders this session's own queue.
    @nonexhaustive public enum Priority: Int, Hashable, Sendable, Comparable, CaseIterable {
        case low = 0
        case `default` = 1
        case high = 2

        /// By urgency.
        public static func < (one: Priority, other: Priority) -> Bool { one.rawValue < other.rawValue }
    }

    /// What a timeout may be: 1 ms to 10 years.
    static let timeouts: ClosedRange<Duration> = .milliseconds(1) ... .seconds(10 * 366 * 86_400)

    /// A request; `method` is GET unless told otherwise.
    public init(
        url: URL, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:], body: RequestBody = .none,
        options: Options = Options()
    ) {
        parts = CopyOnWrite(
            Parts(url: url.withASCIIHost, method: method, headerFields: headerFields, body: body, options: options))
    }
}
