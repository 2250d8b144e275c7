internal import EventLoop
internal import FoundationEssentials
internal import Reachability

/// How the task waits for connectivity and reacts to changes of the network.
extension TaskMachine {
    // MARK: Waiting

    /// Whether the current request waits for connectivity. A handler may have replaced the task's request.
    private var waitsForConnectivity: Bool {
        request.options.waitsForConnectivity ?? rules.session.configuration.waitsForConnectivity
    }

    /// Whether an outage may explain the failure. If so, the task waits for connectivity and no retry is counted.
    func mayBeOutage(_ error: HTTPSessionError, _ failure: RetryMachine.Failure) -> Bool {
        // A failure directly after an outage counts as a retry. Otherwise the task would repeat at the rate of the probes.
        !hasProceededAfterOutage && waitsForConnectivity && failure.isRepeatable && !failure.isDeadConnection
            && TaskMachine.isNetworkError(error.code) && (rules.retryPolicy.maximumRetries != 0 || !failure.hasSent)
    }

    private static func isNetworkError(_ code: HTTPSessionError.Code) -> Bool {
        [.notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .timedOut, .proxyFailed].contains(code)
    }

    /// The outage tracker has explained why the attempt failed.
    mutating func failureExplained(_ answer: FailureExplanation) {
        guard let (error, failure) = attempt.pendingFailure else { return }
        attempt.pendingFailure = nil
        switch answer {
        case .unavailable: break
        case .unknown:
            isTrackedForOutage = true
            if retriesBeforeOutage == nil { retriesBeforeOutage = retries }
        case .missing(let cause):
            isTrackedForOutage = true
            beginConnectivityWait(for: cause, after: error)
            return proceed(with: nextAttempt(), .attemptEndedOffline)
        }
        retryOrEnd(after: error, failure)
    }

    /// Whether the attempt that is about to begin may wait instead, together with tasks that failed for a missing link or route
    /// to the same server.
    var mayJoinOutage: Bool { !hasProceededAfterOutage && waitsForConnectivity }

    mutating func joinedOutage(_ cause: Cause) {
        isTrackedForOutage = true
        beginConnectivityWait(for: cause, after: nil)
        proceed(with: request, .attemptEndedOffline)
    }

    /// Makes the task wait for an allowed network if the current one is not. - Returns: whether the task waits.
    mutating func waitForAllowedNetwork(after error: HTTPSessionError, hasBegun: Bool) -> Bool {
        guard error.code == .networkNotAllowed, waitsForConnectivity else { return false }
        leaveOutage()
        var connectivityWait = ConnectivityWait(since: now, reason: error, isForAllowedNetwork: true)
        // Only the network of the route to this address is excluded, not every present network.
        if hasBegun {
            connectivityWait.nextCheckAt = now + networkCheckInterval
            networkCheckInterval = min(2 * networkCheckInterval, 60_000_000_000)
        }
        startWaiting(connectivityWait)
        proceed(with: request, .attemptEndedOffline)
        return true
    }

    private mutating func beginConnectivityWait(for cause: Cause, after error: HTTPSessionError?) {
        // Retries that failed for the same cause, before it was known, do not count.
        if let retriesBeforeOutage { retries = retriesBeforeOutage }
        retriesBeforeOutage = nil
        var reason = HTTPSessionError(.notConnected, "\(cause)", context: .init(of: rules.request), underlying: error)
        reason.cause = cause
        startWaiting(ConnectivityWait(since: now, reason: reason))
    }

    private mutating func startWaiting(_ connectivityWait: ConnectivityWait) {
        self.connectivityWait = connectivityWait
        noteReceived()
        show(.waitingForConnectivity)
        issue(.report(.waitingForConnectivity(connectivityWait.reason)))
    }

    /// The error of a task that has waited for the longest time that its configuration allows.
    var connectivityTimeoutError: HTTPSessionError? {
        guard let reason = connectivityWait?.reason else { return nil }
        let limit = Duration.nanoseconds(rules.limits.connectivityTimeout)
        var error = HTTPSessionError(
            reason.code, "\(reason.reason); waited \(limit) for a network", context: reason.context, underlying: reason.underlying
        )
        error.cause = reason.cause
        return error
    }

    /// Ends the wait for connectivity and adds its duration to the metrics.
    mutating func stopWaiting() {
        guard let connectivityWait else { return }
        metrics.timeWaitingForConnectivity += .nanoseconds(now - connectivityWait.since)
        self.connectivityWait = nil
    }

    /// Leaves the outage: a response has arrived, or none is expected. Until then an outage may explain the attempts' failures,
    /// however short they are.
    mutating func leaveOutage() {
        stopWaiting()
        retriesBeforeOutage = nil
        guard isTrackedForOutage else { return }
        isTrackedForOutage = false
        effects.append(.leaveOutage)
    }

    // MARK: The network's changes

    /// The network is missing: the task waits for it instead of backing off.
    mutating func networkLost(_ cause: Cause) {
        guard isBackingOff, connectivityWait == nil else { return }
        beginConnectivityWait(for: cause, after: nil)
        advance(.networkLost)
    }

    mutating func networkRestored(delay: Int64) {
        guard connectivityWait != nil else {
            // The attempts failed for another reason.
            retriesBeforeOutage = nil
            return
        }
        hasProceededAfterOutage = true
        if delay > 0 { show(.backingOff) }
        advance(.networkRestored(delay: RetryStep.stepped(delay, now: now)))
    }

    mutating func networkChanged() {
        if connectivityWait?.isForAllowedNetwork == true { effects.append(.checkAllowedNetworks) }
    }

    mutating func networkAllowed() {
        if connectivityWait?.isForAllowedNetwork == true { networkRestored(delay: 0) }
    }

    // MARK: The connection

    /// Whether an attempt without a route should end. The task must be able to wait, and no probe may have reached the server
    /// yet. TCP decides about other attempts.
    var mayWaitForRoute: Bool { isRunning && waitsForConnectivity && !hasProceededAfterOutage }

    mutating func connectionSuspect(_ reason: String) {
        guard attempt.isConnected else {
            // No request was sent and no attempt failed, so the connection is made again and no retry is counted.
            effects.append(.abandonSilently)
            noteReceived()
            // The loss is newer than the probe that ended the task's wait.
            hasProceededAfterOutage = false
            return proceed(with: request)
        }
        if rules.retryPolicy.maximumRetries != 0, mayRepeat { connectionDead(reason, nil) }
    }

    mutating func connectionDead(_ reason: String, _ cause: Cause?) {
        // The kernel's routes are newer than the probe that ended the task's wait.
        hasProceededAfterOutage = false
        if attempt.isConnected { issue(.recordMetrics(of: request)) }
        effects.append(.abandonSilently)
        noteReceived()
        var error = HTTPSessionError(attempt.isConnected ? .connectionLost : .notConnected, reason)
        if !attempt.isConnected { error.cause = cause }
        attemptStopped(by: error)
    }
}
