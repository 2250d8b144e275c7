internal import EventLoop
internal import Foundation
internal import Reachability

/// A task whose network goes and comes.
extension TaskRun {
    /// Waits for the network instead of counting a try, where its absence explains the failure.
    ///
    /// - Returns: whether the task waits.
    func holds(after error: HTTPSessionError, _ failure: RetryMachine.Failure) -> Bool {
        // What fails as soon as it is let go counts as a try: else it would go round at the speed of the probes.
        guard !wasReleased, waitsForConnectivity, failure.isRepeatable, !failure.isDeadConnection,
            TaskRun.isOfNetwork(error.code), job.retryPolicy.maximumRetries != 0 || !failure.hasSent,
            let gate = loop.gate, let endpoint = settings.endpoint(for: origin)
        else { return false }
        enterGate()
        let loss = loop.loss(of: exchange.remotes)
        let hasNoRoute =
            loss != nil || (error.code == .notConnected && error.underlying == nil)
            || (exchange.remotes.isEmpty && loop.ways.areLost)
        guard let cause = gate.failed(task.id, at: origin, endpoint: endpoint, hasNoRoute: hasNoRoute, loss: loss) else {
            if uncounted == nil { uncounted = retries }
            return false
        }
        wait(for: cause, after: error)
        goOn(with: nextAttempt(), .endedUntilConnected)
        return true
    }

    /// Waits with others, whose attempts have failed for what is missing on the way to the same server yet.
    ///
    /// - Returns: whether the task waits.
    func waitsWithOthers() -> Bool {
        guard !wasReleased, waitsForConnectivity, let cause = loop.gate?.join(task.id, at: origin) else { return false }
        enterGate()
        wait(for: cause, after: nil)
        goOn(with: request, .endedUntilConnected)
        return true
    }

    /// Waits for another network than the present one, which the request may not use.
    ///
    /// - Returns: whether the task waits.
    func holds(untilAllowed error: HTTPSessionError) -> Bool {
        guard error.code == .networkNotAllowed, waitsForConnectivity else { return false }
        leaveGate()
        waitsForAllowed = true
        wait(error)
        // It is the way to this address that may not be used, not every network that there is.
        if exchange.hasBegun {
            looksAgainAt = loop.now + looksAgainAfter
            looksAgainAfter = min(2 * looksAgainAfter, 60_000_000_000)
            loop.wakes(at: looksAgainAt)
        }
        goOn(with: request, .endedUntilConnected)
        return true
    }

    /// The path is another one.
    func networkMayBeAllowed() {
        guard waitsForAllowed, waitsSince != nil, settings.path?.currentPath?.status == .satisfied,
            (try? settings.checkNetwork(for: request, to: origin)) != nil
        else { return }
        networkIsBack(delay: 0)
    }

    private var waitsForConnectivity: Bool {
        request.options.waitsForConnectivity ?? settings.configuration.waitsForConnectivity
    }

    /// Whether an attempt that has no way is better given up: the task waits then, and the server's probe has not found a way already. What
    /// has nobody to wait with is left to TCP.
    var mayWaitForWay: Bool {
        isRunning && waitsForConnectivity && !wasReleased && loop.gate?.hasRoom(for: origin) == true
    }

    private static func isOfNetwork(_ code: HTTPSessionError.Code) -> Bool {
        [.notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .timedOut, .proxyFailed].contains(code)
    }

    private func wait(for cause: Cause, after error: HTTPSessionError?) {
        // Nor do the tries count that had failed of the same before it was known.
        if let uncounted { retries = uncounted }
        uncounted = nil
        var reason = HTTPSessionError(.notConnected, "\(cause)", context: task.context, underlying: error)
        reason.cause = cause
        wait(reason)
    }

    private func wait(_ reason: HTTPSessionError) {
        waitsSince = loop.now
        task.become(.waitingForConnectivity)
        loop.outbox.announce(.waitingForConnectivity(task, reason))
    }

    /// The server's probe says that the network is gone.
    func networkIsGone(_ cause: Cause) {
        guard isBackingOff, waitsSince == nil else { return }
        wait(for: cause, after: nil)
        handle(.networkIsGone)
    }

    /// The server's probe gets through, or meets the server itself.
    func networkIsBack(delay: Int64) {
        guard waitsSince != nil else {
            // Its tries have failed of something else.
            uncounted = nil
            return
        }
        wasReleased = true
        if delay > 0 { task.become(.backingOff) }
        handle(.networkIsBack(delay: loop.stepped(delay)))
    }

