internal import ByteComparison
public import FoundationEssentials
public import HTTPTypes

/// A request: method, URL, header fields, body and options.
///
/// If an option is `nil`, the value of the session's ``SessionConfiguration`` applies. Changes do not affect tasks that were made before.
public struct TransferRequest: Sendable {
    /// The URL, with the scheme `http` or `https`.
    ///
    /// A user and password in the URL are sent with the first request over TLS (Basic, RFC 7617). Over http they are sent when the server requests
    /// them, or with the first request if ``Options/sendsCredentialsPreemptively`` is set. They are never sent in a `Referer`, nor to the origin of a
    /// redirect. An international host is stored in ASCII (`xn--…`, RFC 5891).
    public var url: URL {
        get { parts.value.url }
        set { parts.value.url = newValue.withASCIIHost }
    }
    /// The method (RFC 9110 section 9), or any other token.
    public var method: HTTPRequest.Method {
        get { parts.value.method }
        set { parts.value.method = newValue }
    }
    /// The header fields. The fields of HTTP/1.1 framing (`Content-Length`, `Transfer-Encoding`, `Connection`) belong to the session: a request that
    /// has one fails with ``HTTPSessionError/Code/invalidRequest``. So does one with two lines of a field that may occur only once, such as `Host`,
    /// `Authorization`, `Content-Type`, `Range` or `User-Agent`.
    ///
    /// A field of the request replaces the one that the session would send: its ``SessionConfiguration/additionalHeaderFields``, `Accept-Encoding`, `Host`
    /// and the user and password of the URL. There are three exceptions. Credentials that a server has asked for replace `Authorization`. Lines of
    /// `Cookie` and the stored cookies are sent as one field. A download that continues sets its own range and conditions.
    public var headerFields: HTTPFields {
        get { parts.value.headerFields }
        // In place, because `set` would copy all fields for each change.
        _modify { yield &parts.value.headerFields }
    }
    /// The body; none by default.
    public var body: RequestBody {
        get { parts.value.body }
        set { parts.value.body = newValue }
    }
    /// The options of this request.
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

    /// The options of one request. If an option is `nil`, the value of the session applies. Timeouts are from 1 ms to 10 years, and sizes are not
    /// negative. Other values fail the task with ``HTTPSessionError/Code/invalidRequest``.
    public struct Options: Hashable, Sendable {
        /// The longest time in which an attempt sends and receives nothing (`URLSessionConfiguration.timeoutIntervalForRequest`).
        public var requestTimeout: Duration?
        /// The limit of the task's total time, with all redirects, waits and retries (`URLSessionConfiguration.timeoutIntervalForResource`).
        public var resourceTimeout: Duration?
        /// The limit of name resolution, TCP and TLS together in one attempt.
        public var connectTimeout: Duration?
        /// The priority in the session's queue, where tasks wait for a connection.
        public var priority = Priority.default
        /// Whether cookies are sent and stored.
        public var handlesCookies: Bool?
        /// Whether the user and password of an http URL are sent before the server requests them, in clear text.
        public var sendsCredentialsPreemptively: Bool?
        /// Whether the request may use a cellular interface.
        public var allowsCellularAccess: Bool?
        /// Whether the request may use an expensive interface (`NetworkPath.isExpensive`).
        public var allowsExpensiveAccess: Bool?
        /// Whether the request may use a constrained interface (`NetworkPath.isConstrained`).
        public var allowsConstrainedAccess: Bool?
        /// Whether the task waits for a network that leads to its server.
        public var waitsForConnectivity: Bool?
        /// The longest time for which the task waits for a network. If it is `nil`, ``SessionConfiguration/connectivityTimeout`` applies to a data
        /// or stream task, and a download or upload waits until its resource timeout.
        public var connectivityTimeout: Duration?
        /// The policy by which the task retries.
        public var retryPolicy: RetryPolicy?
        /// The largest body of a response in memory, in bytes.
        public var maximumResponseSize: Int?

        /// Creates options that are all taken from the session.
        public init() {}
    }

    /// A priority in the queue of a session (RFC 9218 calls it urgency). It is not sent to the server.
    @nonexhaustive public enum Priority: Int, Hashable, Sendable, Comparable, CaseIterable {
        /// The task starts after all other tasks.
        case low = 0
        /// The priority of most tasks.
        case `default` = 1
        /// The task starts before all other tasks.
        case high = 2

        /// Compares by urgency.
        public static func < (one: Priority, other: Priority) -> Bool { one.rawValue < other.rawValue }
    }

    /// The range of timeouts: 1 ms to 10 years.
    static let timeouts: ClosedRange<Duration> = .milliseconds(1) ... .seconds(10 * 366 * 86_400)

    /// Whether both requests have the same preparation: they are copies of one request, or equal requests without a body. The comparison includes the
    /// case of field names and the order of fields. Texts are compared by their bytes, which are sent: Swift compares them by canonical equivalence.
    func sharesPreparation(with other: TransferRequest) -> Bool {
        if parts.isShared(with: other.parts) { return true }
        guard case .none = body, case .none = other.body else { return false }
        return url.absoluteString.isExactly(other.url.absoluteString) && method.rawValue.isExactly(other.method.rawValue)
            && options == other.options && headerFields.elementsEqual(other.headerFields) { $0.isExactly($1) }
    }

    /// Creates a request.
    public init(
        url: URL, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:], body: RequestBody = .none,
        options: Options = Options()
    ) {
        parts = CopyOnWrite(
            Parts(url: url.withASCIIHost, method: method, headerFields: headerFields, body: body, options: options))
    }
}

extension HTTPField {
    /// Whether both fields have the same bytes in their name and their value, and are indexed in the same way.
    fileprivate func isExactly(_ other: HTTPField) -> Bool {
        name.rawName.isExactly(other.name.rawName) && indexingStrategy == other.indexingStrategy
            && withUnsafeBytesOfValue { bytes in
                other.withUnsafeBytesOfValue { UnsafeRawBufferPointer(bytes).hasSameBytes(as: UnsafeRawBufferPointer($0)) }
            }
    }
}
