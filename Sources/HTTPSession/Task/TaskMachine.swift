internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes
internal import Pacing
internal import Reachability

/// Decides what a task does next. It takes events and returns effects; it has no other access to its surroundings.
///
/// | question | file |
/// |---|---|
/// | How does the task proceed after a response? | `TaskMachine+Response.swift` |
/// | Which bytes of a download are present, and which are requested? | `TaskMachine+Continuation.swift` |
/// | How does the task proceed after a failure? | `TaskMachine+Failure.swift` |
/// | When does a task wait for the network? | `TaskMachine+Connectivity.swift` |
/// | What do handlers and interceptors decide? | `TaskMachine+Answers.swift`, `TaskMachine+Interception.swift` |
/// | How does a resumable upload continue? | `TaskMachine+Upload.swift` |
/// | When do attempts begin, and how does the task end? | `TaskMachine+Attempts.swift`, `TaskMachine+End.swift` |
///
/// The effects of an event stay in ``effects`` until the driver has performed them. Times are nanoseconds on a monotonic clock
/// that includes suspend.
///
/// The type is not copyable: the copies made by getters of a copyable value took 9,000 instructions a request.
struct TaskMachine: ~Copyable {
    /// The response that brought the first bytes of the download (`nil` if an earlier task received it), and their destination.
    /// Partial content that follows has neither.
    struct FirstResponse {
        var head: ResponseHead?
        var destination: BodyDestination
    }

    /// A wait for connectivity.
    struct ConnectivityWait {
        let since: Int64
        /// The error with which the task ends if it waits too long.
        let reason: HTTPSessionError
        /// Whether the task waits for a network that the request may use.
        var isForAllowedNetwork = false
        /// The next time to check for an allowed network. Routes change without a change of the path.
        var nextCheckAt: Int64?
    }

    /// The state of an earlier download's partial file.
    enum PartialFileState {
        case unknown
        case opening
        case open
    }

    let rules: TaskRules
    /// The time of the current event.
    var now: Int64 = 0
    var effects: [Effect] = []
    /// The commands of the ``Effect/runCommand`` effects that the driver has not taken.
    private var commands: [Command] = []
    var random: SplitMix64

    // The state machines that this one consults.
    var stateMachine: TaskStateMachine
    var retries: RetryMachine
    var logins = TaskLogins()
    /// The bytes of the download so far, if the download can continue.
    @BoxedOptional var resumption: Resumption?
    /// The state of a resumable upload.
    @BoxedOptional var upload: UploadMachine?

    // The current transaction.
    var request: TransferRequest
    var origin: Origin
    var attempt = Attempt()

    // The history of the task.
    var kind: TaskRules.Kind
    /// The first request: the task's own, or the one that replaced it on an interceptor's decision.
    var initialRequest: TransferRequest
    /// The redirects followed since the first request.
    var redirectCount = 0 { didSet { if redirectCount == 0 { hasDowngraded = false } } }
    /// Whether one of them led from https to http.
    var hasDowngraded = false
    /// Whether the current URL has been requested before.
    var isRepeatRequest = false
    /// Whether the task has returned to the first request since it last received bytes.
    var hasReturnedToStart = false
    /// The attempts at the current URL that brought no bytes, since the last one that did.
    var attemptsWithoutProgress = 0
    var needsFreshConnection = false
    /// Whether a server has refused the expectation 100-continue, so that the task's requests are sent without it.
    var omitsExpectation = false
    /// The consecutive questions about the server's certificates or the client's certificate.
    var handshakeQuestions = 0
    var interceptions: Int
    /// Whether the host's retry budget has paid for the current attempt.
    var hasPaidRetry = false
    /// Whether any request of the task has been sent, or may have been.
    var hasBeenSent = false

    // The question to a handler.
    /// The number of the latest question. One question is open at a time.
    var question = 0
    var isHandlerAsked = false

    @BoxedOptional var connectivityWait: ConnectivityWait?
    /// The delay before the next check for an allowed network. It doubles, up to 60 s.
    var networkCheckInterval: Int64 = 5_000_000_000
    /// Whether the outage tracker has registered the task.
    var isTrackedForOutage = false
    /// Whether the task proceeds after an outage, and no response has arrived since.
    var hasProceededAfterOutage = false
    /// The retry state before the failures that may still prove to be part of an outage.
    @BoxedOptional var retriesBeforeOutage: RetryMachine?
    /// Whether the lookup that the task waits for, made by another task, had no answer within that task's request timeout.
    var hasStalledLookup = false

    /// The cause for which the time of the attempt may pass now: a silent server. Its driver sets it before the deadline's event.
    var causeOfSilence: Cause?

    // The file of a download.
    var partialFileState = PartialFileState.unknown
    @BoxedOptional var firstResponse: FirstResponse?
    /// The version of the file at the destination, if the server may still have that version.
    @BoxedOptional var finishedFile: FileValidator?
    /// Whether a digest mismatch has made the task discard the partial file.
    var hasRestartedAfterDigest = false
    /// Whether the attempts of a download read little at a time, because one read was decompressed to more than libcurl keeps during a pause.
    var readsSmallPieces = false

