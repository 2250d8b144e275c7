/// When a task tries again by itself, and how often.
///
/// Tried again are requests whose repetition does no harm: the idempotent methods of RFC 9110 section 9.2.2, those that carry an
/// `Idempotency-Key`, any request of which nothing was sent, and those of an upload whose server says how much it has
/// (``UploadProtocol``). The wait before each try is drawn between zero and a limit that doubles (full jitter), unless the server said
/// how long with `Retry-After`. All tries of a session to one host share a budget, so that a server in trouble is not asked several
/// times as much as one that is well.
///
/// A POST that an HTTP/2 server refused unprocessed (REFUSED_STREAM, RFC 9113 section 8.7) is not tried again: libcurl does not tell it
/// from one whose connection died under it, and that one may have been executed.
public struct RetryPolicy: Hashable, Sendable {
    /// Failures in a row that are tried again; a download that has received something since the last one, or an
    /// upload of which more has arrived, starts counting anew. `nil`: until the resource timeout.
    public var maximumRetries: Int?
    /// The longest wait before the first retry; it doubles with each further one.
    public var baseDelay: Duration
    /// The longest wait, whatever the number of the retry. A `Retry-After` may ask for more.
    public var maximumDelay: Duration
    /// The longest wait that a `Retry-After` is granted: a response that asks for more is the result.
    public var maximumRetryAfter: Duration
    /// The statuses of responses that are tried again (RFC 9110 section 15).
    public var statusCodes: Set<Int>

    /// Four retries, within some 7 s where the server does not ask for more.
    public static let `default` = RetryPolicy()
    /// What one attempt brings is the result, but for a reused connection that had died before an answer. An attempt that finds no
    /// network, and so sends nothing, is none: ``SessionConfiguration/waitsForConnectivity`` decides of it.
    public static let never = RetryPolicy(maximumRetries: 0)
    /// As often as the resource timeout allows.
    public static let persistent = RetryPolicy(maximumRetries: nil)

    /// A policy of its own numbers. A number or delay below zero counts as zero.
    public init(
        maximumRetries: Int? = 4, baseDelay: Duration = .milliseconds(500), maximumDelay: Duration = .seconds(60),
        maximumRetryAfter: Duration = .seconds(3_600), statusCodes: Set<Int> = [408, 429, 500, 502, 503, 504]
    ) {
        self.maximumRetries = maximumRetries.map { max(0, $0) }
        self.baseDelay = max(.zero, baseDelay)
        self.maximumDelay = max(.zero, maximumDelay)
        self.maximumRetryAfter = max(.zero, maximumRetryAfter)
        self.statusCodes = statusCodes
    }
}
