internal import EventLoop
internal import FoundationEssentials
internal import Reachability

/// A task whose network goes and comes.
extension TransferMachine {
    // MARK: Waiting

    /// Of the present request: a handler may have put another one in the task's place.
    private var waitsForConnectivity: Bool {
        request.options.waitsForConnectivity ?? rules.session.configuration.waitsForConnectivity
    }

    /// Whether the network's absence may explain the failure: then the task waits instead of counting a try.
    func mayBeOfNetwork(_ error: HTTPSessionError, _ failure: RetryMachine.Failure) -> Bool {
        // What fails as soon as it is let go counts as a try: else it would go round at the speed of the probes.
        !wasReleased && waitsForConnectivity && failure.isRepeatable && !failure.isDeadConnection
            && TransferMachine.isOfNetwork(error.code) && (rules.retryPolicy.maximumRetries != 0 || !failure.hasSent)
    }

    private static func isOfNetwork(_ code: HTTPSessionError.Code) -> Bool {
        [.notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .timedOut, .proxyFailed].contains(code)
    }

    /// The gate has said why the attempt failed.
    mutating func explained(_ answer: GateAnswer) {
        guard let (error, failure) = attempt.unexplained else { return }
        attempt.unexplained = nil
        switch answer {
        case .notAsked: break
        case .unknown:
            isAtGate = true
            if uncounted == nil { uncounted = retries }
        case .missing(let cause):
            isAtGate = true
            beginWait(for: cause, after: error)
            return goOn(with: nextAttempt(), .endedUntilConnected)
        }
        goOn(after: error, failure)
    }

    /// Whether the attempt that is about to begin may wait with others instead, whose attempts have failed for what is missing on the way
    /// to the same server yet.
    var mayJoin: Bool { !wasReleased && waitsForConnectivity }

    mutating func joined(_ cause: Cause) {
        isAtGate = true
        beginWait(for: cause, after: nil)
        goOn(with: request, .endedUntilConnected)
    }

    /// Waits for another network than the present one, which the request may not use.
    ///
    /// - Returns: whether the task waits.
    mutating func holds(untilAllowed error: HTTPSessionError, hasBegun: Bool) -> Bool {
        guard error.code == .networkNotAllowed, waitsForConnectivity else { return false }
        leaveGate()
        var wait = Wait(since: now, isForAllowed: true)
        // It is the way to this address that may not be used, not every network that there is.
        if hasBegun {
            wait.looksAgainAt = now + looksAgainAfter
            looksAgainAfter = min(2 * looksAgainAfter, 60_000_000_000)
        }
        begin(wait, error)
        goOn(with: request, .endedUntilConnected)
        return true
    }

    private mutating func beginWait(for cause: Cause, after error: HTTPSessionError?) {
        // Nor do the tries count that had failed of the same before it was known.
        if let uncounted { retries = uncounted }
        uncounted = nil
        var reason = HTTPSessionError(.notConnected, "\(cause)", context: .init(of: rules.request), underlying: error)
        reason.cause = cause
        begin(Wait(since: now), reason)
    }

    private mutating func begin(_ wait: Wait, _ reason: HTTPSessionError) {
        self.wait = wait
        stand(.waitingForConnectivity)
        order(.tell(.waitingForConnectivity(reason)))
    }

    /// It goes on.
    mutating func stopWaiting() {
        guard let wait else { return }
        metrics.timeWaitingForConnectivity += .nanoseconds(now - wait.since)
        self.wait = nil
    }

    /// It has had an answer, or asks for none: until then the gate may learn why its attempts fail, however short they are.
    mutating func leaveGate() {
        stopWaiting()
        uncounted = nil
        guard isAtGate else { return }
        isAtGate = false
        effects.append(.leaveGate)
    }

    // MARK: The network's changes

    /// What the task backs off from is the network's absence.
    mutating func networkIsGone(_ cause: Cause) {
        guard isBackingOff, wait == nil else { return }
        beginWait(for: cause, after: nil)
        live(.networkIsGone)
    }

    mutating func networkIsBack(delay: Int64) {
        guard wait != nil else {
            // Its tries have failed of something else.
            uncounted = nil
            return
        }
        wasReleased = true
        if delay > 0 { stand(.backingOff) }
        live(.networkIsBack(delay: RetryStep.stepped(delay, now: now)))
    }

    mutating func networkChanged() {
        if wait?.isForAllowed == true { effects.append(.lookAtNetwork) }
    }

    mutating func networkIsAllowed() {
        if wait?.isForAllowed == true { networkIsBack(delay: 0) }
    }

    // MARK: The connection

    /// Whether an attempt that has no way is better given up: the task waits then, and the server's probe has not found a way already. What
    /// has nobody to wait with is left to TCP.
    var mayWaitForWay: Bool { isRunning && waitsForConnectivity && !wasReleased }

    mutating func connectionIsDoubtful(_ reason: String) {
        guard attempt.isConnected else {
            // Nothing has been sent, and nothing has failed: it looks for its server anew, and that is no try.
            effects.append(.abandonSilently)
            // A new loss: what the probe had found before it holds no longer.
            wasReleased = false
            return goOn(with: request)
        }
        if rules.retryPolicy.maximumRetries != 0, mayRepeat { connectionIsGone(reason, nil) }
    }

    mutating func connectionIsGone(_ reason: String, _ cause: Cause?) {
        // The kernel's word is newer than the probe's that let it go.
        wasReleased = false
        if attempt.isConnected { order(.measure(request)) }
        effects.append(.abandonSilently)
        var error = HTTPSessionError(attempt.isConnected ? .connectionLost : .notConnected, reason)
        if !attempt.isConnected { error.cause = cause }
        stopped(by: error)
    }
}
