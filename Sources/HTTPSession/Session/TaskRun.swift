internal import EventLoop
internal import Foundation
internal import HTTPTypes

/// A task on its session's thread: joins its machine to the queue, the engine, the body's source and sink.
final class TaskRun {
    private(set) var task: TransferTask
    let job: TransferJob
    // The loop lets go of every run before it ends.
    let loop: SessionLoop
    // Unchecked, as below: every mutation of these returns before anything is called that could come back to the run.
    @exclusivity(unchecked) private var machine: TaskMachine

    // The present transaction.
    private(set) var request: TransferRequest
    private(set) var origin: Origin
    private(set) var bodySegments: [BodySegment]
    private(set) var host: TransferQueue.Host
    private(set) var transfer: CurlTransfer?
    var source: BodySource?
    var sink: (any BodySink)?
    // Unchecked: as above.
    @exclusivity(unchecked) var exchange = Exchange()

    // The task's whole life. Unchecked: as above.
    @exclusivity(unchecked) var metrics = TransferMetrics()
    @exclusivity(unchecked) var progress = TransferProgress()
    @exclusivity(unchecked) var logins = TaskLogins()
    var needsFreshConnection = false
    /// While the task waited for another's look-up of its host's name, that had no answer.
    var isNameUnanswered = false
    /// How often in a row the server's certificates had to be asked about.
    var serverQuestions = 0
    /// A farm of servers may have a certificate each; one that has a new one for every connection never ends.
    static let maximumServerQuestions = 10
    var retries: RetryMachine
    /// Where the gate knows of the task, and since when the task waits for it.
    var gateOrigin: Origin?
    var waitsSince: Int64?
    /// Whether what it waits for is a network that the request may use.
    var waitsForAllowed = false
    /// Whether the gate has let it go and no answer has come since.
    var wasReleased = false
    /// The retries as they were before the failures that the gate may explain yet.
    var uncounted: RetryMachine?
    /// Whether the host's budget has paid for the present attempt.
    var hasPaidRetry = false
    /// What a download has so far, where it can be continued.
    var resumption: Resumption?
    var partState = PartState.unknown
    /// The version of the file at the destination, if it may be the one that the server has.
    var finishedFile: FileValidator?
    /// Whether the digest has shown that what was here was of something else.
    var hasDistrustedPart = false
    /// The response that these bytes began with (`nil`: an earlier task's), and where they go: what comes behind them says neither.
    var beginning: (head: ResponseHead?, destination: TaskSpecification.Destination)?
    /// An upload that goes on where it stopped.
    @exclusivity(unchecked) var upload: UploadMachine?
    /// When to look again whether a network that may be used leads there: routes change without a word of the path. And how long to wait then.
    var looksAgainAt: Int64?
    /// When it is looked whether anybody but the session refers to the task, if it is a stream.
    private var looksForHolderAt: Int64?
    var looksAgainAfter: Int64 = 5_000_000_000
    /// Whether anything of the task has ever been sent, or may have been.
    var hasLeft = false
    /// Whether it has gone back to the first address since something came.
    var hasReturnedToStart = false
    /// Whether the present address has been asked before.
    var isAskedAgain = false
    /// Attempts at the present address that have brought nothing, since one has.
    var fruitlessAttempts = 0
    /// Followed since the first address was asked.
    var redirects = 0
    /// What is asked for at first: the task's request, or the one that an interceptor has put in its place.
    var start: TransferRequest
    var interceptions: Int
    var started = Date()
    /// The questions to handlers are counted, and one at a time is asked.
    var question = 0
    var asking: UserTask?
    private var publishedAt = Int64.min
    private var hasUnpublishedProgress = false
    private var publishedBackOff: Int64?
    var pendingResult: HTTPSessionError?

    init(_ task: TransferTask, _ job: TransferJob, loop: SessionLoop) {
        self.task = task
        self.job = job
        self.loop = loop
        request = task.request
        start = task.request
        interceptions = job.interceptions
        origin = job.origin
        bodySegments = job.segments
        host = job.host
        if task.kind == .stream { looksForHolderAt = loop.now + TaskRun.holderInterval }
        machine = TaskMachine(limits: job.limits)
        retries = RetryMachine(job.retryPolicy)
        upload = job.upload?.machine
        guard upload != nil else { return }
        request = nextAttempt()
        // One that another process has begun may be at another origin than where it was made.
        origin = Origin(request.url) ?? job.origin
    }

    var settings: SessionSettings { loop.settings }
    var deadline: Int64? {
        var due = machine.deadline ?? .max
        if hasUnpublishedProgress { due = min(due, publishedAt + TransferTask.progressInterval) }
        if let flushesAt = sink?.flushesAt { due = min(due, flushesAt) }
        if let looksAgainAt { due = min(due, looksAgainAt) }
        if let looksForHolderAt { due = min(due, looksForHolderAt) }
        return due == .max ? nil : due
    }
    var attempts: Int { machine.attempts }
    var isBackingOff: Bool {
        if case .backingOff = machine.state { return true }
        return false
    }
    var isRunning: Bool { machine.state == .running }
    var remainingTime: Int64 { machine.remainingTime(now: loop.now) }

