internal import EventLoop
internal import FoundationEssentials
internal import Logging
internal import Reachability

/// A task on its session's thread: it passes events to the task's machine, and performs the machine's effects.
final class TaskDriver {
    private(set) var task: TransferTask
    private let job: TaskJob
    private let handlers: TaskMachine.Handlers
    // The loop releases every driver before it ends.
    private let loop: SessionLoop
    // Unchecked: every mutation of the machine returns before a call that could reenter it. The machine itself calls only closures that read a
    // counter of libcurl.
    @exclusivity(unchecked) private var machine: TaskMachine

    private(set) var host: TaskQueue.Host
    private(set) var transfer: (any Transfer)?
    private var trust: ServerTrust?
    private var segments: [BodySegment]
    private var source: BodySource?
    private var sink: (any BodySink)?
    /// The remote addresses that the failed transfer was connected to, or tried to connect to.
    private var remotes: [IPAddress] = []
    /// The origin at which the task is tracked for an outage; `nil` if it is not tracked.
    private var outageOrigin: Origin?
    private var asking: UserTask?
    private var started: Date
    /// The number of questions that the worker has not answered yet.
    private var fileWork = 0
    /// Whether the sink is full, or the source empty, until they report that they are ready.
    private var waitsForSink = false
    private var waitsForSource = false
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
        handlers = TaskMachine.Handlers(task.handlers, hasSendApproval: job.sendApproval != nil)
        machine = TaskMachine(
            job.request, to: job.destination, origin: job.origin, accepting: job.acceptableStatusCodes,
            handlers: handlers, limits: job.limits, retryPolicy: job.retryPolicy, upload: job.upload?.machine,
            hasResumeData: job.record != nil, interceptions: job.interceptions,
            session: loop.settings.rules, seed: loop.makeTaskSeed(), now: loop.now)
    }

    private var settings: SessionSettings { loop.settings }
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
    private func perform() {
        guard !isPerforming else { return }
        isPerforming = true
        while let effect = machine.nextEffect() { perform(effect) }
        isPerforming = false
    }

    private func perform(_ effect: TaskMachine.Effect) {
        switch effect {
        // The queue
        case .enqueue: enqueue(hasBegun: false)
        case .enqueueFirst: enqueue(hasBegun: true)
        case .dequeue: loop.queue.remove(task.id)
        case .releaseQueueSlot: releaseQueueSlot(isAbandoned: false)
        case .releaseQueueSlotDuringLookup: releaseQueueSlot(isAbandoned: true)
        case .recordResolvedName: loop.queue.nameResolved(task.id, to: host, now: loop.now)
        case .reportStalledLookup: if host.needsLookup { loop.nameIsUnanswered(host) }

        // The attempt
        case .openPartialFile(let destination): openPartialFile(destination)
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
        case .recordMetrics(of: let request): measure(request)
        case .upgradeToHTTPS: loop.markUpgraded(machine.origin.host)
        case .reportNotSent: reportUnsent()
        case .releaseBody(of: let request): loop.release(request)

        // Bodies
        case .sendBodyRange(let offset, let count):
            if let body = job.upload?.body { replaceBody(body.part(from: offset, count: count)) }
        case .sendSegments(let segments): replaceBody(segments)
        case .openSink: openSink()
        case .resumeReceiving: receive()
        case .scheduleRequestStop: task.core.post(.abortRequest(task.id))
        case .renameFile(by: let head): if let file = sink as? FileSink { file.name(by: head) }
        case .confirmFinishedFile(let version): (sink as? FileSink)?.confirmed = version
        case .deliverBufferedBody(let data): feed(data)
        case .verifyDigest(let digest): verifyDigest(digest)
        case .verifyUploadDigest(let digest): verifyUploadDigest(digest)
        case .reportUploadLocation(let place): job.upload?.reportLocation?(place)

        // The user's handlers
        case .askHandler(let number, let question): ask(number, question)
        case .withdrawQuestion: withdraw()
        case .storeCredential(let credential, let space): settings.credentials[space] = credential
        case .recordTrust(let disposition, let challenge): task.decisions?.record(disposition, of: challenge, at: .now)
        case .recordIdentity(let identity): task.identities?.record(identity, for: machine.origin, at: .now)
        case .forgetIdentity(let origin): task.identities?.forget(origin)

        // The network
        case .explainFailure(let hasNoNetwork): explainFailure(hasNoNetwork: hasNoNetwork)
        case .leaveOutage: leaveOutage()
        case .checkAllowedNetworks: if settings.hasNetwork(for: machine.request, to: machine.origin) { send(.networkAllowed) }

        // Retries
        case .openRetryBudget(let origin): loop.beginRetryBudget(for: origin)
        case .refundRetry: loop.recordSuccess(of: machine.origin)
        case .requestRetry:
            if let wait = loop.retryWait(for: machine.origin) { send(.retryPostponed(wait)) } else { send(.retryGranted) }

        // The owner
        case .report(let report): loop.outbox.announce(report, of: task)
        case .publishState: task.become(TransferTask.State(machine.visibleState))
        case .publishBackoff: task.setBackoff(until: machine.backoffDeadline)
        case .publishProgress: task.publish(machine.progress)
        case .reportResumed: loop.outbox.detail(.taskResumed(task))
        case .reportSuspended: loop.outbox.detail(.taskSuspended(task))
        case .reportTransaction: reportTransaction()
        case .checkForReferences: if isKnownUniquelyReferenced(&task) { send(.cancel) }

        // The end
        case .finishSink: deliver()
        case .discardBody(let error): discard(error)
        case .completeTask: complete()
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
    private func recordWait() {
        let waits = isHeld || (waitsForSink && machine.kind == .stream) || (waitsForSource && segments.haveStream)
        loop.recordWait(task.id, waits && !hasYieldedPlace)
    }

    private func releaseQueueSlot(isAbandoned: Bool) {
        isHeld = false
        loop.recordWait(task.id, false)
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
            if machine.resetStalledLookup(), loop.queue.isResolving(task.id, host) { return send(.sharedLookupFailed) }
            if machine.mayJoinOutage, let cause = loop.serverWatches?.join(task.id, at: machine.origin) {
                joinOutage()
                return send(.joinedOutage(cause))
            }
            let plan = plan()
            if machine.attemptCount == 1 { loop.recordRequest(to: machine.origin) }
            let isSecure = machine.origin.scheme == "https" || loop.isUpgraded(machine.origin.host)
            machine.attemptStarted(
                at: loop.transport.date(), over: settings.network(to: machine.origin), with: plan.preemptiveCredential,
                expectsHTTPS: isSecure, expectsContinue: plan.expectsContinue,
                bodyLength: bodyIsEmpty ? nil : segments.totalLength)
            prepareSource(plan)
            trust = nil
            if isSecure || settings.security.hasSecureProxy {
                trust = settings.security.trust(
                    for: machine.origin, isSecure: isSecure, decisions: task.decisions, identities: task.identities)
            }
            transfer = try loop.engine.start(plan, for: self, trust: trust, now: loop.now)
            loop.scheduleAttemptJudgment()
            loop.outbox.detail(.requestStarted(task, attempt: machine.attemptCount))
        } catch {
            send(.startFailed(error, hasBegun: machine.attempt.hasBegun))
        }
    }

    private var bodyIsEmpty: Bool {
        if case .none = machine.request.body { return true }
        return segments.isEmpty
    }

    private func prepareSource(_ plan: TransferPlan) {
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
        machine.recordMetrics(facts, of: request)
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
    private func transferEnded() {
        transfer = nil
        source = nil
        reportUnsent()
    }

    /// Reports, after an attempt has ended or could not begin, that no request of the task has been sent, if that is so.
    private func reportUnsent() {
        if !machine.hasBeenSent { job.sendApproval?.wasNotSent() }
    }

    /// Records the remote addresses of a transfer that has failed or is about to be ended.
    private func recordRemotes() { remotes = connection.map { [$0.remote] } ?? transfer?.connectAttempts.map(\.remote) ?? [] }

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

    // MARK: - The plan of an attempt

    private func plan() -> TransferPlan {
        let (request, origin) = (machine.request, machine.origin)
        var plan =
            machine.attemptCount == 1 && machine.attempt.adaptedRequest == nil && !machine.isResumableUpload
            ? job.prepared.plan
            : TransferPlan(
                machine.attempt.adaptedRequest ?? request, logins: machine.logins, settings: settings,
                segments: bodyIsEmpty ? [] : segments,
                change: origin == job.origin ? nil : .init(from: job.origin, to: origin, hasDowngraded: machine.hasDowngraded))
        if machine.omitsExpectation { plan.omitExpectation() }
        plan.needsFreshConnection = machine.needsFreshConnection
        plan.asksBeforeConnecting = settings.asksBeforeConnecting(for: request, to: origin)
        plan.watchesRoute = settings.watchesRoute(to: origin)
        plan.expectsUpgrade = loop.isUpgraded(origin.host)
        plan.proxy = settings.proxy(before: origin, isSecure: plan.expectsUpgrade)
        answerDigests(in: &plan)
        plan.maximumLookupSeconds = loop.maximumLookupSeconds
        if loop.queue.sharesConnections(host), !origin.isLoopback { plan.maximumIdleSeconds = loop.maximumIdleSeconds }
        if machine.kind == .stream {
            plan.avoidsHTTP2 = true
            // Uncompressed, so that each chunk arrives when it is sent: a compressor collects bytes first.
            if plan.decompresses { plan.requestIdentity() }
            plan.requestsCompression = false
        }
        if machine.kind == .download {
            let lines = machine.beginDownloadAttempt()
            plan.replaceFields(by: lines)
            if lines.isEmpty {
                if plan.decompresses { plan.requestIdentity() }
            } else {
                // Even with an Accept-Encoding of the session's own, which is replaced.
                plan.decompresses = settings.configuration.decompressesResponses
            }
            // A server may compress nevertheless: what it sends is decompressed, and does not continue. But Content-Encoding is often the coding of
            // the file itself, as its name says.
            if namesCompressedFile(request.url) { plan.decompresses = false }
            plan.requestsCompression = false
            plan.bufferSize = machine.readsSmallPieces ? 16 << 10 : 256 << 10
        }
        // While a response waits for its reader or handler, libcurl keeps the bytes to which one read decompresses, if the transfer has a coding
        // (Transfer-Encoding). Beyond 64 MiB it fails with "out of memory", so a read is kept small.
        if machine.kind == .stream || (plan.decompresses && handlers.contains(.response)) {
            plan.bufferSize = 16 << 10
        }
        // libcurl checks the rate after it has read up to a hundred buffers, so a hundred buffers hold the bytes of one second.
        if let rate = settings.configuration.maximumReceiveRate {
            plan.bufferSize = Int(max(1_024, min(Int64(plan.bufferSize), rate / 100)))
        }
        return plan
    }

    /// Whether the last component of the URL's path, or the name of the destination, is that of a compressed file.
    private func namesCompressedFile(_ url: URL) -> Bool {
        let suffixes = ["gz", "tgz", "svgz", "zst", "tzst", "br", "zz"]
        var names = [url.lastPathComponent]
        if case .file(let destination) = job.destination { names.append(destination.file.lastPathComponent) }
        return names.contains { name in
            guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return false }
            return suffixes.contains(name[name.index(after: dot)...].lowercased())
        }
    }

    // MARK: Answers to Digest challenges

    /// Adds the answers to the plan of an attempt.
    private func answerDigests(in plan: inout TransferPlan) {
        if let login = machine.nextDigestLogin(isProxy: false) {
            let value = answer(login, method: plan.method, target: plan.target)
            if let value {
                let line = "Authorization: \(value)"
                if login.challenge.isLatin1 { plan.latin1Lines.append(line) } else { plan.headerLines.append(line) }
            }
        }
        guard plan.usesProxy, let login = machine.nextDigestLogin(isProxy: true) else { return }
        let isTunnel = plan.isSecure || plan.expectsUpgrade
        let value = answer(
            login, method: isTunnel ? "CONNECT" : plan.method, target: isTunnel ? machine.origin.authority : plan.target)
        guard let value else { return }
        let lines = ["Proxy-Authorization: \(value)"]
        (plan.proxyHeaderLines, plan.proxyLatin1Lines) = login.challenge.isLatin1 ? ([], lines) : (lines, [])
        // Otherwise libcurl would answer with the user of the URL as well.
        plan.proxy = plan.proxy.map(TaskDriver.withoutUser)
    }

    private func answer(_ login: TaskLogins.DigestLogin, method: String, target: String) -> String? {
        let algorithm = login.challenge.algorithm
        var subject = DigestChallenge.Subject(
            method: method, target: target, count: login.count,
            clientNonce: (0..<2).map { _ in String(UInt64.random(in: 0 ... .max), radix: 16) }.joined())
        if login.challenge.protection == .authWithBody { subject.bodyHash = bodyHash(algorithm) }
        return login.challenge.answer(user: login.user, password: login.password, to: subject) {
            algorithm.hash($0, isLatin1: login.challenge.isLatin1)
        }
    }

    /// The hash of the request's body, if it is in memory.
    private func bodyHash(_ algorithm: DigestChallenge.Algorithm) -> String? {
        switch machine.request.body {
        case .none: algorithm.hash("")
        case .data(let data): data.withUnsafeBytes { algorithm.hash($0) }
        case .file, .multipart, .stream: nil
        }
    }

    private static func withoutUser(_ proxy: String) -> String {
        guard let at = proxy.lastIndex(of: "@") else { return proxy }
        let start = proxy.firstRange(of: "://")?.upperBound ?? proxy.startIndex
        return start <= at ? String(proxy[..<start] + proxy[proxy.index(after: at)...]) : proxy
    }

    // MARK: - The body of the response

    private func openPartialFile(_ destination: DownloadDestination) {
        let sink = fileSink(destination)
        self.sink = sink
        let (id, core) = (task.id, task.core)
        fileWork += 1
        sink.reopen { core.post(.partialFileOpened(id, $0)) }
    }

    /// The sink of a download to `destination`; the same one for all of a task's attempts.
    private func fileSink(_ destination: DownloadDestination) -> FileSink {
        if let sink = sink as? FileSink, sink.destination == destination { return sink }
        var keeping = PartialFile.Retention(resumes: settings.resumes, record: job.record)
        if let record = job.record {
            keeping.path = record.partialFile
        } else if destination.partialFile != .remove {
            keeping.path = destination.file.path + DownloadDestination.partialFileSuffix
            keeping.continues = destination.partialFile == .keep
            // A later download finds the partial file by its path, without resume data.
            keeping.resumes = nil
        }
        let (id, core) = (task.id, task.core)
        return FileSink(
            destination, keeping: keeping, worker: settings.worker(for: id), chunks: settings.spareChunks,
            now: { [transport = loop.transport] in transport.now() },
            report: { [logger = settings.configuration.logger] in
                logger.warning("a partial file is not used", metadata: ["reason": "\($0)"])
            }
        ) { core.post(.sinkReady(id)) }
    }

    private func openSink() {
        guard let destination = machine.attempt.destination, let head = machine.attempt.head else { return }
        switch destination {
        case .memory(let maximumSize): sink = DataSink(maximumSize: maximumSize)
        case .file(let destination):
            let file = fileSink(destination)
            file.sidecar = sidecar(named: file.name(by: head))
            sink = file
        case .reader(let buffer):
            sink = ChunkSink(buffer)
            showResponse(head)
        }
        sink?.begin(expected: machine.progress.expectedToReceive)
    }

    /// Gives the response of a stream to those who await it: its body may wait for a reader for ever.
    private func showResponse(_ head: ResponseHead) {
        var metrics = machine.metrics
        metrics.taskInterval = DateInterval(start: started, end: max(started, loop.transport.date()))
        let (url, method) = (machine.request.url, machine.request.method)
        loop.outbox.resume(task.beginBody(of: TransferResponse(head: head, url: url, method: method, metrics: metrics)))
    }

    /// The sidecar that describes the partial file to a later download.
    private func sidecar(named name: String?) -> Sidecar? {
        machine.resumption.map {
            Sidecar(resumption: $0, start: task.request.url.withoutUser, boot: BootIdentifier.current, suggestedName: name)
        }
    }

    /// Passes on bytes that arrived before the sink was open.
    private func feed(_ data: Data) {
        if case .abort(let error) = data.withUnsafeBytes({ transferReceived(bytes: $0) }) {
            send(.bufferedBodyDelivered(error))
        } else {
            send(.bufferedBodyDelivered(nil))
        }
    }

    /// The sink has room again.
    private func receive() {
        guard let transfer else { return }
        if let failure = sink?.failure {
            return transfer.end(with: failure)
        }
        transfer.resumeReceiving()
    }

    private func verifyDigest(_ digest: ContentDigest) {
        guard let file = sink as? FileSink else {
            return send(
                .digestVerified(.failure(HTTPSessionError(.transferFailed, "there is no file to compare with its digest"))))
        }
        let (id, core) = (task.id, task.core)
        fileWork += 1
        file.verify(digest) { core.post(.digestVerified(id, $0)) }
    }

    /// Compares the complete upload with its files.
    private func verifyUploadDigest(_ digest: ContentDigest) {
        let (id, core, body, algorithm) = (task.id, task.core, job.upload?.body, digest.algorithm)
        fileWork += 1
        settings.worker(for: id).run { [task] in
            // A body that cannot be read again counts as verified.
            let found = body?.digest(algorithm) { task.result != nil }
            core.post(.uploadDigestVerified(id, found == nil || found == digest))
        }
    }

    // MARK: - The end

    private func discard(_ error: HTTPSessionError) {
        task.endBody()
        let (id, core) = (task.id, task.core)
        // The caller may exit as soon as the task has ended: the partial file has to be removed or complete before that.
        guard let sink, !sink.discard(error, { core.post(.delivered(id, .failure($0))) }) else {
            return delivered(.failure(error))
        }
        fileWork += 1
    }

    private func deliver() {
        task.endBody()
        guard let sink else { return delivered(.success(ReceivedBody())) }
        if let body = sink.finishNow() { return delivered(.success(body)) }
        let (id, core) = (task.id, task.core)
        fileWork += 1
        sink.finish { core.post(.delivered(id, $0)) }
    }

    private func delivered(_ body: Result<ReceivedBody, HTTPSessionError>) {
        machine.delivered(body, during: DateInterval(start: started, end: max(started, loop.transport.date())), now: loop.now)
        perform()
    }

    private func complete() {
        guard let result = machine.removeResult() else { return }
        // A response handler may have turned a stream into a download: the stream's reader is notified of the end here.
        if case .failure(let error) = result {
            task.store(machine.metrics)
            task.chunkBuffer?.finish(error)
        } else {
            task.chunkBuffer?.finish(nil)
        }
        // Before the result is set, because a reader takes the job with it.
        if !mayHaveUserObjects { task.keep(job) }
        loop.outbox.complete(task, result)
        loop.forget(task.id)
    }

    /// Whether the run may reference objects of the user.
    var mayHaveUserObjects: Bool { task.mayHaveUserObjects || !segments.isEmpty || machine.redirectCount > 0 }

    /// The objects of the run that may be the user's, to be released on the delivery queue. If the task references all of them, it alone is returned,
    /// without an allocation.
    var userObjects: any Sendable {
        let taskHasAll =
            job.segments.isEmpty && segments.isEmpty && job.upload == nil && machine.redirectCount == 0
            && !task.hasInterceptors
        return taskHasAll ? task : UserObjects(task: task, job: job, segments: segments, requests: machine.requests)
    }

    private struct UserObjects: Sendable {
        let task: TransferTask
        let job: TaskJob
        let segments: [BodySegment]
        let requests: [TransferRequest]
    }

    // MARK: - Called by the loop

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
        send(.deadlineReached(causeOfSilence: machine.isTimeoutDue(now: loop.now) ? causeOfSilence : nil))
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

/// The events of the task's transfer, as the engine reports them.
extension TaskDriver: TransferReceiver {
    func transferLookedUp() {
        send(.nameResolved)
        loop.scheduleAttemptJudgment(transfer?.connectAttempts ?? [])
    }

    func transferRefusal(from local: String) -> HTTPSessionError? { settings.refusal(of: machine.request, from: local) }

    func transferMayReuse(from local: String, to remote: String) -> Bool { loop.usesCurrentRoute(from: local, to: remote) }

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
        switch machine.receivedBytes(bytes.count, now: loop.now, arrived: { transfer?.receivedBodyBytes }) {
        case .undecided: return .pause
        case .memory: return machine.buffer(bytes)
        case .refused(let error): return .abort(error)
        case .sink: break
        }
        guard let sink else { return .accepted }
        let intake = sink.receive(bytes)
        switch intake {
        case .accepted:
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

    /// Why the attempt is still waiting: the server has acknowledged what was sent, but its TLS or HTTP is silent.
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

    // MARK: Cookies of the session's store, which other sessions may use as well

    /// Returns the stored cookies for the request that is about to be sent.
    func transferNeedsCookies(isSecure: Bool) -> [UInt8] {
        guard let store = settings.network.cookieStore, !store.isEmpty, let scope = cookieScope else { return [] }
        return store.field(for: scope, isSecure: isSecure || scope.isSecure, now: cookieTime)
    }

    /// Stores the cookies that a response sets. A proxy's response (407) sets none for the server.
    private func storeCookies(of head: ResponseHead) {
        guard head.has("set-cookie"), head.statusCode != 407, let store = settings.network.cookieStore, let scope = cookieScope
        else { return }
        store.receive(head, from: scope, isSecure: scope.isSecure || transfer?.isUpgraded == true, now: cookieTime)
    }

    /// The URL of the present attempt, for its cookies; `nil` if the request has none.
    private var cookieScope: CookieScope? {
        let request = machine.attempt.adaptedRequest ?? machine.request
        return request.options.handlesCookies == false ? nil : CookieScope(request.url)
    }

    private var cookieTime: Int64 { Int64(loop.transport.date().timeIntervalSince1970) }
}

extension FileSink {
    /// Names the file as the response suggests, if the destination permits that. - Returns: The name.
    @discardableResult
    fileprivate func name(by head: ResponseHead) -> String? {
        guard let naming = destination.naming else { return nil }
        // The destination's naming removes path separators and control characters, and limits the length.
        let name = naming.name(ContentDisposition.fileName(of: head))
        self.name(name)
        return name
    }
}
