internal import EventLoop
internal import FoundationEssentials
internal import Reachability

/// The events of the task's transfer, as the engine reports them.
extension TaskDriver: TransferReceiver {
    func transferLookedUp() {
        send(.nameResolved)
        loop.scheduleAttemptJudgment(transfer?.connectAttempts ?? [])
    }

    func transferRefusal(from local: String) -> HTTPSessionError? { settings.refusal(of: machine.request, from: local) }

    func transferMayReuse(from local: String, to remote: String) -> Bool { loop.followsRoute(from: local, to: remote) }

    func transferMayRepeat() -> Bool { machine.mayRepeat }

    func transferConnected() {
        // Reported before the attempt ends, because the queue shares connections of HTTP/2.
        if transfer?.usesHTTP2 == true { loop.queue.noteHTTP2(host) }
        send(.connected)
    }

    func transferReceived(challenge: ResponseHead) { storeCookies(of: challenge) }

    func transferReceived(interim: ResponseHead) {
        storeCookies(of: interim)
        send(.receivedInterim(interim))
        loop.outbox.detail(.receivedInterimResponse(task, interim))
    }

    func transferReceived(head: ResponseHead) -> Intake {
        loop.answered(task.id, at: machine.origin)
        storeCookies(of: head)
        loop.outbox.detail(.receivedResponse(task, head))
        let intake = machine.receivedHead(head, at: loop.transport.date(), now: loop.now)
        perform()
        loop.scheduleWake(at: machine.deadline)
        return intake
    }

    func transferReceived(bytes: UnsafeRawBufferPointer) -> Intake {
        switch machine.destination(of: bytes.count, now: loop.now, arrived: { transfer?.receivedBodyBytes }) {
        case .undecided: return .pause
        case .memory: return machine.buffer(bytes)
        case .refused(let error): return .abort(error)
        case .sink: break
        }
        guard let sink else { return .taken }
        let intake = sink.take(bytes)
        switch intake {
        case .taken:
            machine.sinkAccepted(bytes.count)
            perform()
            loop.scheduleWake(at: deadline)
        case .pause:
            waitsForSink = true
            recordWait()
            machine.receiverBecameFull()
        case .abort: break
        }
        return intake
    }

    func transferProvides(into buffer: UnsafeMutableRawBufferPointer) -> Provision {
        guard let source else { return .end }
        let provision = source.provide(into: buffer)
        switch provision {
        case .bytes(let count):
            machine.bodyProvided(count, now: loop.now)
            perform()
            loop.scheduleWake(at: machine.deadline)
        case .pause:
            waitsForSource = true
            recordWait()
        case .end, .abort: break
        }
        return provision
    }

    func transferRewinds() -> Bool {
        source?.rewind()
        machine.bodyRewound()
        return true
    }

    func transferFinished(_ error: HTTPSessionError?, facts: TransferFacts) {
        if error != nil { recordRemotes() }
        transferEnded()
        recordProtocol(facts)
        if let reports = loop.transferReports, let outcome = TransferReports.outcome(of: error, facts) {
            reports.record(outcome, at: machine.origin, facts, now: loop.now)
        }
        machine.transferFinished(facts, error.map(failure), now: loop.now)
        perform()
        loop.scheduleWake(at: machine.deadline)
    }

    private func recordProtocol(_ facts: TransferFacts) {
        guard facts.networkProtocol != nil else { return }
        // Updated with each exchange, because several servers may share one name, and may change.
        loop.queue.setMultiplexed(host, facts.isMultiplexed)
        if facts.isMultiplexed { loop.engine.allowMultiplexing() }
    }

    private func failure(_ error: HTTPSessionError) -> TransferFailure {
        var challenge: ServerTrustChallenge?
        if case .undecided(let question) = trust?.verdict { challenge = question }
        var missingPath: TransferFailure.MissingPath?
        if let path = settings.path?.currentPath, path.status == .unsatisfied, !machine.origin.isLoopback,
            !loop.hasRoute(to: remotes)
        {
            missingPath = .init(cause: path.cause)
        }
        return TransferFailure(
            explained(error), challenge: challenge, authorities: trust?.requestedAuthorities,
            isHandshakeRefusal: trust?.wasRefused == true,
            missingPath: missingPath)
    }

    // MARK: Causes

    /// Returns the error with the cause that a probe of the server would find.
    private func explained(_ error: HTTPSessionError) -> HTTPSessionError {
        guard error.cause == nil else { return error }
        var error = error
        switch error.code {
        case .notConnected: error.cause = loop.loss(of: remotes)
        case .timedOut: error.cause = handshakeCause(isTimedOut: true)
        default: error.cause = handshakeCause(isTimedOut: false, systemError: error.context.systemError)
        }
        return error
    }

