internal import ByteComparison
internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes
internal import Pacing
internal import Reachability
internal import Wire

/// Decides what a task does next. It receives events and returns effects; it has no other access to its surroundings.
///
/// ```
///  resume ─▶ queue ─admitted▶ partial file ─▶ adaptation ─▶ startTransfer ─▶ head ─▶ body ─▶ the end of the transfer
///              ▲                                                 │ failed      │ decides what follows    │
///              │                                                 ▼             ▼                         ▼
///              └── another attempt: retry, redirect, login, remaining range, part of an upload ◀── or the task's result
/// ```
///
/// The sections of this file follow that way: events and effects, attempts, the response, the continuation of downloads and uploads, failures,
/// connectivity, handlers, the end. The parts of a task that are machines or rules of their own decide for this one: ``TaskStateMachine`` (states
/// and timeouts), ``RetryMachine``, ``Resumption``, ``UploadMachine``, ``TaskLogins``, ``RedirectRules``.
///
/// The driver performs the effects of an event in order (``nextEffect()``). Times are nanoseconds on a monotonic clock that includes suspend.
///
/// The type is not copyable: the copies made by getters of a copyable value took 9,000 instructions a request.
struct TaskMachine: ~Copyable {
    // MARK: What the driver reads

    /// The request of the current transaction, and its origin.
    private(set) var request: TransferRequest
    private(set) var origin: Origin
    private(set) var attempt = Attempt()
    /// The destination of the response's body; a response handler may change it from memory to a file.
    private(set) var kind: Kind
    private(set) var logins = TaskLogins()
    /// The bytes of the download so far, if the download can continue.
    @BoxedOptional private(set) var resumption: Resumption?
    private(set) var progress = TransferProgress()
    private(set) var metrics = TransferMetrics()
    /// The state that the task's owner sees.
    private(set) var visibleState = VisibleState.suspended
    /// The end of the current backoff, which the task's owner sees.
    private(set) var backoffDeadline: Int64?
    /// The latest time at which ``Event/deadlineReached(causeOfSilence:)`` is due; `nil` if no deadline is pending.
    private(set) var deadline: Int64?
    /// The redirects followed since the first request.
    private(set) var redirectCount = 0 { didSet { if redirectCount == 0 { hasDowngraded = false } } }
    /// Whether one of them led from https to http.
    private(set) var hasDowngraded = false
    private(set) var needsFreshConnection = false
    /// Whether a server has refused the expectation 100-continue, so that the task's requests are sent without it.
    private(set) var omitsExpectation = false
    /// Whether the attempts of a download read little at a time, because one read was decompressed to more than libcurl keeps during a pause.
    private(set) var readsSmallPieces = false
    /// Whether any request of the task has been sent, or may have been.
    private(set) var hasBeenSent = false
    private(set) var isHandlerAsked = false

    /// The number of attempts so far, the current one included.
    var attemptCount: Int { stateMachine.attempts }
    var isResumableUpload: Bool { upload != nil }
    /// All requests that the machine holds, the current one first.
    var requests: [TransferRequest] { [request, initialRequest] + attempt.requests }
    /// Whether the attempt that is about to begin may wait instead, together with tasks that failed for a missing link or route
    /// to the same server.
    var mayJoinOutage: Bool { !hasProceededAfterOutage && waitsForConnectivity }
    /// Whether an attempt without a route should end. The task must be able to wait, and no probe may have reached the server
    /// yet. TCP decides about other attempts.
    var mayWaitForRoute: Bool { isRunning && mayJoinOutage }
    /// Whether the request may be sent a second time although the server may have received it.
    var mayRepeat: Bool { failure(.connectionLost).isRepeatable }
    /// Whether the complete request was sent.
    var isRequestSent: Bool { attempt.isConnected && progress.bytesSent >= progress.expectedToSend ?? 0 }
    /// Whether a timeout or the end of a wait is due, and not only a publication or a check.
    func isTimeoutDue(now: Int64) -> Bool { stateMachine.deadline.map { $0 <= now } ?? false }

    // MARK: What the task is made of

    private let session: SessionRules
    /// The task's own request. ``initialRequest`` may be the one that replaced it on an interceptor's decision.
    private let firstRequest: TransferRequest
    private let destination: BodyDestination
    /// The status codes whose responses go to a file or a reader; any other code ends the task. It is `nil` if all are acceptable.
    private let acceptableStatusCodes: ClosedRange<Int>?
    private let handlers: Handlers
    private let limits: TaskStateMachine.Limits
    private let retryPolicy: RetryPolicy
    /// Whether the download continues from resume data.
    private let hasResumeData: Bool

    // MARK: State

    /// The time of the current event.
    private var now: Int64
    /// The effects of the events so far, the first ``performedCount`` of which the driver has performed.
    private var effects: [Effect] = []
    private var performedCount = 0
    private var random: SplitMix64
    private var stateMachine: TaskStateMachine
    private var retries: RetryMachine
    /// The state of a resumable upload.
    @BoxedOptional private var upload: UploadMachine?

    private var initialRequest: TransferRequest
    /// Whether the current URL has been requested before.
    private var isRepeatRequest = false
    /// Whether the task has returned to the first request since it last received bytes.
    private var hasReturnedToStart = false
    /// The attempts at the current URL that brought no bytes, since the last one that did.
    private var attemptsWithoutProgress = 0
    /// The consecutive questions about the server's certificates or the client's certificate.
    private var handshakeQuestions = 0
    private var interceptions: Int
    /// Whether the host's retry budget has paid for the current attempt.
    private var hasPaidRetry = false
    /// The number of the latest question to a handler. One question is open at a time.
    private var question = 0

    @BoxedOptional private var connectivityWait: ConnectivityWait?
    /// The delay before the next check for an allowed network. It doubles, up to 60 s.
    private var networkCheckInterval: Int64 = 5_000_000_000
    /// Whether the outage tracker has registered the task.
    private var isTrackedForOutage = false
    /// Whether the task proceeds after an outage, and no response has arrived since.
    private var hasProceededAfterOutage = false
    /// The retry state before the failures that may still prove to be part of an outage.
    @BoxedOptional private var retriesBeforeOutage: RetryMachine?
    /// Whether the lookup that the task waits for, made by another task, had no answer within that task's request timeout.
    private var hasStalledLookup = false
    private var causeOfSilence: Cause?

    private var partialFileState = PartialFileState.unknown
    @BoxedOptional private var firstResponse: FirstResponse?
    /// The version of the file at the destination, if the server may still have that version.
    @BoxedOptional private var finishedFile: FileValidator?
    /// Whether a digest mismatch has made the task discard the partial file.
    private var hasRestartedAfterDigest = false

    private var publishedAt = Int64.min
    private var hasUnpublishedProgress = false
    /// The next check for references to a stream's task beside the session's own; `nil` for other kinds.
    private var nextReferenceCheckAt: Int64?
    private var pendingError: HTTPSessionError?
    private var result: Result<TransferResponse, HTTPSessionError>?

    /// `interceptions` is the number of times that interceptors have repeated the request before this task, `seed` the seed of the random numbers that
    /// spread retries.
    init(
        _ request: TransferRequest, to destination: BodyDestination, origin: Origin,
        accepting acceptableStatusCodes: ClosedRange<Int>?,
        handlers: Handlers, limits: TaskStateMachine.Limits, retryPolicy: RetryPolicy, upload: UploadMachine? = nil,
        hasResumeData: Bool = false, interceptions: Int = 0, session: SessionRules, seed: UInt64, now: Int64
    ) {
        self.session = session
        (firstRequest, initialRequest, self.request) = (request, request, request)
        self.destination = destination
        self.origin = origin
        self.acceptableStatusCodes = acceptableStatusCodes
        self.handlers = handlers
        self.limits = limits
        self.retryPolicy = retryPolicy
        self.hasResumeData = hasResumeData
        self.interceptions = interceptions
        self.now = now
        kind =
            switch destination {
            case .memory: .data
            case .file: .download
            case .reader: .stream
            }
        random = SplitMix64(seed: seed)
        stateMachine = TaskStateMachine(limits: limits)
        retries = RetryMachine(retryPolicy)
        effects.reserveCapacity(8)
        if kind == .stream { nextReferenceCheckAt = now + TaskMachine.referenceCheckInterval }
        updateDeadline()
        guard let upload else { return }
        self.upload = upload
        self.request = nextAttempt()
        // An upload begun by another process may have another origin than the request that created it.
        self.origin = Origin(self.request.url) ?? origin
    }

    // MARK: - Events

    /// Handles an event. An event that is impossible in the current state changes nothing. Its effects follow those of earlier
    /// events.
    mutating func handle(_ event: Event, now: Int64) {
        self.now = now
        switch event {
        case .resume: advance(.resume)
        case .suspend: advance(.suspend)
        case .cancel: advance(.cancel)
        case .admitted: advance(.admitted)
        case .sharedLookupStalled: hasStalledLookup = true
        case .partialFileOpened(let remains): partialFileOpened(remains)
        case .startFailed(let error, let hasBegun):
            attempt.lookupEnded()
            if !waitForAllowedNetwork(after: error, hasBegun: hasBegun) { end(with: error) }
        case .sharedLookupFailed:
            failed(with: HTTPSessionError(.timedOut, "the lookup of the host's name for an earlier task had no answer"))
        case .joinedOutage(let cause):
            isTrackedForOutage = true
            beginConnectivityWait(for: cause, after: nil)
            proceed(with: request, .attemptEndedOffline)
        case .nameResolved:
            attempt.lookupEnded()
            effects.append(.recordResolvedName)
        case .connected:
            attempt.phase = .connected
            hasBeenSent = true
            noteActivity()
            effects.append(.recordResolvedName)
        case .receivedInterim(let head):
            noteReceived()
            if upload != nil { receivedUploadInterim(head) }
        case .receiverReady: advance(.receiverReady)
        case .bufferedBodyDelivered(let error): bufferedBodyDelivered(error)
        case .requestStopDue: stopRequest()
        case .handlerAnswered(let number, let answer): handlerAnswered(number, answer)
        case .digestVerified(let isRight): digestVerified(isRight)
        case .uploadDigestVerified(let isRight): uploadDigestVerified(isRight)
        case .failureExplained(let answer): failureExplained(answer)
        case .networkLost(let cause): networkLost(cause)
        case .networkRestored(let delay): networkRestored(delay: delay)
        case .networkChanged: checkAllowedNetworks()
        case .networkAllowed: if connectivityWait?.isForAllowedNetwork == true { networkRestored(delay: 0) }
        case .connectionSuspect(let reason): connectionSuspect(reason)
        case .connectionDead(let reason, let cause): connectionDead(reason, cause)
        case .retryGranted:
            hasPaidRetry = true
            advance(.deadlineReached)
        case .retryPostponed(let delay):
            advance(.postponed(delay: delay))
            advance(.deadlineReached)
        case .deadlineReached(let cause):
            causeOfSilence = cause
            timePassed()
        }
        updateDeadline()
    }

    /// Handles the head of a final response (RFC 9110 section 15). The first rule that applies decides how the task proceeds.
    ///
    /// `date` is the wall-clock time, to interpret the head's dates. - Returns: How to treat the body.
    mutating func receivedHead(_ head: ResponseHead, at date: Date, now: Int64) -> Intake {
        self.now = now
        noteReceived()
        handshakeQuestions = 0
        needsFreshConnection = false
        leaveOutage()
        advance(.answered)
        (attempt.head, attempt.headDate) = (head, date)
        let intake = judge(head)
        updateDeadline()
        return intake
    }

