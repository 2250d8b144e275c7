internal import EventLoop
internal import FoundationEssentials
internal import Reachability

/// A task on its session's thread: it passes events to the task's machine, and performs the machine's effects.
final class TaskDriver {
    private(set) var task: TransferTask
    let job: TaskJob
    // The loop releases every driver before it ends.
    let loop: SessionLoop
    // Unchecked: every mutation of the machine returns before a call that could reenter it. The machine itself calls only closures that read a
    // counter of libcurl.
    @exclusivity(unchecked) var machine: TaskMachine

    private(set) var host: TaskQueue.Host
    private(set) var transfer: (any Transfer)?
    private(set) var trust: ServerTrust?
    private(set) var segments: [BodySegment]
    private(set) var source: BodySource?
    var sink: (any BodySink)?
    /// The remote addresses that the failed transfer was connected to, or tried to connect to.
    private(set) var remotes: [IPAddress] = []
    /// The origin at which the task is tracked for an outage; `nil` if it is not tracked.
    private var outageOrigin: Origin?
    private var asking: UserTask?
    private(set) var started: Date
    /// The number of questions that the worker has not answered yet.
    var fileWork = 0
    /// Whether the sink is full, or the source empty, until they report that they are ready.
    var waitsForSink = false
    var waitsForSource = false
    /// Whether the task is suspended during its attempt.
    private var isHeld = false
    /// Whether the transfer has yielded its place in the queue, because it is suspended or waits for the program.
    var hasYieldedPlace = false
    private var isPerforming = false

    init(_ task: TransferTask, _ job: TaskJob, loop: SessionLoop) {
        self.task = task
        self.job = job
        self.loop = loop
        host = job.host
        segments = job.segments
        started = loop.transport.date()
        machine = TaskMachine(
            job.rules(of: task, in: loop.settings.rules), origin: job.origin, upload: job.upload?.machine,
            interceptions: job.interceptions, seed: loop.makeTaskSeed(), now: loop.now)
    }

    var settings: SessionSettings { loop.settings }
    var deadline: Int64? {
        guard let flushesAt = sink?.flushesAt else { return machine.deadline }
        return min(flushesAt, machine.deadline ?? .max)
    }

    // MARK: Events and effects

    func send(_ event: TaskMachine.Event) {
        machine.handle(event, now: loop.now)
        perform()
        loop.scheduleWake(at: machine.deadline)
    }

    /// Performs the machine's effects one after another, also those that are added meanwhile.
    func perform() {
        guard !isPerforming, !machine.effects.isEmpty else { return }
        isPerforming = true
        defer { isPerforming = false }
        var index = 0
        while index < machine.effects.count {
            perform(machine.effects[index])
            index += 1
        }
        machine.effects.removeAll(keepingCapacity: true)
    }

    private func perform(_ effect: TaskMachine.Effect) {
        switch effect {
        case .enqueue: enqueue(hasBegun: false)
        case .enqueueFirst: enqueue(hasBegun: true)
        case .dequeue: loop.queue.remove(task.id)
        case .releaseQueueSlot: releaseQueueSlot(isAbandoned: false)
        case .releaseQueueSlotDuringLookup: releaseQueueSlot(isAbandoned: true)
        case .recordResolvedName: loop.queue.nameResolved(task.id, to: host, now: loop.now)
        case .reportStalledLookup: if host.needsLookup { loop.nameIsUnanswered(host) }
        case .startTransfer: start()
        case .suspendTransfer:
            isHeld = true
            recordWait()
            transfer?.hold(true)
        case .resumeTransfer:
            isHeld = false
            recordWait()
            transfer?.hold(false)
        case .checkRoutes: loop.scheduleAttemptJudgment()
        case .abandon: abandon()
        case .abandonSilently: abandonSilently()
        case .upgradeToHTTPS: loop.markUpgraded(machine.origin.host)
        case .reportNotSent: reportUnsent()
        case .openSink: openSink()
        case .resumeReceiving: receive()
        case .scheduleRequestStop: task.core.post(.abortRequest(task.id))
        case .withdrawQuestion: withdraw()
        case .leaveOutage: leaveOutage()
        case .checkAllowedNetworks: if settings.hasNetwork(for: machine.request, to: machine.origin) { send(.networkAllowed) }
        case .refundRetry: loop.recordSuccess(of: machine.origin)
        case .requestRetry:
            if let wait = loop.retryWait(for: machine.origin) { send(.retryPostponed(wait)) } else { send(.retryGranted) }
        case .publishState: task.become(TransferTask.State(machine.visibleState))
        case .publishBackoff: task.setBackoff(until: machine.backoffDeadline)
        case .publishProgress: task.publish(machine.progress)
        case .reportResumed: loop.outbox.detail(.taskResumed(task))
        case .reportSuspended: loop.outbox.detail(.taskSuspended(task))
        case .reportTransaction: reportTransaction()
        case .checkForReferences: if isKnownUniquelyReferenced(&task) { send(.cancel) }
        case .finishSink: deliver()
        case .completeTask: complete()
        case .runCommand: if let command = machine.takeCommand() { perform(command) }
        }
    }

