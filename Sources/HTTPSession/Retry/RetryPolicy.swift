/// The policy that decides when, and how often, a task is retried automatically.
///
/// Only requests that may safely be repeated are retried. These are the idempotent methods of RFC 9110 section 9.2.2, requests
/// with an `Idempotency-Key` field, and requests of which nothing was sent. Uploads are also retried if the server reports how
/// many bytes it has received (``UploadProtocol``).
///
/// A server that is silent for the ``SessionConfiguration/requestTimeout``, in all attempts together, is not asked again, unless a transfer continues or
/// ``maximumRetries`` is `nil`.
///
/// The delay before each retry is random, between zero and a limit that doubles each time (full jitter). A `Retry-After` field
/// of the server overrides it. All retries of a session to one host share a budget, which limits the load on a failing server.
///
/// A POST that an HTTP/2 server refused unprocessed (REFUSED_STREAM, RFC 9113 section 8.7) is not retried. libcurl does not
/// distinguish it from a POST whose connection died, which the server may have executed.
public struct RetryPolicy: Hashable, Sendable {
    /// The largest number of consecutive retries; `nil` for as many as the resource timeout allows. The count restarts after a
    /// download has received bytes, or more of an upload has arrived. Default: 4.
    public var maximumRetries: Int?
    /// The limit of the delay before the first retry. It doubles with each further retry. Default: 500 ms.
    public var baseDelay: Duration
    /// The upper limit of the delay for any retry. A `Retry-After` may exceed it. Default: 60 s.
    public var maximumDelay: Duration
    /// The longest `Retry-After` for which the task waits. If a response asks for more, the task ends with that response, and the error of its status
    /// tells the delay (``HTTPSessionError/Context/retryAfter``). Default: 60 s.
    public var maximumRetryAfter: Duration
    /// The status codes whose responses are retried (RFC 9110 section 15). Default: 408, 429, 500, 502, 503 and 504.
    public var statusCodes: Set<Int>

    /// The default policy: four retries, within about 7 s unless the server asks for a longer wait.
    public static let `default` = RetryPolicy()
    /// The policy without retries. The session replaces only a reused connection that was lost before a response. An attempt
    /// without a network sends nothing and does not count; ``SessionConfiguration/waitsForConnectivity`` determines whether the
    /// task then waits.
    public static let never = RetryPolicy(maximumRetries: 0)
    /// The policy with as many retries as the resource timeout allows, also after a `Retry-After` of up to one hour.
    public static let persistent = RetryPolicy(maximumRetries: nil, maximumRetryAfter: .seconds(3_600))

    /// Creates a policy with the given numbers. A number or delay below zero counts as zero.
    public init(
        maximumRetries: Int? = 4, baseDelay: Duration = .milliseconds(500), maximumDelay: Duration = .seconds(60),
        maximumRetryAfter: Duration = .seconds(60), statusCodes: Set<Int> = [408, 429, 500, 502, 503, 504]
    ) {
        self.maximumRetries = maximumRetries.map { max(0, $0) }
        self.baseDelay = max(.zero, baseDelay)
        self.maximumDelay = max(.zero, maximumDelay)
        self.maximumRetryAfter = max(.zero, maximumRetryAfter)
        self.statusCodes = statusCodes
    }
}