    /// Handles the next `count` bytes of the body, and returns their destination. `arrived` returns the bytes received so far, before decompression.
    mutating func receivedBytes(_ count: Int, now: Int64, arrived: () -> Int64?) -> ByteDestination {
        self.now = now
        noteReceived()
        updateDeadline()
        switch attempt.body {
        case .undecided: return .undecided
        case .buffered, .errorBody: return .memory
        case .streamed: break
        }
        let total = progress.bytesReceived + Int64(count)
        if attempt.isPartialContent, let completeLength = resumption?.total, total > completeLength {
            return .refused(HTTPSessionError(.badServerResponse, "the server sent more than the remaining range"))
        }
        // The check also covers a request that asks for no compression: a server may send Transfer-Encoding (RFC 9112 section
        // 6.1) unasked.
        let fresh = attempt.isPartialContent ? total - attempt.receivedBefore : total
        let maximumRatio = session.configuration.maximumDecompressionRatio
        if fresh > 8 << 20, let arrived = arrived(), fresh / Int64(maximumRatio) > max(arrived, 1) {
            return .refused(
                HTTPSessionError(
                    .responseTooLarge, "the response decompresses to more than \(maximumRatio) times its size"))
        }
        return .sink
    }

    /// Buffers bytes of a response that is not the result.
    mutating func buffer(_ bytes: UnsafeRawBufferPointer) -> Intake {
        switch attempt.body {
        case .undecided, .streamed: return .accepted
        case .buffered(var data):
            guard data.count + bytes.count <= Attempt.maximumBufferedLength else {
                // The remaining bytes of this response are not needed; the transaction after it is.
                attempt.isBodyRejected = true
                return .abort(HTTPSessionError(.transferFailed, "the body of an intermediate response is too long"))
            }
            attempt.body = .undecided
            data.append(contentsOf: bytes)
            attempt.body = .buffered(data)
            return .accepted
        case .errorBody(var data):
            attempt.body = .errorBody(Data())
            data.append(contentsOf: bytes.prefix(Attempt.maximumErrorBodyLength - data.count))
            attempt.body = .errorBody(data)
            guard data.count < Attempt.maximumErrorBodyLength else {
                attempt.isBodyRejected = true
                return .abort(unacceptable(data))
            }
            return .accepted
        }
    }

    /// The sink has accepted `count` bytes.
    mutating func sinkAccepted(_ count: Int) {
        progress.bytesReceived += Int64(count)
        publishProgress()
        updateDeadline()
    }

    /// The sink accepts no more bytes for now.
    mutating func receiverBecameFull() {
        _ = stateMachine.handle(.receiverFull, now: now)
        updateDeadline()
    }

    /// The engine has read `count` more bytes of the request's body.
    mutating func bodyProvided(_ count: Int, now: Int64) {
        self.now = now
        noteActivity()
        progress.bytesSent += Int64(count)
        publishProgress()
        updateDeadline()
    }

    /// libcurl sends the body again because the connection died, even if the server had received some of it.
    mutating func bodyRewound() {
        attempt.sentBeforeRewind = sentEnd
        progress.bytesSent = upload?.bodyStart ?? 0
    }

    /// The transfer has ended; `failure` says why there is no complete response.
    mutating func transferFinished(_ facts: TransferFacts, _ failure: TransferFailure?, now: Int64) {
        self.now = now
        concludeTransfer(facts, failure)
        updateDeadline()
    }

    /// The sink has finished or discarded the body. `interval` is the time from the task's first start to now.
    mutating func delivered(_ body: Result<ReceivedBody, HTTPSessionError>, during interval: DateInterval, now: Int64) {
        self.now = now
        leaveOutage()
        metrics.taskInterval = interval
        metrics.interceptionCount = interceptions
        if case .file(var destination)? = attempt.destination, case .success(let body) = body {
            destination.file = body.file ?? destination.file
            effects.append(.report(.fileMoved(destination)))
        }
        effects.append(.publishProgress)
        result = result(of: body)
        effects.append(.completeTask)
        updateDeadline()
    }

    // MARK: The start of an attempt, while the driver performs `startTransfer`

    /// Returns whether the shared lookup stalled, and resets the flag, because another task may have resolved the name since.
    mutating func resetStalledLookup() -> Bool {
        defer { hasStalledLookup = false }
        return hasStalledLookup
    }

    /// The field lines of a download's request. They ask for the unencoded representation: only its remaining range, or only a
    /// version other than that of the finished file.
    mutating func beginDownloadAttempt() -> [String] {
        attempt.receivedBefore = progress.bytesReceived
        guard isContinuable else { return [] }
        if let resumption, progress.bytesReceived > 0, let basis = resumption.basis(at: request.url) {
            attempt.rangeBasis = basis
            return resumption.fieldLines(after: progress.bytesReceived, by: basis) + ["Accept-Encoding: identity"]
        }
        let hasOwnCondition = request.headerFields[.ifNoneMatch] != nil || request.headerFields[.ifModifiedSince] != nil
        if let finishedFile, !hasOwnCondition, finishedFile.belongs(to: request.url, start: firstRequest.url) {
            attempt.condition = finishedFile
            return [finishedFile.fieldLine, "Accept-Encoding: identity"]
        }
        return ["Accept-Encoding: identity"]
    }

    /// Counts another request of a Digest login. - Returns: The login; `nil` if Digest is not used.
    mutating func nextDigestLogin(isProxy: Bool) -> TaskLogins.DigestLogin? { logins.nextDigest(isProxy: isProxy) }

    /// The engine is about to receive the request, and to read its body.
    ///
    /// `credential` is one that the request carries without a challenge. The certificate evaluation expects https, unless libcurl may upgrade the request by
    /// HSTS. `bodyLength` is `nil` if there is no body, or if its length is not known.
    mutating func attemptStarted(
        at date: Date, over network: TransactionMetrics.Network?, with credential: Credential?, expectsHTTPS: Bool,
        expectsContinue: Bool,
        bodyLength: Int64?
    ) {
        attempt.phase = .lookingUp
        (attempt.fetchStart, attempt.network) = (date, network)
        attempt.preemptiveCredential = credential
        (attempt.expectsHTTPS, attempt.expectsContinue) = (expectsHTTPS, expectsContinue)
        progress.bytesSent = upload?.bodyStart ?? 0
        progress.expectedToSend = upload?.length ?? bodyLength
    }

    // MARK: Effects

    /// The next effect, which the driver performs before it asks for another; `nil` if there is none.
    mutating func nextEffect() -> Effect? {
        guard performedCount < effects.count else {
            if performedCount > 0 {
                effects.removeAll(keepingCapacity: true)
                performedCount = 0
            }
            return nil
        }
        performedCount += 1
        return effects[performedCount - 1]
    }

    /// Adds the metrics of an attempt at `request`, which has ended or is about to be ended.
    mutating func recordMetrics(_ facts: TransferFacts, of request: TransferRequest) {
        let transaction = TransactionMetrics(
            method: request.method.rawValue, address: request.url, statusCode: attempt.head?.statusCode,
            fetchStart: attempt.fetchStart, network: attempt.network, facts: facts)
        if metrics.transactions.count >= TransferMetrics.maximumTransactions { metrics.transactions.removeFirst() }
        metrics.transactions.append(transaction)
    }

    /// Returns the result of a task that has ended, and keeps it no longer.
    mutating func removeResult() -> Result<TransferResponse, HTTPSessionError>? { result.take() }
}

// MARK: - The types of events and effects

extension TaskMachine {
    /// An event of a task. Some events have methods of their own, because they are frequent or the caller needs their answer at
    /// once. These are heads, bytes, the end of a transfer and the end of a sink.
    enum Event: Sendable {
        // MARK: The owner
        case resume
        case suspend
        case cancel

        // MARK: The queue
        case admitted
        /// Another task's request timed out during the name lookup that this task waits for.
        case sharedLookupStalled

        // MARK: The attempt
        indirect case partialFileOpened(Result<FileSink.Remains, HTTPSessionError>)
        /// The engine refused the attempt. `hasBegun`: the attempt had started, and its route (not the request) was refused.
        indirect case startFailed(HTTPSessionError, hasBegun: Bool)
        case sharedLookupFailed
        /// Other tasks wait for the same missing link or route to the same server; this task waits with them.
        indirect case joinedOutage(Cause)
        case nameResolved
        case connected
        indirect case receivedInterim(ResponseHead)
        case receiverReady
        /// The sink has accepted the buffered body, or failed with the error.
        indirect case bufferedBodyDelivered(HTTPSessionError?)
        case requestStopDue

        // MARK: The user's handlers
        indirect case handlerAnswered(question: Int, HandlerAnswer)

        // MARK: Files
        indirect case digestVerified(Result<Bool, HTTPSessionError>)
        case uploadDigestVerified(Bool)

        // MARK: The network
        indirect case failureExplained(FailureExplanation)
        /// The server's probe reports that the network is missing.
        indirect case networkLost(Cause)
        /// The server's probe reaches the server, or at least its network. `delay`: nanoseconds before the next attempt.
        case networkRestored(delay: Int64)
        /// The path has changed.
        case networkChanged
        case networkAllowed
        /// A repeatable request is made again over another route; any other connection is left to TCP.
        case connectionSuspect(String)
        /// The connection carries no more data. `cause`: what this machine lacks.
        indirect case connectionDead(String, cause: Cause?)

        // MARK: Time
        case retryGranted
        case retryPostponed(Int64)
        /// The ``TaskMachine/deadline`` has passed. `causeOfSilence`: why a timeout passes now, if the server is silent.
        indirect case deadlineReached(causeOfSilence: Cause? = nil)
    }

    /// The outage tracker's explanation of a failure.
    enum FailureExplanation: Sendable {
        /// The session has no outage tracker, or the tracker does not watch such servers.
        case unavailable
        /// The cause is not known yet.
        case unknown
        /// A link or route is missing, and may return.
        case missing(Cause)
    }

    /// The destination of received bytes.
    enum ByteDestination: Sendable {
        /// The destination is not decided yet: the transfer pauses.
        case undecided
        /// The bytes go to ``TaskMachine/buffer(_:)``.
        case memory
        case sink
        /// The bytes are rejected with this error.
        case refused(HTTPSessionError)
    }

    /// An effect, performed in order. An effect that expects an answer names the event that carries it. Effects of every request have no
    /// payload, so that a list of them needs no further memory.
    enum Effect: Sendable {
        // MARK: The queue
        /// The driver answers with ``TaskMachine/Event/admitted``.
        case enqueue
        /// Enqueues the task before tasks that have not begun.
        case enqueueFirst
        case dequeue
        /// Frees the task's slot in the queue.
        case releaseQueueSlot
        /// Frees the task's slot in the queue while the lookup of the host's name continues in its thread.
        case releaseQueueSlotDuringLookup
        /// Records that the host's name is resolved.
        case recordResolvedName
        /// Reports that the lookup had no answer within a request timeout, to all tasks that wait for it.
        case reportStalledLookup

        // MARK: The attempt
        /// Opens the partial file of an earlier download. The driver answers with
        /// ``TaskMachine/Event/partialFileOpened(_:)``.
        indirect case openPartialFile(DownloadDestination)
        /// The driver answers with ``TaskMachine/Event/startFailed(_:hasBegun:)``,
        /// ``TaskMachine/Event/sharedLookupFailed`` or ``TaskMachine/Event/joinedOutage(_:)``, or with the events of the
        /// transfer.
        case startTransfer
        case suspendTransfer
        case resumeTransfer
        /// Checks whether the connection that is being made has a route.
        case checkRoutes
        case abandon
        /// Abandons the transfer without closing its connection in protocol: no route leads to the server.
        case abandonSilently
        /// Records the metrics of the attempt at this request with ``TaskMachine/recordMetrics(_:of:)``. The next request may be
        /// another one.
        indirect case recordMetrics(of: TransferRequest)
        /// Requests the host over https from now on (RFC 6797).
        case upgradeToHTTPS
        /// Reports that the request was not sent, if none of the task's has been.
        case reportNotSent
        /// Releases the request's user-supplied body outside the loop's thread.
        indirect case releaseBody(of: TransferRequest)