    private func perform(_ command: TaskMachine.Command) {
        switch command {
        case .openPartialFile(let destination): openPartialFile(destination)
        case .recordMetrics(of: let request): measure(request)
        case .openRetryBudget(let origin): loop.beginRetryBudget(for: origin)
        case .forgetIdentity(let origin): task.identities?.forget(origin)
        case .releaseBody(of: let request): loop.release(request)
        case .sendBodyRange(let offset, let count):
            if let body = job.upload?.body { replaceBody(body.part(from: offset, count: count)) }
        case .sendSegments(let segments): replaceBody(segments)
        case .renameFile(by: let head): if let file = sink as? FileSink { file.name(by: head) }
        case .confirmFinishedFile(let version): (sink as? FileSink)?.confirmed = version
        case .deliverBufferedBody(let data): feed(data)
        case .verifyDigest(let digest):
            guard let file = sink as? FileSink else {
                return send(
                    .digestVerified(.failure(HTTPSessionError(.transferFailed, "there is no file to compare with its digest"))))
            }
            let (id, core) = (task.id, task.core)
            fileWork += 1
            file.verify(digest) { core.post(.digestVerified(id, $0)) }
        case .verifyUploadDigest(let digest): verifyUploadDigest(digest)
        case .reportUploadLocation(let place): job.upload?.reportLocation?(place)
        case .askHandler(let number, let question): ask(number, question)
        case .storeCredential(let credential, let space): settings.credentials[space] = credential
        case .recordTrust(let disposition, let challenge): task.decisions?.record(disposition, of: challenge, at: .now)
        case .recordIdentity(let identity): task.identities?.record(identity, for: machine.origin, at: .now)
        case .explainFailure(let hasNoNetwork): explainFailure(hasNoNetwork: hasNoNetwork)
        case .report(let report): loop.outbox.announce(report, of: task)
        case .discardBody(let error): discard(error)
        }
    }

    // MARK: The queue

    private func enqueue(hasBegun: Bool) {
        // Set only here, because the task has to leave the queue under the host under which it entered.
        host = machine.origin == job.origin ? job.host : settings.host(of: machine.origin)
        if machine.kind == .stream || sendsLargeBody { host = host.exclusive }
        if !hasBegun { started = loop.transport.date() }
        loop.queue.add(task.id, to: host, priority: machine.request.options.priority, isFirst: hasBegun)
    }

    /// Whether the request needs a connection of its own for its body.
    private var sendsLargeBody: Bool {
        if case .none = machine.request.body { return false }
        return settings.avoidsHTTP2(for: TransferPlan.framing(machine.request, segments))
    }

    /// Records whether the transfer waits for the program, and may yield its place: it is suspended, or nobody reads its chunks, or the stream of its
    /// body has nothing to send.
    func recordWait() {
        let waits = isHeld || (waitsForSink && machine.kind == .stream) || (waitsForSource && segments.haveStream)
        guard waits, !hasYieldedPlace else { return loop.suspendedTransfers[task.id] = nil }
        if loop.suspendedTransfers[task.id] == nil { loop.suspendedTransfers[task.id] = loop.now }
    }

    private func releaseQueueSlot(isAbandoned: Bool) {
        isHeld = false
        loop.suspendedTransfers[task.id] = nil
        guard hasYieldedPlace else { return loop.queue.release(task.id, from: host, isAbandoned: isAbandoned, now: loop.now) }
        hasYieldedPlace = false
        loop.releaseYieldedPlace()
    }

    // MARK: The attempt