    // MARK: Machine

    func handle(_ event: TaskMachine.Event) {
        for action in machine.handle(event, now: loop.now) { perform(action) }
        loop.wakes(at: machine.deadline)
        publishBackOff()
    }

    /// A stream that only its session refers to has no iterator, and nobody could make one.
    private func lookForHolder() {
        guard task.kind == .stream else {
            looksForHolderAt = nil
            return
        }
        looksForHolderAt = loop.now + TaskRun.holderInterval
        if isKnownUniquelyReferenced(&task) { handle(.cancel) }
    }

    /// How often it is looked whether somebody refers to a stream's task, in nanoseconds.
    private static let holderInterval: Int64 = 1_000_000_000

    private func publishBackOff() {
        var end: Int64?
        if case .backingOff(let until) = machine.state { end = until }
        guard end != publishedBackOff else { return }
        publishedBackOff = end
        task.backsOff(until: end)
    }

    /// The ``deadline`` has come.
    func timePassed() {
        if hasUnpublishedProgress { publishProgress() }
        if let flushesAt = sink?.flushesAt, flushesAt <= loop.now { sink?.flush() }
        if let time = looksForHolderAt, time <= loop.now { lookForHolder() }
        if let time = looksAgainAt, time <= loop.now {
            looksAgainAt = nil
            networkMayBeAllowed()
        }
        if case .backingOff(let until) = machine.state, until <= loop.now, !wasReleased {
            if let wait = loop.retryWait(for: origin) { handle(.postponed(delay: wait)) } else { hasPaidRetry = true }
        }
        handle(.time)
    }

    private func perform(_ action: TaskMachine.Action) {
        switch action {
        case .enqueue:
            stopWaiting()
            enqueue()
        case .dequeue:
            loop.queue.remove(task.id)
            isNameUnanswered = false
            task.become(.suspended)
        case .begin(let attempt): begin(attempt)
        case .hold:
            transfer?.hold(true)
            task.become(.suspended)
        case .letGo:
            task.become(.running)
            beginIfReady()
            transfer?.hold(false)
            loop.judgesAttempt()
        case .abort:
            noteAttempt()
            abandonTransfer()
        case .failTimedOut:
            noteAttempt()
            abandonTransfer()
            noteUnansweredName()
            let limit = Duration.nanoseconds(job.limits.requestTimeout)
            stopped(by: HTTPSessionError(.timedOut, "nothing came or went for \(limit)"))
        case .leave: leave()
        case .finish(let reason): finish(reason)
        case .announceResumed:
            if isBackingOff { task.become(.backingOff) }
            loop.outbox.announce(.taskResumed(task))
        case .announceSuspended:
            leaveGate()
            task.become(.suspended)
            loop.outbox.announce(.taskSuspended(task))
        }
    }

    private func enqueue() {
        task.become(.waiting)
        // Only here: what leaves the queue leaves the line that it stood in.
        host = origin == job.origin ? job.host : settings.host(of: origin)
        if task.kind == .stream { host = host.alone }
        if metrics.transactions.isEmpty, machine.attempts == 0 { started = Date() }
        // A task on its way (a redirect, a challenge, another try) goes before those that have not begun.
        loop.queue.add(task.id, to: host, priority: request.options.priority, isFirst: machine.attempts > 0)
    }

    private func leave() { loop.queue.left(task.id, from: host, isAbandoned: isLookingUp, now: loop.now) }

    private func begin(_ attempt: Int) {
        task.become(.running)
        if let adapted = exchange.adapted { loop.letGo(adapted) }
        if case .redirect(let proposed) = exchange.next { loop.letGo(proposed) }
        exchange = Exchange()
        if !opensPart() { beginIfReady() }
    }

    /// The attempt under way may have waited for its file and for its interceptors.
    func beginIfReady() {
        guard machine.state == .running, !exchange.hasBegun, partState != .opening, !exchange.isAdapting, !adapts() else {
            return
        }
        startTransfer(machine.attempts)
    }