        // MARK: Bodies
        /// Sends this range of the upload's body with the next request.
        indirect case sendBodyRange(from: Int64, count: Int64)
        indirect case sendSegments([BodySegment])
        /// Opens the sink of the attempt's ``Attempt/destination`` for the response's body.
        case openSink
        /// Receives again after the sink was full.
        case resumeReceiving
        /// Stops the request before its end. libcurl is informed later, by ``TaskMachine/Event/requestStopDue``.
        case scheduleRequestStop
        /// Renames the open file by a response that names it again.
        indirect case renameFile(by: ResponseHead)
        /// Confirms that the file at the destination is the requested version.
        indirect case confirmFinishedFile(FileValidator)
        /// Delivers a body that arrived before its destination was known. The driver answers with
        /// ``TaskMachine/Event/bufferedBodyDelivered(_:)``.
        indirect case deliverBufferedBody(Data)
        /// The driver answers with ``TaskMachine/Event/digestVerified(_:)``.
        indirect case verifyDigest(ContentDigest)
        /// The driver answers with ``TaskMachine/Event/uploadDigestVerified(_:)``.
        indirect case verifyUploadDigest(ContentDigest)
        /// Reports the upload's URL, which the server has sent.
        indirect case reportUploadLocation(URL)

        // MARK: The user's handlers
        /// The driver answers with ``TaskMachine/Event/handlerAnswered(question:_:)``.
        indirect case askHandler(question: Int, HandlerQuestion)
        /// Withdraws the open question from its handler.
        case withdrawQuestion
        indirect case storeCredential(Credential, AuthenticationChallenge.ProtectionSpace)
        indirect case recordTrust(ServerTrustDisposition, ServerTrustChallenge)
        indirect case recordIdentity(ClientIdentity?)
        indirect case forgetIdentity(Origin)

        // MARK: The network
        /// Asks the outage tracker why the attempt failed. The driver answers with ``TaskMachine/Event/failureExplained(_:)``.
        indirect case explainFailure(hasNoNetwork: Bool)
        /// Removes the task from the outage of its server.
        case leaveOutage
        /// Checks whether the request may be sent over the current networks. The driver answers with
        /// ``TaskMachine/Event/networkAllowed`` if so.
        case checkAllowedNetworks

        // MARK: Retries
        indirect case openRetryBudget(Origin)
        case refundRetry
        /// The driver answers with ``TaskMachine/Event/retryGranted`` or ``TaskMachine/Event/retryPostponed(_:)``.
        case requestRetry

        // MARK: The owner
        indirect case report(Report)
        /// Shows ``TaskMachine/visibleState`` to the owner.
        case publishState
        /// Shows ``TaskMachine/backoffDeadline`` to the owner.
        case publishBackoff
        case publishProgress
        case reportResumed
        case reportSuspended
        /// Reports the last of ``TransferMetrics/transactions`` to monitors.
        case reportTransaction
        /// Checks whether only the session refers to the task. The driver answers with ``TaskMachine/Event/cancel`` if so.
        case checkForReferences

        // MARK: The end
        /// Makes the result from the received body. The driver answers with ``TaskMachine/delivered(_:during:now:)``.
        case finishSink
        /// Discards the received body. The driver answers with ``TaskMachine/delivered(_:during:now:)``.
        indirect case discardBody(HTTPSessionError)
        /// Completes the task with ``TaskMachine/removeResult()``.
        case completeTask
    }

    /// A report to monitors, notifications and the task's handlers; see ``SessionEvent``.
    enum Report: Sendable {
        case redirected(ResponseHead)
        case challenged(AuthenticationChallenge)
        case serverTrustChallenged(ServerTrustChallenge)
        case clientCertificateChallenged(ClientCertificateChallenge)
        case becameDownload(DownloadDestination)
        case willRetry(HTTPSessionError)
        case waitingForConnectivity(HTTPSessionError)
        case downloadContinued(offset: Int64, total: Int64?)
        case uploadContinued(offset: Int64, total: Int64)
        case fileMoved(DownloadDestination)
        case fileMoveFailed(HTTPSessionError)
    }

    /// The state of a task that its owner sees.
    enum VisibleState: Hashable, Sendable {
        case suspended, waiting, running, backingOff, waitingForConnectivity
    }

    /// The kind of response: kept in memory, written to a file, or read in chunks.
    enum Kind: Hashable, Sendable {
        case data, download, stream
    }

    /// The handlers that the task or its session has.
    struct Handlers: OptionSet, Hashable, Sendable {
        let rawValue: UInt8
        static let response = Handlers(rawValue: 1 << 0)
        static let redirect = Handlers(rawValue: 1 << 1)
        static let challenge = Handlers(rawValue: 1 << 2)
        static let serverTrust = Handlers(rawValue: 1 << 3)
        static let clientCertificate = Handlers(rawValue: 1 << 4)
        static let interceptors = Handlers(rawValue: 1 << 5)
        /// A closure that approves each request before it is sent.
        static let sendApproval = Handlers(rawValue: 1 << 6)

        init(rawValue: UInt8) { self.rawValue = rawValue }

        init(_ handlers: TransferHandlers, hasSendApproval: Bool) {
            self = []
            if handlers.response != nil { insert(.response) }
            if handlers.redirect != nil { insert(.redirect) }
            if handlers.challenge != nil { insert(.challenge) }
            if handlers.serverTrust != nil { insert(.serverTrust) }
            if handlers.clientCertificate != nil { insert(.clientCertificate) }
            if !handlers.interceptors.isEmpty { insert(.interceptors) }
            if hasSendApproval { insert(.sendApproval) }
        }
    }
}

/// The reason why a transfer has no complete response. It is a class because most transfers succeed: its absence takes one word.
final class TransferFailure: Sendable {
    let error: HTTPSessionError
    /// The certificates about which a handler is asked.
    let challenge: ServerTrustChallenge?
    /// The acceptable authorities of a server that requests a client certificate, if none is chosen yet.
    let authorities: [String]?
    /// Whether the TLS handshake ended with an alert of either side, and not because the connection was lost.
    let isHandshakeRefusal: Bool
    /// The missing path, if this machine has no path and no route to the addresses of the attempt.
    let missingPath: MissingPath?

    /// The cause of a missing path, if it is known.
    struct MissingPath: Sendable {
        var cause: Cause?
    }

    init(
        _ error: HTTPSessionError, challenge: ServerTrustChallenge? = nil, authorities: [String]? = nil,
        isHandshakeRefusal: Bool = false, missingPath: MissingPath? = nil
    ) {
        self.error = error
        self.challenge = challenge
        self.authorities = authorities
        self.isHandshakeRefusal = isHandshakeRefusal
        self.missingPath = missingPath
    }
}

extension TaskMachine {
    // MARK: - The current transaction

    /// One request and its response. The driver reads it; only the machine changes it.
    struct Attempt {
        /// The progress of an attempt.
        enum Phase: Hashable, Sendable {
            /// The engine has not received the request.
            case preparing
            /// The interceptors have the request.
            case adapting
            /// The engine has the request, and the host's name is being resolved.
            case lookingUp
            /// The lookup has ended, with an address or without.
            case connecting
            /// The connection is established: the request may have been sent.
            case connected
            /// The response is complete, and a digest is compared.
            case verifying
        }

        /// The treatment of the response's body.
        enum Body {
            /// The treatment is not decided yet; the transfer is paused.
            case undecided
            /// The body goes to the sink.
            case streamed
            /// The body of a redirect or challenge is buffered: reading it frees the connection, and the response may turn out to be
            /// the result.
            case buffered(Data)
            /// The body of an unacceptable response is buffered for the error.
            case errorBody(Data)
        }

        /// How the task proceeds after this response.
        enum Next {
            case redirect(TransferRequest)
            case challenges([AuthenticationChallenge])
            /// The request is repeated after `delay` nanoseconds.
            case retry(delay: Int64)
            /// The request is repeated for the complete representation instead of the remaining range.
            case restart
            /// The first request follows, which redirects to the remaining range.
            case returnToStart
            /// No request follows: the bytes present are complete.
            case complete
            /// The task's interceptors decide about the response.
            case interception
            /// The upload's machine decides.
            case upload
        }

        /// The longest body of a redirect or challenge, in bytes.
        fileprivate static let maximumBufferedLength = 256 << 10
        /// The most bytes of an unacceptable response's body that its error contains.
        fileprivate static let maximumErrorBodyLength = 64 << 10

        fileprivate var phase = Phase.preparing
        /// The request as the interceptors changed it.
        fileprivate(set) var adaptedRequest: TransferRequest?
        /// The time at which the engine received the request, and the network at that time.
        fileprivate var fetchStart = Date.distantPast
        fileprivate var network: TransactionMetrics.Network?
        /// The credential that the request carried without a challenge.
        @BoxedOptional fileprivate var preemptiveCredential: Credential?
        fileprivate var expectsHTTPS = false
        /// Whether the request has the expectation 100-continue.
        fileprivate var expectsContinue = false
        fileprivate(set) var head: ResponseHead?
        /// The time at which the head arrived.
        fileprivate var headDate = Date.distantPast
        fileprivate var body = Body.undecided
        fileprivate var next: Next?
        fileprivate(set) var destination: BodyDestination?
        /// Whether the transfer has ended while a handler was asked.
        fileprivate var hasTransferEnded = false
        fileprivate var isBodyRejected = false
        /// The error that cut off the body of a redirect or challenge. It matters only if that response becomes the result.
        fileprivate var failure: HTTPSessionError?
        /// A failure that an outage may explain.
        @BoxedOptional fileprivate var pendingFailure: (error: HTTPSessionError, failure: RetryMachine.Failure)?
        /// How an upload proceeds, and why its request is to be stopped.
        @BoxedOptional fileprivate var uploadVerdict: UploadMachine.Verdict?
        @BoxedOptional fileprivate var uploadStop: UploadMachine.EarlyStop?
        /// The digest of the complete upload, as the server states it.
        @BoxedOptional fileprivate var uploadDigest: ContentDigest?
        /// The bytes of the body that were sent before libcurl rewound it.
        fileprivate var sentBeforeRewind: Int64 = 0
        /// The basis on which the request asks for the remaining range; see ``Resumption``.
        @BoxedOptional fileprivate var rangeBasis: Resumption.Basis?
        /// The version of the file at the destination, if the request asks only for another version.
        @BoxedOptional fileprivate var condition: FileValidator?
        /// The bytes of the body that were present when the attempt began.
        fileprivate var receivedBefore: Int64 = 0
        /// Whether the response's body is partial content behind the present bytes. A complete body counts as progress only after it
        /// has been continued: a server without range support would be asked without end.
        fileprivate var isPartialContent = false
        /// The head of the response that brought the first bytes, if this response brings only the remaining range, or nothing.
        @BoxedOptional fileprivate var firstResponseHead: ResponseHead?

        /// Whether the engine has received the request.
        var hasBegun: Bool {
            switch phase {
            case .preparing, .adapting: false
            case .lookingUp, .connecting, .connected, .verifying: true
            }
        }
        /// Whether the request may have been sent.
        var isConnected: Bool { phase == .connected || phase == .verifying }
        /// The requests of this attempt alone: the adapted one, and the one that a redirect proposes.
        fileprivate var requests: [TransferRequest] {
            var requests = adaptedRequest.map { [$0] } ?? []
            if case .redirect(let proposed) = next { requests.append(proposed) }
            return requests
        }
        fileprivate var bufferedBody: Data {
            if case .buffered(let data) = body { return data.prefix(Attempt.maximumErrorBodyLength) }
            return Data()
        }