    // Published values.
    var metrics = TransferMetrics()
    var progress = TransferProgress()
    var publishedAt = Int64.min
    var hasUnpublishedProgress = false
    /// The state that the task's owner sees.
    private(set) var visibleState = VisibleState.suspended
    /// The end of the current backoff, which the task's owner sees.
    private(set) var backoffDeadline: Int64?
    /// The next check for references to a stream's task beside the session's own; `nil` for other kinds.
    private var nextReferenceCheckAt: Int64?
    var pendingError: HTTPSessionError?
    /// The task's result at its end, until the driver takes it.
    var result: Result<TransferResponse, HTTPSessionError>?

    /// All requests that the machine holds, the current one first.
    var requests: [TransferRequest] { [request, initialRequest] + attempt.requests }

    /// `seed`: the seed of the random numbers that spread retries.
    init(
        _ rules: TaskRules, origin: Origin, upload: UploadMachine? = nil, interceptions: Int = 0, seed: UInt64, now: Int64
    ) {
        self.rules = rules
        self.origin = origin
        self.upload = upload
        self.interceptions = interceptions
        self.now = now
        random = SplitMix64(seed: seed)
        (request, initialRequest, kind) = (rules.request, rules.request, rules.kind)
        stateMachine = TaskStateMachine(limits: rules.limits)
        retries = RetryMachine(rules.retryPolicy)
        effects.reserveCapacity(8)
        if kind == .stream { nextReferenceCheckAt = now + TaskMachine.referenceCheckInterval }
        guard upload != nil else { return }
        request = nextAttempt()
        // An upload begun by another process may have another origin than the request that created it.
        self.origin = Origin(request.url) ?? origin
    }

    /// Whether the current attempt is the task's first.
    var isFirstAttempt: Bool { stateMachine.attempts == 1 }
    var isRunning: Bool { stateMachine.state == .running }
    var isBackingOff: Bool {
        if case .backingOff = stateMachine.state { return true }
        return false
    }

    /// The latest time at which ``Event/deadlineReached`` is due; `nil` if no deadline is pending.
    var deadline: Int64? {
        // `mutating` although it changes nothing: the compiler copies the whole machine, bit by bit, for a getter that borrows
        // it.
        mutating get {
            var due = stateMachine.deadline ?? .max
            if hasUnpublishedProgress { due = min(due, publishedAt + TaskMachine.progressInterval) }
            if let nextCheckAt = connectivityWait?.nextCheckAt { due = min(due, nextCheckAt) }
            if let nextReferenceCheckAt { due = min(due, nextReferenceCheckAt) }
            return due == .max ? nil : due
        }
    }

    /// Takes an event. An event that is impossible in the current state changes nothing. Its effects follow those of earlier
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
        case .startFailed(let error, let hasBegun): startFailed(error, hasBegun: hasBegun)
        case .sharedLookupFailed: failed(with: TaskMachine.stalledLookupError)
        case .joinedOutage(let cause): joinedOutage(cause)
        case .nameResolved: nameResolved()
        case .connected: connected()
        case .receivedInterim(let head): receivedInterim(head)
        case .receiverReady: advance(.receiverReady)
        case .bufferedBodyDelivered(let error): bufferedBodyDelivered(error)
        case .requestStopDue: stopRequest()
        case .handlerAnswered(let number, let answer): handlerAnswered(number, answer)
        case .digestVerified(let isRight): digestVerified(isRight)
        case .uploadDigestVerified(let isRight): uploadDigestVerified(isRight)
        case .failureExplained(let answer): failureExplained(answer)
        case .networkLost(let cause): networkLost(cause)
        case .networkRestored(let delay): networkRestored(delay: delay)
        case .networkChanged: networkChanged()
        case .networkAllowed: networkAllowed()
        case .connectionSuspect(let reason): connectionSuspect(reason)
        case .connectionDead(let reason, let cause): connectionDead(reason, cause)
        case .retryGranted:
            hasPaidRetry = true
            advance(.deadlineReached)
        case .retryPostponed(let delay):
            advance(.postponed(delay: delay))
            advance(.deadlineReached)
        case .deadlineReached: timePassed()
        }
    }

    // MARK: Time

    private mutating func timePassed() {
        // This comes last because it may end the task.
        defer { checkReferencesIfDue() }
        if hasUnpublishedProgress, publishedAt + TaskMachine.progressInterval <= now { publishProgress() }
        if let time = connectivityWait?.nextCheckAt, time <= now {
            connectivityWait?.nextCheckAt = nil
            networkChanged()
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
    static let progressInterval: Int64 = 50_000_000

    // MARK: State

    mutating func advance(_ event: TaskStateMachine.Event) {
        for action in stateMachine.handle(event, now: now) { perform(action) }
        var end: Int64?
        if case .backingOff(let until) = stateMachine.state { end = until }
        guard end != backoffDeadline else { return }
        backoffDeadline = end
        effects.append(.publishBackoff)
    }

    mutating func issue(_ command: Command) {
        commands.append(command)
        effects.append(.runCommand)
    }

    /// The command of the next ``Effect/runCommand`` in ``effects``.
    mutating func takeCommand() -> Command? { commands.isEmpty ? nil : commands.removeFirst() }

    mutating func show(_ visibleState: VisibleState) {
        self.visibleState = visibleState
        effects.append(.publishState)
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
            issue(.recordMetrics(of: request))
            effects.append(.abandon)
        case .failAttemptByTimeout: failedByTimeout()
        case .releaseQueueSlot: effects.append(isLookingUp ? .releaseQueueSlotDuringLookup : .releaseQueueSlot)
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
}
