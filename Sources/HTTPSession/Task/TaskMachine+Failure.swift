internal import FoundationEssentials
internal import HTTPTypes
internal import Reachability

/// How the task proceeds after a failed attempt: with another attempt, for the complete representation or the remaining range, or
/// not at all.
extension TaskMachine {
    /// The attempt has failed: another one follows, or the task ends with the error.
    mutating func failed(
        with error: HTTPSessionError, _ facts: TransferFacts? = nil, isHandshakeRefusal: Bool = false,
        isEarlySuccess: Bool = false
    ) {
        let (end, hasSent) = (sentEnd, attempt.isConnected)
        // The server may have the sent bytes of a resumable upload: it is asked first.
        let hasSentPart = upload.map { hasSent && end > $0.bodyStart } ?? false
        upload?.lost(sent: end, hasSent: hasSent)
        var failure = self.failure(error.code)
        failure.isDeadConnection =
            error.code == .connectionLost && (facts?.hadSurplus == true || attempt.head == nil && facts?.wasResent == true)
        if resumption != nil { failure.hasProgressed = hasProgressed }
        failure.isHandshakeRefusal = isHandshakeRefusal
        failure.isEarlySuccess = isEarlySuccess
        if failure.hasProgressed { retries.progressed() }
        noteSilence(&failure, restarts: failure.hasProgressed || hasSentPart)
        hasPaidRetry = false
        isRepeatRequest = true
        guard mayBeOutage(error, failure) else { return retryOrEnd(after: error, failure) }
        attempt.pendingFailure = (error, failure)
        issue(.explainFailure(hasNoNetwork: error.code == .notConnected && error.underlying == nil))
    }

    /// Counts the silence of the failed attempt, which ends the task after the request timeout.
    ///
    /// `isSilent`: the task has waited that long in another attempt. `restarts`: the transfer continues behind the bytes of this attempt, and gets the
    /// complete time again, as each attempt of a policy without a limit.
    private mutating func noteSilence(_ failure: inout RetryMachine.Failure, restarts: Bool) {
        guard !restarts, rules.retryPolicy.maximumRetries != nil else { return noteReceived() }
        failure.isSilence = stateMachine.isSilent(now: now)
        _ = stateMachine.handle(.attemptFailed, now: now)
    }

    /// Retries or ends after a failure that is not attributed to an outage.
    mutating func retryOrEnd(after error: HTTPSessionError, _ failure: RetryMachine.Failure) {
        hasProceededAfterOutage = false
        switch decide(failure) {
        case .giveUp where isIntercepted && !failure.isAlreadyDelivered: askInterceptors(about: error)
        case .giveUp: end(with: error)
        case .retryDeadConnection:
            needsFreshConnection = true
            metrics.retryCount += 1
            issue(.report(.willRetry(error)))
            proceed(with: nextAttempt())
        case .retry(let delay): retry(after: error, delay: delay)
        }
    }

    /// Whether the request may be sent a second time although the server may have received it.
    var mayRepeat: Bool { failure(.connectionLost).isRepeatable }

    /// Fails with a response that may belong to no request: none of it is used.
    mutating func failedBySurplus(_ failure: TransferFailure, _ facts: TransferFacts) {
        (resumption, attempt.next) = (nil, nil)
        failed(with: failure.error, facts, isHandshakeRefusal: failure.isHandshakeRefusal)
    }

    /// The error of a status 200 to 299 whose exchange ended before the request's body was sent; `nil` if the response is the result. No server can
    /// have accepted a body that it has not read.
    func earlySuccess(_ facts: TransferFacts) -> HTTPSessionError? {
        guard facts.isRequestBodyCut, attempt.next == nil, let head = attempt.head, (200...299).contains(head.statusCode) else {
            return nil
        }
        if case .errorBody = attempt.body { return nil }
        // Over HTTP/2 a server may request that the client sends no more, without an error (RFC 9113 section 8.1). But a PUT succeeds only with the
        // complete body (RFC 9110 section 9.3.4), as does a resumable upload.
        guard facts.networkProtocol != "h2" || upload != nil || request.method == .put else { return nil }
        let count = (upload?.bodyStart ?? 0) + facts.requestBodyBytes
        let most = progress.expectedToSend.map { "\(min(count, $0)) of \($0) bytes" } ?? "\(count) bytes of it"
        return HTTPSessionError(
            .badServerResponse,
            "the server answered \(head.statusCode) \(head.reasonPhrase) without the complete request body: it received at most \(most)",
            context: .init(statusCode: head.statusCode))
    }