        /// Records that the response concerns the bytes already present. `isPartialContent`: it brings more of them.
        fileprivate mutating func continueDownload(from firstResponse: FirstResponse?, isPartialContent: Bool) {
            self.isPartialContent = isPartialContent
            firstResponseHead = firstResponse?.head
            destination = firstResponse?.destination
        }

        /// Records that the lookup of the name has ended.
        fileprivate mutating func lookupEnded() {
            if phase == .lookingUp { phase = .connecting }
        }
    }

    /// The response that brought the first bytes of the download (`nil` if an earlier task received it), and their destination.
    /// Partial content that follows has neither.
    fileprivate struct FirstResponse {
        var head: ResponseHead?
        var destination: BodyDestination
    }

    /// A wait for connectivity.
    private struct ConnectivityWait {
        let since: Int64
        /// The error with which the task ends if it waits too long.
        let reason: HTTPSessionError
        /// Whether the task waits for a network that the request may use.
        var isForAllowedNetwork = false
        /// The next time to check for an allowed network. Routes change without a change of the path.
        var nextCheckAt: Int64?
    }

    /// The state of an earlier download's partial file.
    private enum PartialFileState {
        case unknown
        case opening
        case open
    }

    // MARK: - Time

    private mutating func updateDeadline() {
        var due = stateMachine.deadline ?? .max
        if hasUnpublishedProgress { due = min(due, publishedAt + TaskMachine.progressInterval) }
        if let nextCheckAt = connectivityWait?.nextCheckAt { due = min(due, nextCheckAt) }
        if let nextReferenceCheckAt { due = min(due, nextReferenceCheckAt) }
        deadline = due == .max ? nil : due
    }

    private mutating func timePassed() {
        // This comes last because it may end the task.
        defer { checkReferencesIfDue() }
        if hasUnpublishedProgress, publishedAt + TaskMachine.progressInterval <= now { publishProgress() }
        if let time = connectivityWait?.nextCheckAt, time <= now {
            connectivityWait?.nextCheckAt = nil
            checkAllowedNetworks()
        }
        if case .backingOff(let until) = stateMachine.state, until <= now, !hasProceededAfterOutage {
            return effects.append(.requestRetry)
        }
        advance(.deadlineReached)
    }

    private mutating func checkReferencesIfDue() {
        guard let time = nextReferenceCheckAt, time <= now else { return }
        nextReferenceCheckAt = kind == .stream ? now + TaskMachine.referenceCheckInterval : nil
        if kind == .stream { effects.append(.checkForReferences) }
    }

    /// The interval between two checks for references to a stream's task, in nanoseconds.
    private static let referenceCheckInterval: Int64 = 1_000_000_000

    /// The interval between two publications of a task's progress, in nanoseconds.
    private static let progressInterval: Int64 = 50_000_000

    /// Publishes the progress at most once per interval: publishing takes a lock and looks at the readers.
    private mutating func publishProgress() {
        guard publishedAt <= now - TaskMachine.progressInterval else {
            // The transfer may stall after this piece, so its progress is published when the interval has passed.
            hasUnpublishedProgress = true
            return
        }
        publishedAt = now
        hasUnpublishedProgress = false
        effects.append(.publishProgress)
    }

    // MARK: - The state of the task

    private var isRunning: Bool { stateMachine.state == .running }

    private mutating func advance(_ event: TaskStateMachine.Event) {
        for action in stateMachine.handle(event, now: now) { perform(action) }
        var end: Int64?
        if case .backingOff(let until) = stateMachine.state { end = until }
        guard end != backoffDeadline else { return }
        backoffDeadline = end
        effects.append(.publishBackoff)
    }

    private mutating func perform(_ action: TaskStateMachine.Action) {
        switch action {
        case .enqueue:
            stopWaiting()
            show(.waiting)
            // A task that has begun (a redirect, a challenge, a retry) goes before tasks that have not.
            effects.append(stateMachine.attempts > 0 ? .enqueueFirst : .enqueue)
        case .dequeue:
            hasStalledLookup = false
            effects.append(.dequeue)
            show(.suspended)
        case .begin: beginAttempt()
        case .suspendTransfer:
            effects.append(.suspendTransfer)
            show(.suspended)
        case .resumeTransfer:
            show(.running)
            startIfReady()
            effects.append(.resumeTransfer)
            effects.append(.checkRoutes)
        case .abortAttempt:
            effects.append(.recordMetrics(of: request))
            effects.append(.abandon)
        case .failAttemptByTimeout: failedByTimeout()
        case .releaseQueueSlot: effects.append(attempt.phase == .lookingUp ? .releaseQueueSlotDuringLookup : .releaseQueueSlot)
        case .finish(let reason): finish(reason)
        case .reportResumed:
            if isBackingOff { show(.backingOff) }
            effects.append(.reportResumed)
        case .reportSuspended:
            leaveOutage()
            show(.suspended)
            effects.append(.reportSuspended)
        }
    }

    private mutating func show(_ visibleState: VisibleState) {
        self.visibleState = visibleState
        effects.append(.publishState)
    }

    private var isBackingOff: Bool {
        if case .backingOff = stateMachine.state { return true }
        return false
    }

    /// Something was sent.
    private mutating func noteActivity() { _ = stateMachine.handle(.activity, now: now) }

    /// Something was received, or there is another reason for the server's silence: the request timeout restarts.
    private mutating func noteReceived() { _ = stateMachine.handle(.silenceEnded, now: now) }

    // MARK: - The sequence of attempts

    /// Begins an attempt: the queue has admitted the task.
    private mutating func beginAttempt() {
        show(.running)
        for request in attempt.requests { effects.append(.releaseBody(of: request)) }
        attempt = Attempt()
        if !openPartialFileIfNeeded() { startIfReady() }
    }

    /// Starts the transfer if nothing holds it back. The attempt may wait for its partial file or for its interceptors; a handler
    /// may still decide, after a failure, whether there is an attempt at all.
    private mutating func startIfReady() {
        guard isRunning, !isHandlerAsked, attempt.phase == .preparing, partialFileState != .opening, !requestAdaptationIfNeeded()
        else { return }
        effects.append(.startTransfer)
    }

    // MARK: From one attempt to the next

    /// The request of the next attempt: usually the same request. It is the first request if the target of a redirect has failed,
    /// or the request that the upload's machine chooses.
    private mutating func nextAttempt() -> TransferRequest {
        let next: TransferRequest
        if let upload {
            next = upload.transferRequest(of: firstRequest)
            effects.append(.sendBodyRange(from: upload.bodyStart, count: upload.bodyCount))
        } else {
            guard shouldReturnToStart() else { return request }
            next = initialRequest
        }
        redirectCount = 0
        moveLogins(to: next)
        return next
    }

    /// Starts another transaction of the same task after `delay` nanoseconds.
    private mutating func proceed(with next: TransferRequest, delay: Int64 = 0) {
        if delay > 0 { show(.backingOff) }
        proceed(with: next, .attemptEnded(delay: RetryStep.stepped(delay, now: now)))
    }

    private mutating func proceed(with next: TransferRequest, _ event: TaskStateMachine.Event) {
        do throws(HTTPSessionError) { origin = try session.check(next) } catch { return end(with: error) }
        switch request.body {
        case .stream, .multipart: effects.append(.releaseBody(of: request))
        default: break
        }
        request = next
        withdrawQuestion()
        advance(event)
        if stateMachine.state == .suspended {
            leaveOutage()
            show(.suspended)
        }
    }

    /// Starts a transaction whose server, and proxy, may differ.
    private mutating func proceedToAddress(of next: TransferRequest) {
        isRepeatRequest = false
        moveLogins(to: next)
        proceed(with: next)
    }

    private mutating func moveLogins(to next: TransferRequest) {
        let nextOrigin = Origin(next.url)
        logins.move(to: nextOrigin, through: nextOrigin.flatMap { session.proxies.httpProxy(for: $0) })
    }

    /// Whether the redirect's target has brought nothing twice in a row. The first URL may redirect elsewhere by now.
    private mutating func shouldReturnToStart() -> Bool {
        guard request.url != initialRequest.url, isRepeatableFromStart else { return false }
        attemptsWithoutProgress = hasProgressed ? 0 : attemptsWithoutProgress + 1
        guard attemptsWithoutProgress > 1 else { return false }
        attemptsWithoutProgress = 0
        return true
    }

    private var isRepeatableFromStart: Bool {
        guard case .none = initialRequest.body else { return false }
        return [.get, .head].contains(initialRequest.method)
    }

    /// The end of the current request's sent bytes, as an offset in the complete body.
    private var sentEnd: Int64 { max(attempt.sentBeforeRewind, progress.bytesSent) }

    // MARK: - The response

    /// Decides how the task proceeds after a response. The first rule that applies decides.
    private mutating func judge(_ head: ResponseHead) -> Intake {
        switch RedirectRules.decide(
            head, for: request, allowsInsecure: session.configuration.followsInsecureRedirects,
            forwarding: session.configuration.forwardedHeaderFields)
        {
        // An upload does not follow a redirect that changes its method.
        case .follow(let proposed) where upload == nil || proposed.method == request.method:
            return bufferBody(until: .redirect(proposed))
        case .refuse(let error): return .abort(error)
        case .none, .follow: break
        }
        if head.statusCode == 417, attempt.expectsContinue {
            omitsExpectation = true
            return restart(.unacceptableStatus, "the server does not support the expectation 100-continue")
        }
        let challenges = answerableChallenges(head)
        guard challenges.isEmpty else { return bufferBody(until: .challenges(challenges)) }
        acceptLogins(head)
        if let delay = retryDelay(insteadOf: head) { return bufferBody(until: .retry(delay: delay)) }
        hasProceededAfterOutage = false
        if hasPaidRetry, !retryPolicy.statusCodes.contains(head.statusCode) { effects.append(.refundRetry) }
        hasPaidRetry = false
        if let intake = acceptUploadResponse(head) ?? acceptRemainingRange(head) { return intake }
        if head.statusCode >= 400, isIntercepted { return bufferBody(until: .interception) }
        guard handlers.contains(.response) else { return accept(head, .allow) }
        ask(.response(head))
        return .accepted
    }

    /// Rejects the body and sends the same request again. The transfer ends: libcurl would send a request without the expectation that a server
    /// does not support (RFC 9110 section 10.1.1) itself, and its response would seem to continue this one.
    private mutating func restart(_ code: HTTPSessionError.Code, _ reason: String) -> Intake {
        attempt.next = .restart
        attempt.isBodyRejected = true
        return .abort(HTTPSessionError(code, reason))
    }

    /// Buffers the body, which is not the result, so that the connection can be reused; then `next` follows.
    private mutating func bufferBody(until next: Attempt.Next) -> Intake {
        attempt.next = next
        attempt.body = .buffered(Data())
        return .accepted
    }

    /// Chooses the destination of the final response's body.
    private mutating func accept(_ head: ResponseHead, _ disposition: TransferHandlers.ResponseDisposition) -> Intake {
        switch disposition {
        case .cancel: return .abort(HTTPSessionError(.cancelled, "the response was refused by its handler"))
        case .becomeDownload(let destination):
            if let refusal = contentRefusal(head, .file(destination)) { return .abort(refusal) }
            kind = .download
            if request.options.connectivityTimeout == nil { stateMachine.removeConnectivityTimeout() }
            effects.append(.report(.becameDownload(destination)))
            open(.file(destination), head)
        case .allow:
            if let range = acceptableStatusCodes, !range.contains(head.statusCode) {
                attempt.body = .errorBody(Data())
            } else {
                if let refusal = contentRefusal(head, destination) { return .abort(refusal) }
                open(destination, head)
            }
        }
        return .accepted
    }