    /// The cause of a failed handshake with the server; `nil` if TLS is not the reason.
    private func handshakeCause(isTimedOut: Bool, systemError: Int32? = nil) -> Cause? {
        let usesProxy = settings.rules.proxies.proxyURL(for: machine.origin) != nil
        let address = usesProxy ? nil : remotes.last.map(loop.routeTracker.text)
        return trust?.cause(
            at: address, isTimedOut: isTimedOut, systemError: systemError,
            now: Int64(loop.transport.date().timeIntervalSince1970))
    }

    /// The cause for which the time of the attempt passes: the server's TLS or HTTP is silent, although it has acknowledged what was sent.
    private var causeOfSilence: Cause? {
        guard let transfer, transfer.isAcknowledged else { return nil }
        guard machine.attempt.isConnected else {
            recordRemotes()
            return handshakeCause(isTimedOut: true)
        }
        guard machine.isRequestSent else { return nil }
        return CauseOfResponse.silence(
            after: machine.attempt.head, bodyBytes: Int(clamping: transfer.receivedBodyBytes), from: machine.request.url)
    }

    // MARK: Called by the loop

    func sourceReady() {
        waitsForSource = false
        recordWait()
        transfer?.resumeSending()
    }

    func sinkReady() {
        waitsForSink = false
        recordWait()
        send(.receiverReady)
        receive()
    }

    /// Handles an answer of the worker.
    func answered(_ event: TaskMachine.Event) {
        fileWork -= 1
        send(event)
    }

    /// Handles the worker's result of the body.
    func answered(_ body: Result<ReceivedBody, HTTPSessionError>) {
        fileWork -= 1
        delivered(body)
    }

    /// Adds the waits of the task.
    func addWaits(to idleness: inout SessionIdleness) {
        let waitsForFile = (waitsForSink && sink is FileSink) || (waitsForSource && !segments.haveStream)
        if fileWork > 0 || waitsForFile { idleness.usesFiles = true }
        if machine.isHandlerAsked { idleness.asksHandlers = true }
        let waitsForOthers = waitsForSink || waitsForSource || machine.isHandlerAsked || transfer?.waitsForOthers == true
        switch machine.visibleState {
        case .running, .backingOff:
            if let deadline, !waitsForOthers { idleness.deadline = min(idleness.deadline, deadline) }
        case .waiting, .suspended, .waitingForConnectivity: break
        }
    }

    /// Handles the ``deadline``, which has passed.
    func timePassed() {
        sink?.flush(ifDueAt: loop.now)
        machine.causeOfSilence = machine.stateMachine.deadline.map { $0 <= loop.now } == true ? causeOfSilence : nil
        send(.deadlineReached)
    }

    func answered(_ number: Int, _ answer: HandlerAnswer) {
        // The unused parts of the answer are released on the delivery queue, because they may be the user's objects.
        loop.release(answer)
        send(.handlerAnswered(question: number, answer))
    }

    /// Ends the request because its remaining body is not needed.
    func abortRequest() {
        if transfer != nil { send(.requestStopDue) }
    }

    /// The present connection, also during its TLS handshake; `nil` if there is none, or if it is not between two IP addresses.
    var connection: RouteTracker.Connection? {
        guard let transfer, let ends = transfer.ends, let local = IPAddress(ends.local)?.unmapped,
            let remote = IPAddress(ends.remote)?.unmapped
        else { return nil }
        let chosen = transfer.connectAttempts.first { $0.remote == remote }?.chosen
        return RouteTracker.Connection(local: local, remote: remote, chosen: chosen)
    }

    /// The attempt that has no connection yet and needs one to another machine; `nil` otherwise.
    var connectionAttempt: RouteTracker.Attempt? {
        let origin = machine.origin
        let isLocal =
            origin.isLoopback || settings.configuration.unixSocketPath != nil
            || settings.rules.hasLoopbackProxy(before: origin)
        guard !machine.attempt.isConnected, !isLocal, let transfer else { return nil }
        return RouteTracker.Attempt(since: transfer.started, connectAttempts: transfer.connectAttempts)
    }

    /// Whether an attempt without a route is to be ended, because the task may wait for a route.
    var mayWaitForRoute: Bool { machine.mayWaitForRoute && loop.serverWatches?.hasRoom(for: machine.origin) == true }
}
