internal import Pacing

/// Decides how one task proceeds after a failed attempt. Times are nanoseconds.
struct RetryMachine: Sendable {
    /// The properties of a failed attempt.
    struct Failure: Sendable {
        var code: HTTPSessionError.Code
        /// The status code, if a response is the failure.
        var statusCode: Int?
        /// The delay from the response's `Retry-After` field.
        var retryAfter: Int64?
        /// Whether the request may be executed twice, by its method or by the caller's decision.
        var isIdempotent = false
        /// Whether the connection was established, so that the request may have been sent.
        var hasSent = true
        /// Whether the server's protocol asks for a retry, whatever the policy says about the status.
        var isRequestedByServer = false
        /// Whether a reused connection died before the first byte of the response. That says nothing about the server.
        var isDeadConnection = false
        /// Whether the attempt received bytes that the next one keeps.
        var hasProgressed = false
        /// Whether the server has sent nothing for the request timeout, in all attempts together.
        var isSilence = false
        /// Whether one side refused the handshake: an untrusted server, or one that rejects this client. A retry would fail
        /// alike.
        var isHandshakeRefusal = false
        /// Whether a response has been delivered to a reader, or its first bytes, so that it cannot be replaced.
        var isAlreadyDelivered = false
        /// Whether the server reported success for a request whose body it cannot have read. Another attempt may succeed, but a server that answers
        /// like this twice always does.
        var isEarlySuccess = false

        /// Whether another attempt is harmless.
        var isRepeatable: Bool { !isAlreadyDelivered && (isIdempotent || !hasSent) }
    }

    enum Decision: Hashable, Sendable {
        case giveUp
        /// Another attempt may begin after `delay` nanoseconds, if the retry budget allows it.
        case retry(delay: Int64)
        /// Another attempt begins immediately on a new connection, without use of the retry budget.
        case retryDeadConnection
    }

    private let policy: RetryPolicy
    // The backoff is lazy because most attempts do not fail.
    private lazy var backoff = Backoff(
        baseNanoseconds: policy.baseDelay.saturatingNanoseconds, capNanoseconds: policy.maximumDelay.saturatingNanoseconds)
    private var retries = 0
    private var hasRetriedDeadConnection = false
    private var hasRetriedEarlySuccess = false

    init(_ policy: RetryPolicy) { self.policy = policy }

    /// Decides about a failure. `remaining`: the time until the resource timeout. `draw`: 64 random bits.
    mutating func decide(_ failure: Failure, remaining: Int64, draw: UInt64) -> Decision {
        guard failure.isRepeatable, !failure.isSilence, isRetryable(failure) else { return .giveUp }
        if failure.hasProgressed { progressed() }
        if failure.isDeadConnection, !hasRetriedDeadConnection {
            hasRetriedDeadConnection = true
            return .retryDeadConnection
        }
        if let maximum = policy.maximumRetries, retries >= maximum { return .giveUp }
        if failure.isEarlySuccess, hasRetriedEarlySuccess { return .giveUp }
        guard failure.retryAfter ?? 0 <= policy.maximumRetryAfter.saturatingNanoseconds else { return .giveUp }
        // A retry that is not made does not lengthen the delay of a later one.
        var following = backoff
        let drawn = following.next(draw: draw)
        // The random part is added to the server's delay, so that clients with the same `Retry-After` do not return at the same
        // moment.
        let delay = failure.retryAfter.map { $0.addingSaturated(drawn) } ?? drawn
        guard delay < remaining else { return .giveUp }
        (retries, backoff) = (retries + 1, following)
        if failure.isEarlySuccess { hasRetriedEarlySuccess = true }
        return .retry(delay: delay)
    }

    /// Resets the count of retries: the attempt has received bytes.
    mutating func progressed() {
        (retries, hasRetriedDeadConnection) = (0, false)
        backoff.reset()
    }

    private func isRetryable(_ failure: Failure) -> Bool {
        if failure.isRequestedByServer || failure.isEarlySuccess { return true }
        if let status = failure.statusCode { return policy.statusCodes.contains(status) }
        switch failure.code {
        case .timedOut, .notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .proxyFailed: return true
        case .secureConnectionFailed: return !failure.isHandshakeRefusal
        // Errors of the caller, errors that a retry would repeat, and refusals that must not be circumvented.
        default: return false
        }
    }
}

/// Rounds long delays up to a step of the clock, so that many waiting tasks are handled in one turn of the loop.
enum RetryStep {
    /// The mask of a step: 33 ms less one nanosecond.
    private static let step: Int64 = 1 << 25 - 1

    /// The delay in nanoseconds to use instead of `delay`: not shorter, and at most one step longer. Delays below two steps stay
    /// as they are.
    static func stepped(_ delay: Int64, now: Int64) -> Int64 {
        let until = now.addingSaturated(delay)
        return delay < 2 * step || until == .max ? delay : stepped(until: until) - now
    }

    /// The end of the step that contains `moment`.
    static func stepped(until moment: Int64) -> Int64 { moment | step }
}