    private mutating func open(_ destination: BodyDestination, _ head: ResponseHead) {
        progress.expectedToReceive = request.method == .head ? nil : head.bodyLength
        progress.bytesReceived = 0
        if case .file(let destination) = destination {
            noteCompleteRepresentation(head, to: destination)
        } else {
            // Bytes that an earlier response wrote to a file cannot continue elsewhere.
            (resumption, firstResponse) = (nil, nil)
        }
        attempt.destination = destination
        attempt.body = .streamed
        hasReturnedToStart = false
        effects.append(.openSink)
    }

    /// The error of a response whose status excludes content, and which therefore never replaces a file (RFC 9110 section
    /// 15.3.5).
    private func contentRefusal(_ head: ResponseHead, _ destination: BodyDestination) -> HTTPSessionError? {
        guard case .file = destination, [204, 205].contains(head.statusCode), request.method != .head else { return nil }
        return HTTPSessionError(
            .unacceptableStatus, "the server answered \(head.statusCode): it has no content for the file",
            context: .init(statusCode: head.statusCode))
    }

    private func unacceptable(_ body: Data) -> HTTPSessionError {
        var error = HTTPSessionError(
            .unacceptableStatus, "the server answered \(attempt.head?.statusCode ?? 0) \(attempt.head?.reasonPhrase ?? "")",
            context: .init(
                statusCode: attempt.head?.statusCode, responseBody: body,
                retryAfter: attempt.head.flatMap { RetryAfter.delay(of: $0, now: attempt.headDate) }.map { .nanoseconds($0) }))
        error.cause = attempt.head.flatMap {
            CauseOfResponse.status(
                $0, bodyBytes: body.count, from: request.url, accepted: acceptableStatusCodes.map(Set.init))
        }
        return error
    }

    // MARK: The end of a response

    /// The transfer has ended: the attempt is complete, or has failed.
    private mutating func concludeTransfer(_ facts: TransferFacts, _ failure: TransferFailure?) {
        // A lookup outlives its transfer only after a timeout; all other transfers end after the lookup's answer.
        if failure?.error.code != .timedOut || facts.nameLookup != nil { attempt.lookupEnded() } else { noteStalledLookup() }
        if facts.wasUpgraded, failure != nil, !attempt.expectsHTTPS {
            effects.append(.upgradeToHTTPS)
            return proceed(with: request)
        }
        if facts.wasSuspendedBeforeSending, failure != nil { return proceed(with: request) }
        // A fresh connection that cannot carry a further request of a login counts as lost, because it could happen each time.
        if facts.hadUnfitConnection, failure != nil, !needsFreshConnection {
            needsFreshConnection = true
            return proceed(with: request)
        }
        recordMetrics(facts, of: request)
        effects.append(.reportTransaction)
        guard let failure, !attempt.isBodyRejected else {
            guard failure == nil, let error = earlySuccess(facts) else { return concludeAttempt() }
            // Nothing of the response is used.
            (resumption, firstResponse) = (nil, nil)
            progress.bytesSent = min(progress.bytesSent, (upload?.bodyStart ?? 0) + facts.requestBodyBytes)
            return failed(with: error, facts, isEarlySuccess: true)
        }
        if facts.hadSurplus {
            // The response may belong to no request: none of it is used.
            (resumption, attempt.next) = (nil, nil)
            return failed(with: failure.error, facts, isHandshakeRefusal: failure.isHandshakeRefusal)
        }
        if askAboutServerIfNeeded(failure) || waitForAllowedNetwork(after: failure.error, hasBegun: true) { return }
        // So that the next task's handler is asked again.
        if [.clientCertificateRejected, .clientCertificateRequired].contains(failure.error.code) {
            effects.append(.forgetIdentity(origin))
        }
        // The head has already decided how the task proceeds.
        if attempt.next != nil,
            [.connectionLost, .timedOut, .badServerResponse, .cannotDecodeContent].contains(failure.error.code)
        {
            attempt.failure = failure.error
            return concludeAttempt()
        }
        if hasOverflowed(failure.error) {
            readsSmallPieces = true
            return proceed(with: request)
        }
        failed(with: attributeToNetwork(failure), facts, isHandshakeRefusal: failure.isHandshakeRefusal)
    }

    /// Whether a download failed because one read was decompressed to more than libcurl keeps while the file accepts no more (64 MiB,
    /// `DYN_PAUSE_BUFFER`): smaller reads suffice.
    private func hasOverflowed(_ error: HTTPSessionError) -> Bool {
        kind == .download && !readsSmallPieces && error.context.curlCode == TaskMachine.outOfMemory && mayRepeat
            && attempt.head?.has("content-encoding") == true
    }

    /// The number of `CURLE_OUT_OF_MEMORY`.
    private static let outOfMemory: Int32 = 27

    /// The attempt is complete: the task proceeds as decided.
    private mutating func concludeAttempt() {
        switch attempt.next {
        case .redirect(let proposed): redirect(to: proposed)
        case .challenges(let challenges): answerChallenges(challenges)
        case .retry(let delay): retry(after: unacceptable(attempt.bufferedBody), delay: delay)
        case .restart: proceed(with: request)
        case .returnToStart:
            redirectCount = 0
            proceedToAddress(of: initialRequest)
        case .complete: endWithResponse()
        case .interception: askInterceptors(about: nil)
        case .upload: proceed(with: nextAttempt())
        case nil where hasRemainingRange: requestRemainingRange()
        case nil:
            switch attempt.body {
            // The response handler has not answered yet.
            case .undecided: attempt.hasTransferEnded = true
            case .errorBody(let data): end(with: unacceptable(data))
            case .streamed, .buffered: endWithResponse()
            }
        }
    }

    /// The attempt was stopped by an error: the task proceeds as the head decided, or fails.
    private mutating func attemptStopped(by error: HTTPSessionError) {
        guard attempt.next != nil else { return failed(with: error) }
        attempt.failure = error
        concludeAttempt()
    }

    /// Ends the task with the redirect or challenge itself as its response.
    private mutating func endWithCurrentResponse() {
        guard let head = attempt.head, case .buffered(let data) = attempt.body else { return }
        guard !attempt.isBodyRejected else {
            let reason = "the response to a redirect or a challenge is longer than \(Attempt.maximumBufferedLength) bytes"
            return end(with: HTTPSessionError(.responseTooLarge, reason))
        }
        if let failure = attempt.failure { return end(with: failure) }
        attempt.next = nil
        attempt.hasTransferEnded = true
        guard handlers.contains(.response) else { return deliver(head, .allow, data) }
        ask(.response(head))
    }

    /// Delivers the final response to its destination; `data` is the part of the body received before.
    private mutating func deliver(_ head: ResponseHead, _ disposition: TransferHandlers.ResponseDisposition, _ data: Data) {
        if case .abort(let error) = accept(head, disposition) {
            effects.append(.abandon)
            return end(with: error)
        }
        if data.isEmpty { bufferedBodyDelivered(nil) } else { effects.append(.deliverBufferedBody(data)) }
    }

    /// The sink has accepted the buffered body, or failed.
    private mutating func bufferedBodyDelivered(_ error: HTTPSessionError?) {
        if let error, !attempt.isBodyRejected { return end(with: error) }
        guard !attempt.hasTransferEnded else { return concludeAttempt() }
        advance(.receiverReady)
        effects.append(.resumeReceiving)
    }

    // MARK: - The continuation of a download: the bytes that are present, and the remaining range

    // MARK: An earlier download's partial file

    /// Opens the partial file of an earlier download before the first request. - Returns: whether ``Event/partialFileOpened(_:)``
    /// follows.
    private mutating func openPartialFileIfNeeded() -> Bool {
        guard partialFileState != .open, case .file(let destination) = destination,
            hasResumeData || destination.partialFile != .remove
        else { return false }
        guard partialFileState == .unknown else { return true }
        partialFileState = .opening
        effects.append(.openPartialFile(destination))
        return true
    }

    private mutating func partialFileOpened(_ remains: Result<FileSink.Remains, HTTPSessionError>) {
        guard partialFileState == .opening, stateMachine.state != .finished else { return }
        partialFileState = .open
        switch remains {
        case .success(let remains):
            finishedFile = remains.finished
            if let partialFile = remains.part { adopt(partialFile) }
        case .failure(let error): return end(with: error)
        }
        startIfReady()
    }

    /// Adopts the bytes of a partial file if they may belong to the requested resource. Each response is compared with them.
    private mutating func adopt(_ partialFile: FileSink.Part) {
        guard case .file(let destination) = destination else { return }
        let expected = destination.expectedDigest
        if let expected, let known = partialFile.sidecar.resumption.digest, expected != known { return }
        // A validator of another resource says nothing about this one. But if the first URL is the same, it may redirect to that
        // resource again.
        guard
            expected != nil || partialFile.sidecar.resumption.isSameResource(request.url)
                || partialFile.sidecar.start.absoluteString.isExactly(initialRequest.url.withoutUser.absoluteString)
        else { return }
        resumption = partialFile.sidecar.resumption
        firstResponse = FirstResponse(head: nil, destination: self.destination)
        progress.bytesReceived = partialFile.length
        progress.expectedToReceive = partialFile.sidecar.resumption.total
        publishProgress()
    }

    /// Whether this request's response may be assembled from several. A request with range fields of its own may not.
    private var isContinuable: Bool {
        guard kind == .download, case .none = request.body else { return false }
        let fields = request.headerFields
        return request.method == .get && fields[.range] == nil && fields[.ifRange] == nil && fields[.acceptEncoding] == nil
    }

    // MARK: A response of a download

    /// Begins a complete representation, and records the validator or digest by which it can be continued later.
    private mutating func noteCompleteRepresentation(_ head: ResponseHead, to destination: DownloadDestination) {
        resumption =
            isContinuable
            ? Resumption(
                completeResponse: head, from: request.url.withoutUser, expecting: destination.expectedDigest,
                now: attempt.headDate) : nil
        firstResponse = resumption == nil ? nil : FirstResponse(head: head, destination: .file(destination))
    }

    /// Accepts the response if it continues or completes the download; `nil` if other rules decide.
    private mutating func acceptRemainingRange(_ head: ResponseHead) -> Intake? {
        if let intake = acceptUnchanged(head) { return intake }
        if mayReturnToStart(head) {
            hasReturnedToStart = true
            return bufferBody(until: .returnToStart)
        }
        guard let basis = attempt.rangeBasis, let resumption else {
            guard head.statusCode == 206, isContinuable else { return nil }
            return .abort(HTTPSessionError(.badServerResponse, "the server sent partial content (206) that was not requested"))
        }
        switch resumption.decide(head, received: progress.bytesReceived, by: basis) {
        case .append(let total):
            self.resumption?.update(from: head, total: total)
            progress.expectedToReceive = total
            metrics.bytesContinued += progress.bytesReceived
            attempt.continueDownload(from: firstResponse, isPartialContent: true)
            attempt.body = .streamed
            hasReturnedToStart = false
            if ContentDisposition.fileName(of: head) != nil { effects.append(.renameFile(by: head)) }
            effects.append(.report(.downloadContinued(offset: progress.bytesReceived, total: total)))
            return .accepted
        case .replace, .keep: return nil
        case .restart:
            self.resumption = nil
            return restart(.badServerResponse, "the remaining range is of another version")
        case .complete:
            // An earlier process received the first response. The 304 itself was not requested by the user.
            let first = firstResponse.map {
                FirstResponse(head: $0.head ?? head.completeRepresentation, destination: $0.destination)
            }
            attempt.continueDownload(from: first, isPartialContent: false)
            metrics.bytesContinued += progress.bytesReceived
            return bufferBody(until: .complete)
        }
    }

