internal import FoundationEssentials
internal import HTTPTypes

/// A task's attempts, one after another.
extension TransferMachine {
    /// The queue has a place for an attempt.
    mutating func begin() {
        stand(.running)
        for request in attempt.requests { order(.release(request)) }
        attempt = Attempt()
        if !opensPart() { beginIfReady() }
    }

    /// The attempt under way may have waited for its file and for its interceptors; and the handler that decides whether there is one at all,
    /// after a failure, may not have answered yet.
    mutating func beginIfReady() {
        guard isRunning, !isAsked, attempt.phase == .preparing, partState != .opening, !adapts() else { return }
        effects.append(.start)
    }

    /// The engine did not get the attempt, or did not take it.
    mutating func cannotStart(_ error: HTTPSessionError, hasBegun: Bool) {
        attempt.nameIsKnown()
        if !holds(untilAllowed: error, hasBegun: hasBegun) { end(with: error) }
    }

    mutating func lookedUp() {
        attempt.nameIsKnown()
        effects.append(.lookedUp)
    }

    mutating func connected() {
        attempt.phase = .connected
        hasLeft = true
        noteActivity()
        effects.append(.lookedUp)
    }

    // MARK: From one attempt to the next

    /// What another attempt asks for: the same again, the first address where a redirect has led nowhere, or of an upload what its machine
    /// says.
    mutating func nextAttempt() -> TransferRequest {
        let next: TransferRequest
        if let upload {
            next = upload.transferRequest(of: rules.request)
            order(.sendPart(from: upload.bodyStart, count: upload.bodyCount))
        } else {
            guard leadsNowhere() else { return request }
            next = start
        }
        redirects = 0
        moveLogins(to: next)
        return next
    }

    /// Another transaction of the same task follows, after `delay` nanoseconds.
    mutating func goOn(with next: TransferRequest, delay: Int64 = 0) {
        if delay > 0 { stand(.backingOff) }
        goOn(with: next, .endedForNow(delay: RetryStep.stepped(delay, now: now)))
    }

    mutating func goOn(with next: TransferRequest, _ event: TaskMachine.Event) {
        do throws(HTTPSessionError) { origin = try rules.session.check(next) } catch { return end(with: error) }
        switch request.body {
        case .stream, .multipart: order(.release(request))
        default: break
        }
        request = next
        withdrawQuestion()
        live(event)
        if life.state == .suspended {
            leaveGate()
            stand(.suspended)
        }
    }

    /// The next request may go to another server, and through another proxy.
    mutating func turn(to next: TransferRequest) {
        isAskedAgain = false
        moveLogins(to: next)
        goOn(with: next)
    }

    private mutating func moveLogins(to next: TransferRequest) {
        let place = Origin(next.url)
        logins.move(to: place, through: place.flatMap { rules.session.proxies.httpProxy(for: $0) })
    }

    /// Whether the address that a redirect led to has brought nothing twice in a row: the first one may lead to another by now.
    private mutating func leadsNowhere() -> Bool {
        guard request.url != start.url, isRepeatableFromStart else { return false }
        fruitlessAttempts = hasProgressed ? 0 : fruitlessAttempts + 1
        guard fruitlessAttempts > 1 else { return false }
        fruitlessAttempts = 0
        return true
    }

    var isRepeatableFromStart: Bool {
        guard case .none = start.body else { return false }
        return [.get, .head].contains(start.method)
    }

    mutating func returnToStart() {
        redirects = 0
        turn(to: start)
    }

    // MARK: The body that is sent

    /// The engine is about to take the request's body.
    mutating func bodyBegins(length: Int64?) {
        progress.sent = upload?.bodyStart ?? 0
        progress.expectedToSend = upload?.length ?? length
    }

    /// So many bytes of the body have been given to the engine.
    mutating func provided(_ count: Int, now: Int64) {
        self.now = now
        noteActivity()
        progress.sent += Int64(count)
        publishProgress()
    }

    /// libcurl begins the body anew, on a connection that has died, also where some of it had arrived.
    mutating func rewinds() {
        attempt.sentBeforeRewind = sentEnd
        progress.sent = upload?.bodyStart ?? 0
    }

    /// How far into the whole body the present request has come.
    var sentEnd: Int64 { max(attempt.sentBeforeRewind, progress.sent) }

    // MARK: What is told of it

    /// A lock and a look at the readers, not for every piece of a fast transfer.
    mutating func publishProgress() {
        guard publishedAt <= now - TransferMachine.progressInterval else {
            // What follows may be a long silence: the last word before it is said in time.
            hasUnpublishedProgress = true
            return
        }
        publishedAt = now
        hasUnpublishedProgress = false
        effects.append(.publishProgress)
    }

    /// What was measured of an attempt at `request`.
    mutating func note(_ facts: TransferFacts, of request: TransferRequest) {
        let transaction = TransactionMetrics(
            method: request.method.rawValue, address: request.url, statusCode: attempt.head?.statusCode,
            fetchStart: attempt.fetchStart, network: attempt.network, facts: facts)
        if metrics.transactions.count >= TransferMetrics.maximumTransactions { metrics.transactions.removeFirst() }
        metrics.transactions.append(transaction)
    }
}
