internal import Pacing

/// Decides, for one task, what follows after an attempt that failed. Times are nanoseconds.
struct RetryMachine: Sendable {
    /// What is known of the failed attempt.
    struct Failure: Sendable {
        var code: HTTPSessionError.Code
        /// Of the response that is the failure, if one is.
        var statusCode: Int?
        /// From the response's `Retry-After`.
        var retryAfter: Int64?
        /// The method or the caller says that a second execution does no harm.
        var isIdempotent = false
        /// The connection had stood, so something may have been sent.
        var hasSent = true
        /// The protocol says to come again, whatever the policy says of the status.
        var isAskedFor = false
        /// A reused connection died before a byte of the answer: it says nothing of the server.
        var isDeadConnection = false
        /// Bytes came that the next attempt keeps.
        var hasProgressed = false
        /// The handshake ended with a word: a server that is not believed, or one that does not want us, is the same at the next try.
        var isRefusal = false
        /// What came was handed on, and cannot be taken back.
        var isBeyondRecall = false

        /// Whether another attempt could do no harm.
        var isRepeatable: Bool { !isBeyondRecall && (isIdempotent || !hasSent) }
    }

    enum Decision: Hashable, Sendable {
        case giveUp
        /// Once so many nanoseconds have passed, and the budget allows it.
        case retry(delay: Int64)
        /// At once and unpaid, on a connection of its own.
        case retryDeadConnection
    }

    private let policy: RetryPolicy
    // Most attempts do not fail.
    private lazy var backoff = Backoff(
        baseNanoseconds: policy.baseDelay.saturatingNanoseconds, capNanoseconds: policy.maximumDelay.saturatingNanoseconds)
    private var retries = 0
    private var hasRetriedDeadConnection = false

    init(_ policy: RetryPolicy) { self.policy = policy }

    /// `remaining`: until the task's time is over. `draw`: 64 random bits.
    mutating func decide(_ failure: Failure, remaining: Int64, draw: UInt64) -> Decision {
        guard failure.isRepeatable, isWorthIt(failure) else { return .giveUp }
        if failure.hasProgressed { progressed() }
        if failure.isDeadConnection, !hasRetriedDeadConnection {
            hasRetriedDeadConnection = true
            return .retryDeadConnection
        }
        if let maximum = policy.maximumRetries, retries >= maximum { return .giveUp }
        guard failure.retryAfter ?? 0 <= policy.maximumRetryAfter.saturatingNanoseconds else { return .giveUp }
        let drawn = backoff.next(draw: draw)
        // The server's wish, and a little more, so that those whom it told the same do not come together.
        let delay = failure.retryAfter.map { $0.addingSaturated(drawn) } ?? drawn
        guard delay < remaining else { return .giveUp }
        retries += 1
        return .retry(delay: delay)
    }

    /// The next failure is the first again.
    mutating func progressed() {
        (retries, hasRetriedDeadConnection) = (0, false)
        backoff.reset()
    }

    private func isWorthIt(_ failure: Failure) -> Bool {
        if failure.isAskedFor { return true }
        if let status = failure.statusCode { return policy.statusCodes.contains(status) }
        switch failure.code {
        case .timedOut, .notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .proxyFailed: return true
        case .secureConnectionFailed: return !failure.isRefusal
        // The caller's own, what a second try finds again, and what nobody shall try to get around.
        default: return false
        }
    }
}