    /// Accepts a 304 (Not Modified): the file at the destination is the download's result. A 304 about another version makes the
    /// task send the request again without its condition.
    private mutating func acceptUnchanged(_ head: ResponseHead) -> Intake? {
        guard let condition = attempt.condition, head.statusCode == 304 else { return nil }
        guard condition.isConfirmed(by: head) else {
            finishedFile = nil
            return restart(.badServerResponse, "the server's 304 is about another version")
        }
        effects.append(.confirmFinishedFile(condition))
        (progress.bytesReceived, progress.expectedToReceive) = (condition.size, condition.size)
        return bufferBody(until: .complete)
    }

    /// Whether the task returns to the first request. A redirect's target may expire, as signed URLs do; the first URL then
    /// redirects to another one. The response of a new redirect target counts.
    private func mayReturnToStart(_ head: ResponseHead) -> Bool {
        guard [401, 403, 404, 410].contains(head.statusCode), request.url != initialRequest.url, !hasReturnedToStart,
            attempt.rangeBasis != nil || isRepeatRequest
        else { return false }
        return isRepeatableFromStart
    }

    // MARK: The end of a partial response

    /// Whether the attempt has received bytes that the next one keeps. A body that restarted does not count.
    private var hasProgressed: Bool {
        resumption != nil && progress.bytesReceived > attempt.receivedBefore
            && (attempt.isPartialContent || attempt.receivedBefore == 0)
    }

    private var hasRemainingRange: Bool {
        guard attempt.isPartialContent, case .streamed = attempt.body, let total = resumption?.total else { return false }
        return progress.bytesReceived < total
    }

    /// Requests the remaining range after a response shorter than requested (RFC 9110 section 15.3.7). After a response of a few
    /// bytes the task backs off. Otherwise it would send requests without a pause to a server that answers byte by byte.
    private mutating func requestRemainingRange() {
        let count = progress.bytesReceived - attempt.receivedBefore
        guard count >= TaskMachine.minimumPartLength else {
            return failed(with: HTTPSessionError(.connectionLost, "the server sent \(count) bytes of the remaining range"))
        }
        proceed(with: request)
    }

    /// The shortest partial response after which the next request follows at once, in bytes.
    private static let minimumPartLength: Int64 = 16 << 10

    // MARK: The digest

    /// Compares the complete representation with its digest, if there is one. - Returns: whether ``Event/digestVerified(_:)``
    /// follows.
    private mutating func verifyDigestIfNeeded() -> Bool {
        guard case .file(let destination)? = attempt.destination,
            let digest = destination.expectedDigest ?? resumption?.digest ?? serversDigest
        else { return false }
        // The comparison may take longer than the request timeout.
        advance(.receiverFull)
        attempt.phase = .verifying
        effects.append(.verifyDigest(digest))
        return true
    }

    /// The digest of a response that could not be continued, such as a POST's.
    private var serversDigest: ContentDigest? {
        request.method == .head ? nil : attempt.head.flatMap(ReprDigest.ofBody)
    }

    private mutating func digestVerified(_ isRight: Result<Bool, HTTPSessionError>) {
        guard attempt.phase == .verifying else { return }
        switch isRight {
        case .success(true): advance(.ended)
        case .success(false) where metrics.bytesContinued > 0 && !hasRestartedAfterDigest:
            // The partial file does not belong to the remaining range: the complete representation is requested, once.
            hasRestartedAfterDigest = true
            resumption = nil
            proceedToAddress(of: initialRequest)
        case .success(false):
            end(with: HTTPSessionError(.digestMismatch, "the file does not have the expected digest"))
        case .failure(let error): end(with: error)
        }
    }

    // MARK: - A resumable upload: its machine chooses the next request

    /// Passes a response to the upload's machine, and consults the retry policy if that machine asks for a retry.
    ///
    /// - Returns: the delay before the next attempt if this response calls for a retry; `nil` otherwise.
    private mutating func uploadRetryDelay(insteadOf head: ResponseHead) -> Int64? {
        let (end, url) = (sentEnd, request.url)
        guard let uploadVerdict = upload?.received(head, from: url, sent: end) else { return nil }
        reportUploadLocation()
        attempt.uploadVerdict = uploadVerdict
        guard case .retry(let isRequestedByServer) = uploadVerdict else { return nil }
        if let delay = retryDelay(for: head, isRequestedByServer: isRequestedByServer) { return delay }
        let isGood = (200...299).contains(head.statusCode)
        attempt.uploadVerdict = isGood ? .refuse(.init("the server does not confirm that the upload is complete")) : .final
        return nil
    }

    /// Accepts the response to an upload's request; `nil` if it is the last one, and therefore the task's response.
    private mutating func acceptUploadResponse(_ head: ResponseHead) -> Intake? {
        switch attempt.uploadVerdict {
        case nil, .retry: return nil
        case .final:
            if (200...299).contains(head.statusCode), let upload {
                // The response to a request with a body may arrive before the body is sent.
                if upload.bodyCount == 0 { progress.bytesSent = upload.length }
                let isTus = if case .tus = upload.kind { true } else { false }
                attempt.uploadDigest = ReprDigest.ofUpload(head, to: request.method, isTus: isTus)
            }
            return nil
        case .refuse(let refusal): return .abort(TaskMachine.error(refusal, statusCode: head.statusCode))
        case .next:
            announceContinued(after: head)
            return bufferBody(until: .upload)
        }
    }

    /// Reports that the upload continues behind the server's offset after a failure.
    private mutating func announceContinued(after head: ResponseHead) {
        guard let upload, case .append(let offset, _) = upload.request, offset > 0,
            request.method == .head || head.statusCode == 409
        else { return }
        metrics.bytesContinued += offset
        effects.append(.report(.uploadContinued(offset: offset, total: upload.length)))
    }

    /// Compares the complete upload's files with the digest that the server has sent, if any. - Returns: whether
    /// ``Event/uploadDigestVerified(_:)`` follows.
    private mutating func verifyUploadDigestIfNeeded() -> Bool {
        guard let digest = attempt.uploadDigest, upload != nil else { return false }
        advance(.receiverFull)
        attempt.phase = .verifying
        effects.append(.verifyUploadDigest(digest))
        return true
    }

    private mutating func uploadDigestVerified(_ isRight: Bool) {
        guard attempt.phase == .verifying else { return }
        guard !isRight else { return advance(.ended) }
        let algorithm = attempt.uploadDigest?.algorithm.rawValue ?? ""
        let reason = "the server has received other bytes than the upload's: their \(algorithm) differs"
        end(with: HTTPSessionError(.digestMismatch, reason))
    }

    private mutating func reportUploadLocation() {
        if let location = upload?.location { effects.append(.reportUploadLocation(location)) }
    }

    private mutating func receivedUploadInterim(_ head: ResponseHead) {
        guard attempt.uploadStop == nil else { return }
        let (end, url) = (sentEnd, request.url)
        attempt.uploadStop = upload?.received(interim: head, from: url, sent: end)
        reportUploadLocation()
        // This runs inside a libcurl callback, in which a transfer cannot be ended.
        if attempt.uploadStop != nil { effects.append(.scheduleRequestStop) }
    }

    /// Stops the request before its end: the next request, or the error, is known already.
    private mutating func stopRequest() {
        guard let stop = attempt.uploadStop, attempt.head == nil, attempt.hasBegun, let upload else { return }
        switch stop {
        case .refuse(let refusal):
            effects.append(.abandon)
            end(with: TaskMachine.error(refusal, statusCode: nil))
        case .acceptsOnlyParts:
            // A request that has been sent completely is left to the server's response.
            let end = sentEnd
            guard end < upload.bodyStart + upload.bodyCount else { return }
            effects.append(.abandon)
            self.upload?.lost(sent: end, hasSent: true)
            proceed(with: nextAttempt())
        }
    }

    private static func error(_ refusal: UploadMachine.Refusal, statusCode: Int?) -> HTTPSessionError {
        HTTPSessionError(refusal.code, refusal.reason, context: .init(statusCode: statusCode))
    }

    // MARK: - Failures: another attempt, or the end

    /// The attempt has failed: another one follows, or the task ends with the error.
    private mutating func failed(
        with error: HTTPSessionError, _ facts: TransferFacts? = nil, isHandshakeRefusal: Bool = false,
        isEarlySuccess: Bool = false
    ) {
        let (end, hasSent) = (sentEnd, attempt.isConnected)
        // The server may have the sent bytes of a resumable upload: it is asked first.
        let hasSentPart = upload.map { hasSent && end > $0.bodyStart } ?? false
        upload?.lost(sent: end, hasSent: hasSent)
        var failure = self.failure(error.code)
        failure.isDeadConnection =
            error.code == .connectionLost && (facts?.hadSurplus == true || attempt.head == nil && facts?.wasResent == true)
        if resumption != nil { failure.hasProgressed = hasProgressed }
        failure.isHandshakeRefusal = isHandshakeRefusal
        failure.isEarlySuccess = isEarlySuccess
        if failure.hasProgressed { retries.progressed() }
        noteSilence(&failure, restarts: failure.hasProgressed || hasSentPart)
        hasPaidRetry = false
        isRepeatRequest = true
        guard mayBeOutage(error, failure) else { return retryOrEnd(after: error, failure) }
        attempt.pendingFailure = (error, failure)
        effects.append(.explainFailure(hasNoNetwork: error.code == .notConnected && error.underlying == nil))
    }

    /// Counts the silence of the failed attempt, which ends the task after the request timeout.
    ///
    /// `isSilent`: the task has waited that long in another attempt. `restarts`: the transfer continues behind the bytes of this attempt, and gets the
    /// complete time again, as each attempt of a policy without a limit.
    private mutating func noteSilence(_ failure: inout RetryMachine.Failure, restarts: Bool) {
        guard !restarts, retryPolicy.maximumRetries != nil else { return noteReceived() }
        failure.isSilence = stateMachine.isSilent(now: now)
        _ = stateMachine.handle(.attemptFailed, now: now)
    }

    /// Retries or ends after a failure that is not attributed to an outage.
    private mutating func retryOrEnd(after error: HTTPSessionError, _ failure: RetryMachine.Failure) {
        hasProceededAfterOutage = false
        switch decide(failure) {
        case .giveUp where isIntercepted && !failure.isAlreadyDelivered: askInterceptors(about: error)
        case .giveUp: end(with: error)
        case .retryDeadConnection:
            needsFreshConnection = true
            metrics.retryCount += 1
            effects.append(.report(.willRetry(error)))
            proceed(with: nextAttempt())
        case .retry(let delay): retry(after: error, delay: delay)
        }
    }

    /// The error of a status 200 to 299 whose exchange ended before the request's body was sent; `nil` if the response is the result. No server can
    /// have accepted a body that it has not read.
    private func earlySuccess(_ facts: TransferFacts) -> HTTPSessionError? {
        guard facts.isRequestBodyCut, attempt.next == nil, let head = attempt.head, (200...299).contains(head.statusCode) else {
            return nil
        }
        if case .errorBody = attempt.body { return nil }
        // Over HTTP/2 a server may request that the client sends no more, without an error (RFC 9113 section 8.1). But a PUT succeeds only with the
        // complete body (RFC 9110 section 9.3.4), as does a resumable upload.
        guard facts.networkProtocol != "h2" || upload != nil || request.method == .put else { return nil }
        let count = (upload?.bodyStart ?? 0) + facts.requestBodyBytes
        let most = progress.expectedToSend.map { "\(min(count, $0)) of \($0) bytes" } ?? "\(count) bytes of it"
        return HTTPSessionError(
            .badServerResponse,
            "the server answered \(head.statusCode) \(head.reasonPhrase) without the complete request body: it received at most \(most)",
            context: .init(statusCode: head.statusCode))
    }