    /// It goes on.
    func stopWaiting() {
        if let since = waitsSince { metrics.timeWaitingForConnectivity += .nanoseconds(loop.now - since) }
        waitsSince = nil
        waitsForAllowed = false
        looksAgainAt = nil
    }

    private func enterGate() {
        if let gateOrigin, gateOrigin != origin { loop.gate?.forget(task.id, at: gateOrigin) }
        gateOrigin = origin
    }

    /// It has had an answer, or asks for none: until then the gate may learn why its attempts fail, however short they are.
    func leaveGate() {
        stopWaiting()
        uncounted = nil
        guard let gateOrigin else { return }
        self.gateOrigin = nil
        loop.gate?.forget(task.id, at: gateOrigin)
    }

    /// The present connection, also while TLS is negotiated on it; `nil` where there is none, or it is not one between two addresses.
    var connection: TransferWays.Connection? {
        guard let transfer, let ends = transfer.ends, let local = IPAddress(ends.local)?.unmapped,
            let remote = IPAddress(ends.remote)?.unmapped
        else { return nil }
        let chosen = transfer.tries.first { $0.remote == remote }?.chosen
        return TransferWays.Connection(local: local, remote: remote, chosen: chosen)
    }

    /// The attempt that is without a connection yet, where it has to have one from here to elsewhere.
    var connectionAttempt: TransferWays.Attempt? {
        let staysHere =
            origin.isLoopback || settings.configuration.unixSocketPath != nil || settings.hasLoopbackProxy(before: origin)
        guard !exchange.isConnected, !staysHere, let transfer else { return nil }
        return TransferWays.Attempt(since: transfer.started, tries: transfer.tries)
    }

    /// Of a transfer that has failed or is about to be given up.
    func noteRemotes() { exchange.remotes = connection.map { [$0.remote] } ?? transfer?.tries.map(\.remote) ?? [] }

    /// What can be done again is, over another way; the rest is left to TCP.
    func connectionIsDoubtful(_ reason: String) {
        guard exchange.isConnected else {
            // Nothing has been sent, and nothing has failed: it looks for its server anew, and that is no try.
            abandonSilently()
            // A new loss: what the probe had found before it holds no longer.
            wasReleased = false
            return goOn(with: request)
        }
        if job.retryPolicy.maximumRetries != 0, failure(.connectionLost).isRepeatable { connectionIsGone(reason) }
    }

    /// The connection carries nothing any more: what it was for is done on another, or ends.
    func connectionIsGone(_ reason: String) {
        // The kernel's word is newer than the probe's that let it go.
        wasReleased = false
        abandonSilently()
        var error = HTTPSessionError(exchange.isConnected ? .connectionLost : .notConnected, reason)
        if !exchange.isConnected { error.cause = settings.path?.currentPath?.cause }
        stopped(by: error)
    }

    /// What was measured of an attempt that is about to be given up.
    func noteAttempt() {
        guard let transfer else { return }
        var facts = transfer.facts
        facts.total = max(facts.total, loop.now - transfer.started)
        note(facts)
    }

    private func abandonSilently() {
        if exchange.isConnected { noteAttempt() }
        noteRemotes()
        // Where another way is, the end is told to the server.
        if loop.isLost(exchange.remotes) { transfer?.silence() }
        abandonTransfer()
    }

    /// The attempt has been broken off: what follows is known from its head, or nothing is.
    func stopped(by error: HTTPSessionError) {
        guard exchange.next != nil else { return failed(with: error) }
        exchange.failure = error
        conclude()
    }

    // MARK: The host's name

    var isLookingUp: Bool { exchange.hasBegun && !exchange.isConnected && !exchange.hasLookedUp }

    func noteLookedUp() { loop.queue.lookedUp(task.id, to: host, now: loop.now) }

    /// The attempt's time is over: where it went by with a look-up, it is over for all that have waited for that.
    func noteUnansweredName() {
        if isLookingUp, host.needsLookup { loop.nameIsUnanswered(host) }
    }

    /// Asked once: somebody else may have had an answer meanwhile.
    func lacksName() -> Bool {
        defer { isNameUnanswered = false }
        return isNameUnanswered && loop.queue.looksUp(task.id, host)
    }

    func failWithoutName() {
        failed(with: HTTPSessionError(.timedOut, "the host's name was looked up for an earlier task, without an answer"))
    }
}