    /// Fails because of ``earlySuccess(_:)``: nothing of the response is used.
    mutating func failedByEarlySuccess(_ error: HTTPSessionError, _ facts: TransferFacts) {
        (resumption, firstResponse) = (nil, nil)
        progress.bytesSent = min(progress.bytesSent, (upload?.bodyStart ?? 0) + facts.requestBodyBytes)
        failed(with: error, facts, isEarlySuccess: true)
    }

    /// The request timeout has passed without a byte sent or received.
    mutating func failedByTimeout() {
        issue(.recordMetrics(of: request))
        effects.append(.abandon)
        noteStalledLookup()
        let limit = Duration.nanoseconds(rules.limits.requestTimeout)
        let reason =
            stateMachine.hasEarlierSilence
            ? "the server sent nothing for \(limit) in several attempts" : "no byte was sent or received for \(limit)"
        var error = HTTPSessionError(.timedOut, reason)
        error.cause = causeOfSilence
        attemptStopped(by: error)
    }

    /// The delay before the request is repeated, if this response calls for a retry; `nil` if the response is taken.
    mutating func retryDelay(insteadOf head: ResponseHead) -> Int64? {
        if upload != nil { return uploadRetryDelay(insteadOf: head) }
        return head.statusCode >= 400 ? retryDelay(for: head) : nil
    }

    /// `isRequestedByServer`: the protocol asks for a retry, whatever the policy says about the status.
    mutating func retryDelay(for head: ResponseHead, isRequestedByServer: Bool = false) -> Int64? {
        var failure = self.failure(.unacceptableStatus)
        failure.statusCode = head.statusCode
        failure.isRequestedByServer = isRequestedByServer
        failure.retryAfter = RetryAfter.delay(of: head, now: attempt.headDate)
        guard case .retry(let delay) = decide(failure) else { return nil }
        return delay
    }

    func failure(_ code: HTTPSessionError.Code) -> RetryMachine.Failure {
        RetryMachine.Failure(
            code: code, isIdempotent: upload?.isRepeatable ?? request.isIdempotent, hasSent: attempt.isConnected,
            hasProgressed: upload?.hasProgressed ?? false, isAlreadyDelivered: hasDeliveredStream)
    }

    /// Whether the head of a stream's response, or more, has been delivered. A repeated request could have another response.
    private var hasDeliveredStream: Bool {
        guard kind == .stream else { return false }
        if case .streamed = attempt.body { return true }
        return progress.bytesReceived > 0
    }

    private mutating func decide(_ failure: RetryMachine.Failure) -> RetryMachine.Decision {
        upload?.hasProgressed = false
        return retries.decide(failure, remaining: stateMachine.remainingTime(now: now), draw: random.next())
    }

    mutating func retry(after error: HTTPSessionError, delay: Int64) {
        metrics.retryCount += 1
        metrics.timeBackingOff += .nanoseconds(delay)
        isRepeatRequest = true
        issue(.openRetryBudget(origin))
        issue(.report(.willRetry(error)))
        // Even a delay of zero goes through the backoff state: the retry budget is consulted at its end.
        proceed(with: nextAttempt(), delay: max(1, delay))
    }

    // MARK: Error attribution

    /// The error to report. If the machine certainly has no network, that is the reason, whatever libcurl reported.
    func attributeToNetwork(_ failure: TransferFailure) -> HTTPSessionError {
        let error = failure.error
        guard let missingPath = failure.missingPath else { return error }
        switch error.code {
        case .cannotFindHost, .cannotConnectToHost: break
        // A proxy on this machine needs no network, and a proxy that has answered was reached.
        case .proxyFailed where error.context.statusCode == nil && !rules.session.hasLoopbackProxy(before: origin): break
        default: return error
        }
        var explanation = HTTPSessionError(
            .notConnected, missingPath.cause.map { "\($0)" } ?? "there is no path to any network", context: error.context,
            underlying: error)
        explanation.cause = missingPath.cause
        return explanation
    }

    // MARK: The host's name

    var isLookingUp: Bool { attempt.phase == .lookingUp }

    /// Reports the stalled lookup, if the attempt's time passed during one, to all tasks that wait for it.
    mutating func noteStalledLookup() {
        if isLookingUp { effects.append(.reportStalledLookup) }
    }

    /// Whether the shared lookup stalled; asking resets the flag, because another task may have resolved the name since.
    mutating func takeStalledLookup() -> Bool {
        defer { hasStalledLookup = false }
        return hasStalledLookup
    }

    static let stalledLookupError = HTTPSessionError(
        .timedOut, "the lookup of the host's name for an earlier task had no answer")
}
