internal import FoundationEssentials
internal import HTTPTypes
internal import Reachability

/// What follows after an attempt that failed: another one, for the whole or for the rest.
extension TransferMachine {
    /// The attempt has failed: another one follows, or the task ends with the error.
    mutating func failed(with error: HTTPSessionError, _ facts: TransferFacts? = nil, wasRefused: Bool = false) {
        let (end, hasSent) = (sentEnd, attempt.isConnected)
        upload?.lost(sent: end, hasSent: hasSent)
        var failure = self.failure(error.code)
        failure.isDeadConnection =
            error.code == .connectionLost && (facts?.hadSurplus == true || attempt.head == nil && facts?.wasResent == true)
        if resumption != nil { failure.hasProgressed = hasProgressed }
        failure.isRefusal = wasRefused
        if failure.hasProgressed { retries.progressed() }
        hasPaidRetry = false
        isAskedAgain = true
        guard mayBeOfNetwork(error, failure) else { return goOn(after: error, failure) }
        attempt.unexplained = (error, failure)
        order(.askGate(hasNoNetwork: error.code == .notConnected && error.underlying == nil))
    }

    /// What follows from a failure that the network's absence does not explain.
    mutating func goOn(after error: HTTPSessionError, _ failure: RetryMachine.Failure) {
        wasReleased = false
        switch decide(failure) {
        case .giveUp where isIntercepted && !failure.isBeyondRecall: askInterceptors(about: error)
        case .giveUp: end(with: error)
        case .retryDeadConnection:
            needsFreshConnection = true
            metrics.retryCount += 1
            order(.tell(.willRetry(error)))
            goOn(with: nextAttempt())
        case .retry(let delay): retry(after: error, delay: delay)
        }
    }

    /// Whether the transfer may be made a second time, although the server may have received its request.
    var mayRepeat: Bool { failure(.connectionLost).isRepeatable }

    /// The response may belong to no request: nothing of it is used.
    mutating func failedBySurplus(_ failure: TransferFailure, _ facts: TransferFacts) {
        (resumption, attempt.next) = (nil, nil)
        failed(with: failure.error, facts, wasRefused: failure.wasRefused)
    }

    /// Nothing came or went for the request timeout.
    mutating func failedByTimeout() {
        order(.measure(request))
        effects.append(.abandon)
        noteUnansweredName()
        let limit = Duration.nanoseconds(rules.limits.requestTimeout)
        stopped(by: HTTPSessionError(.timedOut, "nothing came or went for \(limit)"))
    }

    /// How long to wait before the request is made again instead of taking this response, if it is to be made again.
    mutating func retryDelay(insteadOf head: ResponseHead) -> Int64? {
        if upload != nil { return uploadRetryDelay(insteadOf: head) }
        return head.statusCode >= 400 ? retryDelay(for: head) : nil
    }

    /// `isAskedFor`: whatever the policy says of the status.
    mutating func retryDelay(for head: ResponseHead, isAskedFor: Bool = false) -> Int64? {
        var failure = self.failure(.unacceptableStatus)
        failure.statusCode = head.statusCode
        failure.isAskedFor = isAskedFor
        failure.retryAfter = head.firstValue(of: "retry-after").flatMap { RetryAfter.parse($0, now: attempt.headDate) }
        guard case .retry(let delay) = decide(failure) else { return nil }
        return delay
    }

    func failure(_ code: HTTPSessionError.Code) -> RetryMachine.Failure {
        RetryMachine.Failure(
            code: code, isIdempotent: upload?.isRepeatable ?? request.isIdempotent, hasSent: attempt.isConnected,
            hasProgressed: upload?.hasProgressed ?? false, isBeyondRecall: kind == .stream && progress.received > 0)
    }

    private mutating func decide(_ failure: RetryMachine.Failure) -> RetryMachine.Decision {
        upload?.hasProgressed = false
        return retries.decide(failure, remaining: life.remainingTime(now: now), draw: random.next())
    }

    mutating func retry(after error: HTTPSessionError, delay: Int64) {
        metrics.retryCount += 1
        metrics.timeBackingOff += .nanoseconds(delay)
        isAskedAgain = true
        order(.noteTrouble(origin))
        order(.tell(.willRetry(error)))
        // It backs off even for no time: the budget is asked when the time is over.
        goOn(with: nextAttempt(), delay: max(1, delay))
    }

    // MARK: Reasons

    /// Where there is certainly no network, that is the reason, whatever libcurl ran into.
    func explain(_ failure: TransferFailure) -> HTTPSessionError {
        let error = failure.error
        guard let lack = failure.lack else { return error }
        switch error.code {
        case .cannotFindHost, .cannotConnectToHost: break
        // One on this machine is there without a network, and one that has answered was reached.
        case .proxyFailed where error.context.statusCode == nil && !rules.session.hasLoopbackProxy(before: origin): break
        default: return error
        }
        var explanation = HTTPSessionError(
            .notConnected, lack.cause.map { "\($0)" } ?? "there is no path to any network", context: error.context,
            underlying: error)
        explanation.cause = lack.cause
        return explanation
    }

    // MARK: The host's name

    var isLookingUp: Bool { attempt.phase == .lookingUp }

    /// The attempt's time is over: where it went by with a look-up, it is over for all that have waited for that.
    mutating func noteUnansweredName() {
        if isLookingUp { effects.append(.nameIsUnanswered) }
    }

    /// Whether the host's name is in doubt, which is asked once: somebody else may have had an answer meanwhile.
    mutating func takeDoubt() -> Bool {
        defer { isNameDoubtful = false }
        return isNameDoubtful
    }

    static let unansweredName = HTTPSessionError(
        .timedOut, "the host's name was looked up for an earlier task, without an answer")
}