    private func startTransfer(_ attempt: Int) {
        defer { if transfer == nil { noteStay() } }
        do throws(HTTPSessionError) {
            try settings.checkNetwork(for: request, to: origin)
            guard !lacksName() else { return failWithoutName() }
            guard !waitsWithOthers() else { return }
            var plan =
                attempt == 1 && exchange.adapted == nil && upload == nil
                ? job.plan
                : TransferPlan(
                    exchange.adapted ?? request, logins: logins, settings: settings, segments: segments,
                    isElsewhere: origin != job.origin)
            plan.needsFreshConnection = needsFreshConnection
            plan.asksBeforeConnecting = settings.asksBeforeConnecting(for: request, to: origin)
            plan.watchesWay = settings.watchesWay(to: origin)
            plan.usesProxy = settings.usesProxy(before: origin, isSecure: loop.isRaised(origin.host))
            plan.maximumLookupSeconds = loop.maximumLookupSeconds
            if loop.queue.mayShare(host), !origin.isLoopback { plan.maximumIdleSeconds = loop.maximumIdleSeconds }
            if task.kind == .stream {
                plan.avoidsHTTP2 = true
                // While it waits for its reader, what has been decompressed of it has to be kept.
                if plan.decompresses { plan.headerLines.append("Accept-Encoding: identity") }
            }
            if task.kind == .download {
                (plan.decompresses, plan.bufferSize) = (false, 256 << 10)
                plan.headerLines += downloadLines()
            }
            if attempt == 1 { loop.noteRequest(to: origin) }
            exchange.unaskedCredential = plan.unaskedCredential
            // Of a response that waits for its reader or its handler, libcurl keeps what one read decompresses to: at most 64 MiB, or
            // it is "out of memory".
            if task.kind == .stream || (plan.decompresses && task.handlers.response != nil) { plan.bufferSize = 16 << 10 }
            // libcurl looks at the rate when it has read up to a hundred times its buffer: then a second's worth has come.
            if let rate = settings.configuration.maximumReceiveRate {
                plan.bufferSize = Int(max(1_024, min(Int64(plan.bufferSize), rate / 100)))
            }
            exchange.begin(at: Date(), over: settings.network(to: origin))
            prepareSource(plan)
            let isSecure = origin.scheme == "https" || loop.isRaised(origin.host)
            exchange.expectsSecure = isSecure
            if isSecure || settings.security.hasSecureProxy {
                exchange.trust = settings.security.trust(
                    for: origin, isSecure: isSecure, decisions: task.decisions, identities: task.identities)
            }
            loop.takeCookies()
            transfer = try loop.engine.start(plan, for: self, trust: exchange.trust, now: loop.now)
            loop.judgesAttempt()
            loop.outbox.detail(.requestStarted(task, attempt: attempt))
        } catch {
            exchange.hasLookedUp = true
            if !holds(untilAllowed: error) { end(with: error) }
        }
    }

    private var segments: [BodySegment] {
        if case .none = request.body { return [] }
        return bodySegments
    }

    /// A handler has put another body in the place of the first.
    func replaceBody(_ segments: [BodySegment]) {
        loop.letGo(bodySegments)
        bodySegments = segments
    }

    private func prepareSource(_ plan: TransferPlan) {
        progress.sent = upload?.bodyStart ?? 0
        progress.expectedToSend = upload?.length ?? (segments.isEmpty ? nil : segments.totalLength)
        guard plan.body != .none, !segments.isEmpty else {
            source = nil
            return
        }
        source = BodySource(segments, packetSize: plan.packetSize, worker: settings.worker(for: task.id)) {
            [core = task.core, id = task.id] in
            core.post(.sourceReady(id))
        }
    }

    func abandonTransfer() {
        if let transfer {
            loop.engine.cancel(transfer)
            transferIsOver()
        }
        source = nil
    }

    func sourceReady() { transfer?.resumeSending() }

    func sinkReady() {
        handle(.receiverReady)
        if let transfer, let failure = sink?.failure {
            transfer.refuse(with: failure)
            return loop.engine.endRefused(transfer)
        }
        transfer?.resumeReceiving()
    }

    // MARK: Called by the exchange's rules

    /// A lock and a look at the readers, not for every piece of a fast transfer.
    func publishProgress(isLast: Bool = false) {
        guard isLast || publishedAt <= loop.now - TransferTask.progressInterval else {
            // What follows may be a long silence: the last word before it is said in time.
            hasUnpublishedProgress = true
            return loop.wakes(at: publishedAt + TransferTask.progressInterval)
        }
        publishedAt = loop.now
        hasUnpublishedProgress = false
        task.publish(progress)
    }

    func noteActivity() { _ = machine.handle(.activity, now: loop.now) }
    func noteReceiverFull() { _ = machine.handle(.receiverFull, now: loop.now) }

    func noteProtocol(_ facts: TransferFacts) {
        guard facts.networkProtocol != nil else { return }
        // Behind one name there may be several servers, and another one tomorrow.
        loop.queue.multiplexes(host, facts.isMultiplexed)
        if facts.isMultiplexed { loop.engine.multiplexes() }
    }

    /// The transfer is over; what it brought is dealt with by the caller.
    func transferIsOver() {
        transfer = nil
        source = nil
        noteStay()
    }

    /// Another transaction of the same task follows, after `delay` nanoseconds.
    func goOn(with next: TransferRequest, delay: Int64 = 0) {
        if delay > 0 { task.become(.backingOff) }
        goOn(with: next, .endedForNow(delay: loop.stepped(delay)))
    }

    func goOn(with next: TransferRequest, _ event: TaskMachine.Event) {
        do throws(HTTPSessionError) { origin = try settings.check(next) } catch { return end(with: error) }
        if case .stream = request.body { loop.letGo(request) }
        if case .multipart = request.body { loop.letGo(request) }
        request = next
        withdrawQuestion()
        handle(event)
        if machine.state == .suspended {
            leaveGate()
            task.become(.suspended)
        }
    }

    /// The task ends with an error.
    func end(with error: HTTPSessionError) {
        pendingResult = error
        handle(.ended)
    }

    /// The last response is whole: its sink makes a result of it.
    func endWithResponse() {
        if !verifies(), !verifiesUpload() { handle(.ended) }
    }
}
