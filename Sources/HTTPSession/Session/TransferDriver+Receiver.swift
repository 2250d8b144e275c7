internal import EventLoop
internal import FoundationEssentials
internal import Reachability

/// What libcurl tells of the task's transfer.
extension TransferDriver: TransferReceiver {
    func transferLookedUp() {
        send(.lookedUp)
        loop.judgesAttempt(transfer?.tries ?? [])
    }

    func transferMayGo(from local: String) -> HTTPSessionError? { settings.refusal(of: machine.request, from: local) }

    func transferMayReuse(from local: String, to remote: String) -> Bool { loop.leads(from: local, to: remote) }

    func transferMayRepeat() -> Bool { machine.mayRepeat }

    func transferConnected() {
        // Before it has ended: what becomes of a connection depends on it.
        if transfer?.usesHTTP2 == true { loop.queue.speaksHTTP2(host) }
        send(.connected)
    }

    func transferReceived(challenge: ResponseHead) { loop.storeCookies(of: challenge, isSecure: isTrustedWithCookies) }

    func transferReceived(interim: ResponseHead) {
        loop.storeCookies(of: interim, isSecure: isTrustedWithCookies)
        send(.interim(interim))
        loop.outbox.detail(.receivedInterimResponse(task, interim))
    }

    func transferReceived(head: ResponseHead) -> Intake {
        loop.answered(task.id, at: machine.origin)
        loop.storeCookies(of: head, isSecure: isTrustedWithCookies)
        loop.outbox.detail(.receivedResponse(task, head))
        let intake = machine.received(head, at: Date(), now: loop.now)
        perform()
        loop.wakes(at: machine.deadline)
        return intake
    }

    func transferReceived(bytes: UnsafeRawBufferPointer) -> Intake {
        switch machine.place(of: bytes.count, now: loop.now, arrived: { transfer?.receivedBodyBytes }) {
        case .nowhere: return .pause
        case .memory: return machine.hold(bytes)
        case .refused(let error): return .abort(error)
        case .sink: break
        }
        guard let sink else { return .taken }
        let intake = sink.take(bytes)
        switch intake {
        case .taken:
            machine.took(bytes.count)
            perform()
            loop.wakes(at: deadline)
        case .pause: machine.receiverIsFull()
        case .abort: break
        }
        return intake
    }

    func transferProvides(into buffer: UnsafeMutableRawBufferPointer) -> Provision {
        guard let source else { return .end }
        let provision = source.provide(into: buffer)
        if case .bytes(let count) = provision {
            machine.provided(count, now: loop.now)
            perform()
            loop.wakes(at: machine.deadline)
        }
        return provision
    }

    func transferRewinds() -> Bool {
        source?.rewind()
        machine.rewinds()
        return true
    }

    func transferFinished(_ error: HTTPSessionError?, facts: TransferFacts) {
        if error != nil { noteRemotes() }
        transferIsOver()
        noteProtocol(facts)
        machine.finished(facts, error.map(failure), now: loop.now)
        perform()
        loop.wakes(at: machine.deadline)
    }

    private func noteProtocol(_ facts: TransferFacts) {
        guard facts.networkProtocol != nil else { return }
        // Behind one name there may be several servers, and another one tomorrow.
        loop.queue.multiplexes(host, facts.isMultiplexed)
        if facts.isMultiplexed { loop.engine.multiplexes() }
    }

    private func failure(_ error: HTTPSessionError) -> TransferFailure {
        var challenge: ServerTrustChallenge?
        if case .undecided(let question) = trust?.verdict { challenge = question }
        var lack: TransferFailure.Lack?
        if let path = settings.path?.currentPath, path.status == .unsatisfied, !machine.origin.isLoopback,
            !loop.hasRoute(to: remotes)
        {
            lack = .init(cause: path.cause)
        }
        return TransferFailure(
            error, challenge: challenge, authorities: trust?.requestedAuthorities, wasRefused: trust?.wasRefused == true,
            lack: lack)
    }

    // MARK: What the loop asks and tells

    func sourceReady() { transfer?.resumeSending() }

    func sinkReady() {
        send(.receiverReady)
        receive()
    }

    /// The ``deadline`` has come.
    func timePassed() {
        sink?.flush(ifDueAt: loop.now)
        send(.time)
    }

    func answered(_ number: Int, _ answer: HandlerAnswer) {
        // What of it is not taken over is let go of where the user's objects may end.
        loop.letGo(answer)
        send(.answered(question: number, answer))
    }

    func breakOff() {
        if transfer != nil { send(.breakOff) }
    }

    /// Whether who answers may change cookies that are for https alone (RFC 6265bis section 5.7).
    private var isTrustedWithCookies: Bool {
        machine.origin.scheme == "https" || transfer?.isRaised == true || machine.origin.isLoopback
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
        let origin = machine.origin
        let staysHere =
            origin.isLoopback || settings.configuration.unixSocketPath != nil
            || settings.rules.hasLoopbackProxy(before: origin)
        guard !machine.attempt.isConnected, !staysHere, let transfer else { return nil }
        return TransferWays.Attempt(since: transfer.started, tries: transfer.tries)
    }

    /// Whether an attempt that has no way is better given up.
    var mayWaitForWay: Bool { machine.mayWaitForWay && loop.gate?.hasRoom(for: machine.origin) == true }
}