    /// The request timeout has passed without a byte sent or received.
    private mutating func failedByTimeout() {
        effects.append(.recordMetrics(of: request))
        effects.append(.abandon)
        noteStalledLookup()
        let limit = Duration.nanoseconds(limits.requestTimeout)
        let reason =
            stateMachine.hasEarlierSilence
            ? "the server sent nothing for \(limit) in several attempts" : "no byte was sent or received for \(limit)"
        var error = HTTPSessionError(.timedOut, reason)
        error.cause = causeOfSilence
        attemptStopped(by: error)
    }

    /// The delay before the request is repeated, if this response calls for a retry; `nil` if the response is taken.
    private mutating func retryDelay(insteadOf head: ResponseHead) -> Int64? {
        if upload != nil { return uploadRetryDelay(insteadOf: head) }
        return head.statusCode >= 400 ? retryDelay(for: head) : nil
    }

    /// `isRequestedByServer`: the protocol asks for a retry, whatever the policy says about the status.
    private mutating func retryDelay(for head: ResponseHead, isRequestedByServer: Bool = false) -> Int64? {
        var failure = self.failure(.unacceptableStatus)
        failure.statusCode = head.statusCode
        failure.isRequestedByServer = isRequestedByServer
        failure.retryAfter = RetryAfter.delay(of: head, now: attempt.headDate)
        guard case .retry(let delay) = decide(failure) else { return nil }
        return delay
    }

    private func failure(_ code: HTTPSessionError.Code) -> RetryMachine.Failure {
        RetryMachine.Failure(
            code: code, isIdempotent: upload?.isRepeatable ?? request.isIdempotent, hasSent: attempt.isConnected,
            hasProgressed: upload?.hasProgressed ?? false, isAlreadyDelivered: hasDeliveredStream)
    }

    /// Whether the head of a stream's response, or more, has been delivered. A repeated request could have another response.
    private var hasDeliveredStream: Bool {
        guard kind == .stream else { return false }
        if case .streamed = attempt.body { return true }
        return progress.bytesReceived > 0
    }

    private mutating func decide(_ failure: RetryMachine.Failure) -> RetryMachine.Decision {
        upload?.clearProgress()
        return retries.decide(failure, remaining: stateMachine.remainingTime(now: now), draw: random.next())
    }

    private mutating func retry(after error: HTTPSessionError, delay: Int64) {
        metrics.retryCount += 1
        metrics.timeBackingOff += .nanoseconds(delay)
        isRepeatRequest = true
        effects.append(.openRetryBudget(origin))
        effects.append(.report(.willRetry(error)))
        // Even a delay of zero goes through the backoff state: the retry budget is consulted at its end.
        proceed(with: nextAttempt(), delay: max(1, delay))
    }

    // MARK: Error attribution

    /// The error to report. If the machine certainly has no network, that is the reason, whatever libcurl reported.
    private func attributeToNetwork(_ failure: TransferFailure) -> HTTPSessionError {
        let error = failure.error
        guard let missingPath = failure.missingPath else { return error }
        switch error.code {
        case .cannotFindHost, .cannotConnectToHost: break
        // A proxy on this machine needs no network, and a proxy that has answered was reached.
        case .proxyFailed where error.context.statusCode == nil && !session.hasLoopbackProxy(before: origin): break
        default: return error
        }
        var explanation = HTTPSessionError(
            .notConnected, missingPath.cause.map { "\($0)" } ?? "there is no path to any network", context: error.context,
            underlying: error)
        explanation.cause = missingPath.cause
        return explanation
    }

    // MARK: The host's name

    /// Reports the stalled lookup, if the attempt's time passed during one, to all tasks that wait for it.
    private mutating func noteStalledLookup() {
        if attempt.phase == .lookingUp { effects.append(.reportStalledLookup) }
    }

    // MARK: - Connectivity: the wait for it, and changes of the network

    /// Whether the current request waits for connectivity. A handler may have replaced the task's request.
    private var waitsForConnectivity: Bool {
        request.options.waitsForConnectivity ?? session.configuration.waitsForConnectivity
    }

    /// Whether an outage may explain the failure. If so, the task waits for connectivity and no retry is counted.
    private func mayBeOutage(_ error: HTTPSessionError, _ failure: RetryMachine.Failure) -> Bool {
        // A failure directly after an outage counts as a retry. Otherwise the task would repeat at the rate of the probes.
        !hasProceededAfterOutage && waitsForConnectivity && failure.isRepeatable && !failure.isDeadConnection
            && TaskMachine.isNetworkError(error.code) && (retryPolicy.maximumRetries != 0 || !failure.hasSent)
    }

    private static func isNetworkError(_ code: HTTPSessionError.Code) -> Bool {
        [.notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .timedOut, .proxyFailed].contains(code)
    }