    private func start() {
        defer { if transfer == nil { reportUnsent() } }
        remotes = []
        do throws(HTTPSessionError) {
            try settings.checkNetwork(for: machine.request, to: machine.origin)
            if machine.takeStalledLookup(), loop.queue.isResolving(task.id, host) { return send(.sharedLookupFailed) }
            if machine.mayJoinOutage, let cause = loop.serverWatches?.join(task.id, at: machine.origin) {
                joinOutage()
                return send(.joinedOutage(cause))
            }
            let plan = plan()
            if machine.isFirstAttempt { loop.recordRequest(to: machine.origin) }
            let isSecure = machine.origin.scheme == "https" || loop.isUpgraded(machine.origin.host)
            machine.attempt.begin(
                at: loop.transport.date(), over: settings.network(to: machine.origin), with: plan.preemptiveCredential,
                expectsHTTPS: isSecure)
            machine.attempt.expectsContinue = plan.expectsContinue
            prepareSource(plan)
            trust = nil
            if isSecure || settings.security.hasSecureProxy {
                trust = settings.security.trust(
                    for: machine.origin, isSecure: isSecure, decisions: task.decisions, identities: task.identities)
            }
            transfer = try loop.engine.start(plan, for: self, trust: trust, now: loop.now)
            loop.scheduleAttemptJudgment()
            loop.outbox.detail(.requestStarted(task, attempt: machine.stateMachine.attempts))
        } catch {
            send(.startFailed(error, hasBegun: machine.attempt.hasBegun))
        }
    }

    var bodyIsEmpty: Bool {
        if case .none = machine.request.body { return true }
        return segments.isEmpty
    }

    private func prepareSource(_ plan: TransferPlan) {
        machine.bodyStarted(length: bodyIsEmpty ? nil : segments.totalLength)
        source = nil
        (waitsForSink, waitsForSource) = (false, false)
        guard plan.body != .none, !bodyIsEmpty else { return }
        source = BodySource(segments, packetSize: plan.packetSize, worker: settings.worker(for: task.id)) {
            [core = task.core, id = task.id] in
            core.post(.sourceReady(id))
        }
    }

    /// Replaces the body of the next request.
    private func replaceBody(_ segments: [BodySegment]) {
        loop.release(self.segments)
        self.segments = segments
    }

    /// Records the measurements of an attempt that is about to be ended.
    private func measure(_ request: TransferRequest) {
        guard let transfer else { return }
        var facts = transfer.facts
        facts.total = max(facts.total, loop.now - transfer.started)
        machine.note(facts, of: request)
        reportTransaction()
    }

    private func reportTransaction() {
        guard loop.outbox.reportsDetails, let last = machine.metrics.transactions.last else { return }
        loop.outbox.detail(.transactionFinished(task, last))
    }

    private func abandon() {
        source = nil
        guard let transfer else { return }
        transfer.cancel()
        transferEnded()
    }

    private func abandonSilently() {
        recordRemotes()
        // If a route is left, the connection is closed regularly, so that the server is informed.
        if loop.isLost(remotes) { transfer?.silence() }
        abandon()
    }

    /// Releases the transfer that has ended. The caller handles its result.
    func transferEnded() {
        transfer = nil
        source = nil
        reportUnsent()
    }

    /// Reports, after an attempt has ended or could not begin, that no request of the task has been sent, if that is so.
    private func reportUnsent() {
        if !machine.hasBeenSent { job.sendApproval?.wasNotSent() }
    }

    /// Records the remote addresses of a transfer that has failed or is about to be ended.
    func recordRemotes() { remotes = connection.map { [$0.remote] } ?? transfer?.connectAttempts.map(\.remote) ?? [] }

    // MARK: Handlers

    private func ask(_ number: Int, _ question: HandlerQuestion) {
        let (id, core, handlers, sendApproval) = (task.id, task.core, task.handlers, job.sendApproval)
        asking = UserTask {
            core.post(.answered(id, question: number, await handlers.answer(to: question, sendApproval: sendApproval)))
        }
    }

    private func withdraw() {
        guard let asking else { return }
        // On the delivery queue, because the cancellation handlers are the user's.
        task.core.deliver { asking.cancel() }
        self.asking = nil
    }

    // MARK: Outages

    private func explainFailure(hasNoNetwork: Bool) {
        guard let watches = loop.serverWatches, let endpoint = settings.endpoint(for: machine.origin) else {
            return send(.failureExplained(.unavailable))
        }
        joinOutage()
        let loss = loop.loss(of: remotes)
        let hasNoRoute = loss != nil || hasNoNetwork || (remotes.isEmpty && loop.routeTracker.hasLostAllRoutes)
        let cause = watches.failed(task.id, at: machine.origin, endpoint: endpoint, hasNoRoute: hasNoRoute, loss: loss)
        send(.failureExplained(cause.map { .missing($0) } ?? .unknown))
    }

    private func joinOutage() {
        if let outageOrigin, outageOrigin != machine.origin { loop.serverWatches?.forget(task.id, at: outageOrigin) }
        outageOrigin = machine.origin
    }

    private func leaveOutage() {
        guard let outageOrigin else { return }
        self.outageOrigin = nil
        loop.serverWatches?.forget(task.id, at: outageOrigin)
    }
}
