internal import FoundationEssentials
internal import HTTPTypes

/// The sequence of a task's attempts.
extension TaskMachine {
    /// Begins an attempt: the queue has admitted the task.
    mutating func beginAttempt() {
        show(.running)
        for request in attempt.requests { issue(.releaseBody(of: request)) }
        attempt = Attempt()
        if !openPartialFileIfNeeded() { startIfReady() }
    }

    /// Starts the transfer if nothing holds it back. The attempt may wait for its partial file or for its interceptors; a handler
    /// may still decide, after a failure, whether there is an attempt at all.
    mutating func startIfReady() {
        guard isRunning, !isHandlerAsked, attempt.phase == .preparing, partialFileState != .opening, !requestAdaptationIfNeeded()
        else { return }
        effects.append(.startTransfer)
    }

    /// The engine did not receive the attempt, or refused it.
    mutating func startFailed(_ error: HTTPSessionError, hasBegun: Bool) {
        attempt.lookupEnded()
        if !waitForAllowedNetwork(after: error, hasBegun: hasBegun) { end(with: error) }
    }

    mutating func nameResolved() {
        attempt.lookupEnded()
        effects.append(.recordResolvedName)
    }

    mutating func connected() {
        attempt.phase = .connected
        hasBeenSent = true
        noteActivity()
        effects.append(.recordResolvedName)
    }

    // MARK: From one attempt to the next

    /// The request of the next attempt: usually the same request. It is the first request if the target of a redirect has failed,
    /// or the request that the upload's machine chooses.
    mutating func nextAttempt() -> TransferRequest {
        let next: TransferRequest
        if let upload {
            next = upload.transferRequest(of: rules.request)
            issue(.sendBodyRange(from: upload.bodyStart, count: upload.bodyCount))
        } else {
            guard shouldReturnToStart() else { return request }
            next = initialRequest
        }
        redirectCount = 0
        moveLogins(to: next)
        return next
    }

    /// Starts another transaction of the same task after `delay` nanoseconds.
    mutating func proceed(with next: TransferRequest, delay: Int64 = 0) {
        if delay > 0 { show(.backingOff) }
        proceed(with: next, .attemptEnded(delay: RetryStep.stepped(delay, now: now)))
    }

    mutating func proceed(with next: TransferRequest, _ event: TaskStateMachine.Event) {
        do throws(HTTPSessionError) { origin = try rules.session.check(next) } catch { return end(with: error) }
        switch request.body {
        case .stream, .multipart: issue(.releaseBody(of: request))
        default: break
        }
        request = next
        withdrawQuestion()
        advance(event)
        if stateMachine.state == .suspended {
            leaveOutage()
            show(.suspended)
        }
    }

    /// Starts a transaction whose server, and proxy, may differ.
    mutating func proceedToAddress(of next: TransferRequest) {
        isRepeatRequest = false
        moveLogins(to: next)
        proceed(with: next)
    }

    private mutating func moveLogins(to next: TransferRequest) {
        let nextOrigin = Origin(next.url)
        logins.move(to: nextOrigin, through: nextOrigin.flatMap { rules.session.proxies.httpProxy(for: $0) })
    }

    /// Whether the redirect's target has brought nothing twice in a row. The first URL may redirect elsewhere by now.
    private mutating func shouldReturnToStart() -> Bool {
        guard request.url != initialRequest.url, isRepeatableFromStart else { return false }
        attemptsWithoutProgress = hasProgressed ? 0 : attemptsWithoutProgress + 1
        guard attemptsWithoutProgress > 1 else { return false }
        attemptsWithoutProgress = 0
        return true
    }

    var isRepeatableFromStart: Bool {
        guard case .none = initialRequest.body else { return false }
        return [.get, .head].contains(initialRequest.method)
    }

    mutating func returnToStart() {
        redirectCount = 0
        proceedToAddress(of: initialRequest)
    }

    // MARK: The request's body

    /// The engine is about to read the request's body.
    mutating func bodyStarted(length: Int64?) {
        progress.bytesSent = upload?.bodyStart ?? 0
        progress.expectedToSend = upload?.length ?? length
    }

    /// The engine has read `count` more bytes of the body.
    mutating func bodyProvided(_ count: Int, now: Int64) {
        self.now = now
        noteActivity()
        progress.bytesSent += Int64(count)
        publishProgress()
    }

    /// libcurl sends the body again because the connection died, even if the server had received some of it.
    mutating func bodyRewound() {
        attempt.sentBeforeRewind = sentEnd
        progress.bytesSent = upload?.bodyStart ?? 0
    }

    /// Whether the complete request was sent.
    var isRequestSent: Bool { attempt.isConnected && progress.bytesSent >= progress.expectedToSend ?? 0 }

    /// The end of the current request's sent bytes, as an offset in the complete body.
    var sentEnd: Int64 { max(attempt.sentBeforeRewind, progress.bytesSent) }

    // MARK: Progress and metrics

    /// Publishes the progress at most once per interval: publishing takes a lock and looks at the readers.
    mutating func publishProgress() {
        guard publishedAt <= now - TaskMachine.progressInterval else {
            // The transfer may stall after this piece, so its progress is published when the interval has passed.
            hasUnpublishedProgress = true
            return
        }
        publishedAt = now
        hasUnpublishedProgress = false
        effects.append(.publishProgress)
    }

    /// Adds the metrics of an attempt at `request`.
    mutating func note(_ facts: TransferFacts, of request: TransferRequest) {
        let transaction = TransactionMetrics(
            method: request.method.rawValue, address: request.url, statusCode: attempt.head?.statusCode,
            fetchStart: attempt.fetchStart, network: attempt.network, facts: facts)
        if metrics.transactions.count >= TransferMetrics.maximumTransactions { metrics.transactions.removeFirst() }
        metrics.transactions.append(transaction)
    }
}