    /// The outage tracker has explained why the attempt failed.
    private mutating func failureExplained(_ answer: FailureExplanation) {
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

    /// Makes the task wait for an allowed network if the current one is not. - Returns: whether the task waits.
    private mutating func waitForAllowedNetwork(after error: HTTPSessionError, hasBegun: Bool) -> Bool {
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
        var reason = HTTPSessionError(.notConnected, "\(cause)", context: .init(of: firstRequest), underlying: error)
        reason.cause = cause
        startWaiting(ConnectivityWait(since: now, reason: reason))
    }

    private mutating func startWaiting(_ connectivityWait: ConnectivityWait) {
        self.connectivityWait = connectivityWait
        noteReceived()
        show(.waitingForConnectivity)
        effects.append(.report(.waitingForConnectivity(connectivityWait.reason)))
    }

    /// The error of a task that has waited for the longest time that its configuration allows.
    private var connectivityTimeoutError: HTTPSessionError? {
        guard let reason = connectivityWait?.reason else { return nil }
        let limit = Duration.nanoseconds(limits.connectivityTimeout)
        var error = HTTPSessionError(
            reason.code, "\(reason.reason); waited \(limit) for a network", context: reason.context, underlying: reason.underlying
        )
        error.cause = reason.cause
        return error
    }

    /// Ends the wait for connectivity and adds its duration to the metrics.
    private mutating func stopWaiting() {
        guard let connectivityWait else { return }
        metrics.timeWaitingForConnectivity += .nanoseconds(now - connectivityWait.since)
        self.connectivityWait = nil
    }

    /// Leaves the outage: a response has arrived, or none is expected. Until then an outage may explain the attempts' failures,
    /// however short they are.
    private mutating func leaveOutage() {
        stopWaiting()
        retriesBeforeOutage = nil
        guard isTrackedForOutage else { return }
        isTrackedForOutage = false
        effects.append(.leaveOutage)
    }

    // MARK: The network's changes

    /// The network is missing: the task waits for it instead of backing off.
    private mutating func networkLost(_ cause: Cause) {
        guard isBackingOff, connectivityWait == nil else { return }
        beginConnectivityWait(for: cause, after: nil)
        advance(.networkLost)
    }

    private mutating func networkRestored(delay: Int64) {
        guard connectivityWait != nil else {
            // The attempts failed for another reason.
            retriesBeforeOutage = nil
            return
        }
        hasProceededAfterOutage = true
        if delay > 0 { show(.backingOff) }
        advance(.networkRestored(delay: RetryStep.stepped(delay, now: now)))
    }

    private mutating func checkAllowedNetworks() {
        if connectivityWait?.isForAllowedNetwork == true { effects.append(.checkAllowedNetworks) }
    }

    // MARK: The connection

    private mutating func connectionSuspect(_ reason: String) {
        guard attempt.isConnected else {
            // No request was sent and no attempt failed, so the connection is made again and no retry is counted.
            effects.append(.abandonSilently)
            noteReceived()
            // The loss is newer than the probe that ended the task's wait.
            hasProceededAfterOutage = false
            return proceed(with: request)
        }
        if retryPolicy.maximumRetries != 0, mayRepeat { connectionDead(reason, nil) }
    }

    private mutating func connectionDead(_ reason: String, _ cause: Cause?) {
        // The kernel's routes are newer than the probe that ended the task's wait.
        hasProceededAfterOutage = false
        if attempt.isConnected { effects.append(.recordMetrics(of: request)) }
        effects.append(.abandonSilently)
        noteReceived()
        var error = HTTPSessionError(attempt.isConnected ? .connectionLost : .notConnected, reason)
        if !attempt.isConnected { error.cause = cause }
        attemptStopped(by: error)
    }

    // MARK: - Questions to the user's handlers, and their answers

    private mutating func ask(_ handlerQuestion: HandlerQuestion) {
        question += 1
        isHandlerAsked = true
        advance(.handlerAsked)
        effects.append(.askHandler(question: question, handlerQuestion))
    }

    /// Withdraws the open question: its answer is no longer used.
    private mutating func withdrawQuestion() {
        guard isHandlerAsked else { return }
        isHandlerAsked = false
        question += 1
        effects.append(.withdrawQuestion)
        if attempt.phase == .adapting { effects.append(.reportNotSent) }
    }

    private mutating func handlerAnswered(_ number: Int, _ answer: HandlerAnswer) {
        guard isHandlerAsked, number == question else { return }
        question += 1
        isHandlerAsked = false
        advance(.handlerAnswered)
        switch answer {
        case .response(let disposition):
            guard let head = attempt.head else { return }
            if case .buffered(let data) = attempt.body {
                deliver(head, disposition, data)
            } else {
                deliver(head, disposition, Data())
            }
        case .redirect(.follow):
            if case .redirect(let proposed) = attempt.next { followRedirect(to: proposed) }
        case .redirect(.modify): break
        case .redirect(.refuse): endWithCurrentResponse()
        case .modified(let request, .success(let segments)):
            // An upload keeps sending its current range, whatever the request's URL.
            if upload == nil { effects.append(.sendSegments(segments)) }
            followRedirect(to: request)
        case .modified(_, .failure(let error)): end(with: error)
        case .adapted(let result): adapted(result)
        case .adaptationFailed(let error): adaptationFailed(error)
        case .intercepted(let decision, let error): intercepted(decision, error)
        case .serverTrust(let challenge, let disposition): apply(disposition, to: challenge)
        case .clientCertificate(let challenge, let disposition): apply(disposition, to: challenge)
        case .challenge(let disposition): apply(disposition)
        }
    }

    // MARK: Redirects

    private mutating func redirect(to proposed: TransferRequest) {
        let maximum = session.configuration.maximumRedirects
        guard redirectCount < maximum else {
            return end(with: HTTPSessionError(.tooManyRedirects, "more than \(maximum) redirects"))
        }
        guard let head = attempt.head, handlers.contains(.redirect) else { return followRedirect(to: proposed) }
        ask(.redirect(head, proposed: proposed))
    }

    private mutating func followRedirect(to next: TransferRequest) {
        redirectCount += 1
        if origin.scheme == "https", Origin(next.url)?.scheme != "https" { hasDowngraded = true }
        metrics.redirectCount += 1
        if let head = attempt.head { effects.append(.report(.redirected(head))) }
        proceedToAddress(of: next)
    }

    // MARK: Challenges (RFC 9110 section 11)

    /// The challenges for which a credential or a handler exists.
    private mutating func answerableChallenges(_ head: ResponseHead) -> [AuthenticationChallenge] {
        guard head.statusCode == 401 || head.statusCode == 407 else { return [] }
        let challenger = head.statusCode == 407 ? session.proxies.httpProxy(for: origin) ?? origin : origin
        var challenges = AuthenticationChallenge.all(in: head, from: challenger)
        if head.statusCode == 401, let credential = attempt.preemptiveCredential {
            for challenge in challenges where challenge.scheme == .basic { logins.noteSent(credential, for: challenge) }
        }
        challenges.removeAll { DigestChallenge($0)?.protection == .authWithBody && !hasBodyInMemory }
        let renewed = Set(challenges.filter { logins.renewNonce($0) }.map(\.protectionSpace))
        for space in Set(challenges.map(\.protectionSpace)).subtracting(renewed) { logins.refuse(space) }
        for index in challenges.indices {
            challenges[index].previousFailureCount = logins.failureCount(challenges[index].protectionSpace)
        }
        let hasAnswer = handlers.contains(.challenge) || challenges.contains { knownCredential(for: $0) != nil }
        return hasAnswer ? challenges : []
    }

    /// Whether the body's hash can be computed, which `auth-int` requires (RFC 7616 section 3.4.3).
    private var hasBodyInMemory: Bool {
        switch request.body {
        case .none, .data: upload == nil
        case .file, .multipart, .stream: false
        }
    }

    private func knownCredential(for challenge: AuthenticationChallenge) -> Credential? {
        if let renewed = logins.renewedCredential(for: challenge) { return renewed }
        var candidates: [Credential] = []
        if !challenge.protectionSpace.isProxy, let own = request.url.credential { candidates.append(own) }
        if let stored = session.credentials[challenge.protectionSpace] { candidates.append(stored) }
        return candidates.first { logins.mayTry($0, for: challenge) }
    }

    private mutating func answerChallenges(_ challenges: [AuthenticationChallenge]) {
        for challenge in challenges {
            guard let credential = knownCredential(for: challenge) else { continue }
            effects.append(.report(.challenged(challenge)))
            return answer(challenge, with: credential)
        }
        askAbout(challenges)
    }

    private mutating func askAbout(_ challenges: [AuthenticationChallenge]) {
        guard let challenge = challenges.first, handlers.contains(.challenge) else { return endWithCurrentResponse() }
        attempt.next = .challenges(challenges)
        effects.append(.report(.challenged(challenge)))
        ask(.challenge(challenge))
    }

    private mutating func apply(_ disposition: TransferHandlers.ChallengeDisposition) {
        guard case .challenges(let challenges) = attempt.next, let challenge = challenges.first else { return }
        switch disposition {
        case .useCredential(let credential):
            guard credential.schemes.contains(challenge.scheme) else {
                let reason = "the credential does not fit the scheme '\(challenge.scheme.rawValue)'"
                return end(with: HTTPSessionError(.authenticationFailed, reason))
            }
            // A refused credential will be refused again. A handler that ignores the failure count would cause requests without
            // end.
            guard !logins.wasRefused(credential, for: challenge) else { return endWithCurrentResponse() }
            answer(challenge, with: credential)
        case .cancel: end(with: HTTPSessionError(.authenticationFailed, "authentication was canceled by its handler"))
        case .rejectProtectionSpace where challenges.count > 1: askAbout(Array(challenges.dropFirst()))
        case .rejectProtectionSpace, .performDefaultHandling: endWithCurrentResponse()
        }
    }

    private mutating func answer(_ challenge: AuthenticationChallenge, with credential: Credential) {
        // libcurl copies a token, and for Digest a user's name, into the request unchanged: a line break would begin another
        // field.
        guard !credential.user.hasControlCharacter, !credential.secret.hasControlCharacter else {
            let reason = "the credential has a line break, NUL or another control character"
            return end(with: HTTPSessionError(.authenticationFailed, reason))
        }
        guard logins.answerCount < TaskLogins.maximumAnswers else { return endWithCurrentResponse() }
        logins.use(credential, for: challenge)
        proceed(with: request)
    }

    private mutating func acceptLogins(_ head: ResponseHead) {
        for (space, credential) in logins.removeConfirmed() where credential.persistence == .forSession {
            // The credential was refused without another challenge.
            if head.statusCode == 407 || (head.statusCode == 401 && !space.isProxy) { continue }
            effects.append(.storeCredential(credential, space))
        }
    }

    // MARK: Handshakes that wait for a handler's answer (the attempt is then repeated)

    /// - Returns: whether a handler is asked or the task has ended.
    private mutating func askAboutServerIfNeeded(_ failure: TransferFailure) -> Bool {
        if let challenge = failure.challenge, handlers.contains(.serverTrust) {
            guard mayAskAboutServer("the server has shown other certificates", challenge.policyError) else { return true }
            effects.append(.report(.serverTrustChallenged(challenge)))
            ask(.serverTrust(challenge))
            return true
        }
        if let authorities = failure.authorities, handlers.contains(.clientCertificate),
            // A TLS 1.2 server may renegotiate and ask for a certificate after it has the request.
            !attempt.isConnected || (upload == nil && mayRepeat)
        {
            let challenge = ClientCertificateChallenge(host: origin.host, port: origin.port, authorities: authorities)
            guard mayAskAboutServer("the server has asked for a certificate", nil) else { return true }
            effects.append(.report(.clientCertificateChallenged(challenge)))
            ask(.clientCertificate(challenge))
            return true
        }
        return false
    }

    /// The limit of consecutive questions. Each server of a farm may have its own certificate. Without a limit, a server with a
    /// new certificate for every connection would cause questions without end.
    private static let maximumHandshakeQuestions = 10

    private mutating func mayAskAboutServer(_ subject: String, _ underlying: HTTPSessionError?) -> Bool {
        handshakeQuestions += 1
        guard handshakeQuestions > TaskMachine.maximumHandshakeQuestions else { return true }
        let reason = "\(subject) \(TaskMachine.maximumHandshakeQuestions) times while its handler was asked"
        end(with: HTTPSessionError(.certificateUntrusted, reason, underlying: underlying))
        return false
    }

    private mutating func apply(_ disposition: ServerTrustDisposition, to challenge: ServerTrustChallenge) {
        effects.append(.recordTrust(disposition, challenge))
        guard disposition == .accept || (disposition == .performDefaultHandling && challenge.policyError == nil) else {
            return end(
                with: challenge.policyError
                    ?? HTTPSessionError(.certificateUntrusted, "the server was rejected by the session's handler"))
        }
        proceed(with: request)
    }

    private mutating func apply(_ disposition: ClientCertificateDisposition, to challenge: ClientCertificateChallenge) {
        switch disposition {
        case .use(let identity): effects.append(.recordIdentity(identity))
        case .performDefaultHandling: effects.append(.recordIdentity(nil))
        case .cancel:
            return end(
                with: HTTPSessionError(
                    .clientCertificateRequired, "\(challenge.host) asks for a client certificate, and its handler has none"))
        }
        proceed(with: request)
    }

    // MARK: - Interceptors

    /// Shows the request to the interceptors if it goes to the origin of the first request, and asks for the approval to send it.
    ///
    /// - Returns: whether an answer is awaited.
    private mutating func requestAdaptationIfNeeded() -> Bool {
        guard attempt.adaptedRequest == nil else { return false }
        let isShown = handlers.contains(.interceptors) && origin == Origin(initialRequest.url)
        guard isShown || handlers.contains(.sendApproval) else { return false }
        attempt.phase = .adapting
        ask(.adaptation(request, isShown: isShown))
        return true
    }

    /// An interceptor's `adapt` has thrown: the interceptors decide whether the request is adapted again.
    private mutating func adaptationFailed(_ error: HTTPSessionError) {
        attempt.phase = .preparing
        effects.append(.reportNotSent)
        if isIntercepted { askInterceptors(about: error) } else { end(with: error) }
    }

    private mutating func adapted(_ result: Result<TransferRequest, HTTPSessionError>) {
        attempt.phase = .preparing
        do throws(HTTPSessionError) {
            let adapted = try result.get()
            guard try session.check(adapted) == origin else {
                throw HTTPSessionError(.interceptorFailed, "an interceptor changed the origin: it may do so only in a retry")
            }
            // A task that was suspended meanwhile asks for the approval again when it is resumed.
            if handlers.contains(.sendApproval), !isRunning { return effects.append(.reportNotSent) }
            attempt.adaptedRequest = adapted
        } catch {
            effects.append(.reportNotSent)
            return end(with: error)
        }
        startIfReady()
    }

    /// Whether the interceptors are asked about responses and errors.
    private var isIntercepted: Bool {
        handlers.contains(.interceptors) && interceptions < TransferHandlers.maximumInterceptions
    }

    private mutating func askInterceptors(about error: HTTPSessionError?) {
        ask(
            .interception(
                FailedAttempt(
                    request: attempt.adaptedRequest ?? request, response: error == nil ? attempt.head : nil, error: error,
                    retryCount: interceptions)))
    }

    private mutating func intercepted(_ decision: InterceptorDecision, _ error: HTTPSessionError?) {
        switch decision {
        case .proceed:
            if let error { end(with: error) } else { endWithCurrentResponse() }
        case .fail(let reason): end(with: HTTPSessionError.interceptorFailure(reason))
        case .retry(let delay):
            noteInterception(error)
            let delay = max(0, delay.saturatingNanoseconds)
            metrics.timeBackingOff += .nanoseconds(delay)
            proceed(with: nextAttempt(), delay: delay)
        case .retryWith where upload != nil:
            noteInterception(error)
            // The server chooses the URLs of an upload.
            proceed(with: nextAttempt())
        case .retryWith(var next):
            noteInterception(error)
            // The task's body has been read partly, so the interceptor's body is not used.
            effects.append(.releaseBody(of: next))
            next.body = request.body
            effects.append(.releaseBody(of: initialRequest))
            initialRequest = next
            redirectCount = 0
            proceedToAddress(of: next)
        }
    }

    private mutating func noteInterception(_ error: HTTPSessionError?) {
        interceptions += 1
        noteReceived()
        metrics.retryCount += 1
        effects.append(.report(.willRetry(error ?? unacceptable(attempt.bufferedBody))))
    }

    // MARK: - The end

    /// Ends the task with an error.
    private mutating func end(with error: HTTPSessionError) {
        pendingError = error
        advance(.ended)
    }

    /// Ends the task with the last response, which is complete: the sink makes the result from it.
    private mutating func endWithResponse() {
        if !verifyDigestIfNeeded(), !verifyUploadDigestIfNeeded() { advance(.ended) }
    }

    private mutating func finish(_ reason: TaskStateMachine.Reason) {
        withdrawQuestion()
        var error: HTTPSessionError? =
            switch reason {
            case .ended: pendingError
            case .cancelled: HTTPSessionError(.cancelled, "the task was canceled")
            case .resourceTimedOut:
                HTTPSessionError(.timedOut, "not done within \(Duration.nanoseconds(limits.resourceTimeout))")
            case .handlerTimedOut:
                HTTPSessionError(
                    .handlerTimedOut, "a handler did not answer within \(Duration.nanoseconds(limits.handlerTimeout))")
            case .connectivityTimedOut: connectivityTimeoutError
            }
        if reason == .resourceTimedOut { error?.cause = causeOfSilence }
        if let error { effects.append(.discardBody(error)) } else { effects.append(.finishSink) }
    }

    private mutating func result(
        of body: Result<ReceivedBody, HTTPSessionError>
    ) -> Result<TransferResponse, HTTPSessionError> {
        switch body {
        case .success(let body):
            guard let head = attempt.firstResponseHead ?? attempt.head else {
                return .failure(
                    HTTPSessionError(.badServerResponse, "there is no response", context: .init(of: firstRequest)))
            }
            return .success(
                TransferResponse(
                    head: head, url: request.url, method: request.method, data: body.data, file: body.file, metrics: metrics))
        case .failure(var error):
            error.context.url = error.context.url ?? request.url.withoutSecrets
            error.context.method = error.context.method ?? request.method.rawValue
            error.context.statusCode = error.context.statusCode ?? attempt.head?.statusCode
            // The destination may be found unusable before the first byte or after the last one.
            if error.code == .cannotMoveFile || hasUnusableDirectory(error) { effects.append(.report(.fileMoveFailed(error))) }
            return .failure(error)
        }
    }

    /// Whether the file's directory is missing or not writable. A download that wrote elsewhere first would discover that when it
    /// moves the file.
    private func hasUnusableDirectory(_ error: HTTPSessionError) -> Bool {
        error.code == .cannotWriteFile && kind == .download && FileFailure.isDestinationFault(error)
    }
}
