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
            TaskRun.isOfNetwork(error.code),
            let gate = loop.gate, let endpoint = settings.endpoint(for: origin)
        else { return false }
        gateOrigin = origin
        let hasNoRoute = error.code == .notConnected && error.underlying == nil
        guard let cause = gate.failed(task.id, at: origin, endpoint: endpoint, hasNoRoute: hasNoRoute) else { return false }
        wait(for: cause, after: error)
        goOn(with: request, .endedUntilConnected)
        return true
    }

    private var waitsForConnectivity: Bool {
        request.options.waitsForConnectivity ?? settings.configuration.waitsForConnectivity
    }

    private static func isOfNetwork(_ code: HTTPSessionError.Code) -> Bool {
        [.notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .timedOut, .proxyFailed].contains(code)
    }

    private func wait(for cause: Cause, after error: HTTPSessionError?) {
        waitsSince = loop.now
        task.become(.waitingForConnectivity)
        loop.outbox.announce(
            .waitingForConnectivity(task, HTTPSessionError(.notConnected, "\(cause)", context: task.context, underlying: error)))
    }

    /// The server's probe says that the network is gone.
    func networkIsGone(_ cause: Cause) {
        guard isBackingOff, waitsSince == nil else { return }
        wait(for: cause, after: nil)
        handle(.networkIsGone)
    }

    /// The server's probe gets through, or meets the server itself.
    func networkIsBack(delay: Int64) {
        guard waitsSince != nil else { return }
        wasReleased = true
        if delay > 0 { task.become(.backingOff) }
        handle(.networkIsBack(delay: loop.stepped(delay)))
    }

    /// It goes on, or ends.
    func leaveGate() {
        if let since = waitsSince { metrics.timeWaitingForConnectivity += .nanoseconds(loop.now - since) }
        waitsSince = nil
        guard let gateOrigin else { return }
        self.gateOrigin = nil
        loop.gate?.forget(task.id, at: gateOrigin)
    }

    /// The present connection; `nil` where there is none, or it is not one between two addresses.
    var connection: TransferWays.Connection? {
        guard let since = exchange.connectedAt, let ends = transfer?.ends, let local = IPAddress(ends.local),
            let remote = IPAddress(ends.remote)
        else { return nil }
        return TransferWays.Connection(local: local, remote: remote, since: since)
    }

    /// The connection carries nothing any more: what it was for is done on another, or ends.
    func connectionIsGone(_ reason: String) {
        abandonTransfer()
        stopped(by: HTTPSessionError(.connectionLost, reason))
    }

    /// The attempt has been broken off: what follows is known from its head, or nothing is.
    func stopped(by error: HTTPSessionError) {
        guard exchange.next != nil else { return failed(with: error) }
        exchange.failure = error
        conclude()
    }
}
