internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes
internal import Pacing
internal import Reachability

/// What a task does next, whatever happens to it: events in, effects out, and nothing else that it could see or touch.
///
/// | question | file |
/// |---|---|
/// | What follows from a response? | `TransferMachine+Response.swift` |
/// | Which bytes are here already, and which are asked for? | `TransferMachine+Rest.swift` |
/// | What follows from a failure? | `TransferMachine+Failure.swift` |
/// | When does a task wait for the network? | `TransferMachine+Connectivity.swift` |
/// | What do handlers and interceptors decide? | `TransferMachine+Answers.swift`, `TransferMachine+Interception.swift` |
/// | How does an upload go on? | `TransferMachine+Upload.swift` |
/// | When do attempts begin, and how does the task end? | `TransferMachine+Course.swift`, `TransferMachine+End.swift` |
///
/// The effects of an event are in ``effects`` until the driver has taken them. Times are nanoseconds on a clock that does not stop.
///
/// It cannot be copied: the copies that getters of a copyable value make took 9,000 instructions a request.
struct TransferMachine: ~Copyable {
    /// The response that the bytes here began with (`nil`: an earlier task's), and where they go: what comes behind them says neither.
    struct Beginning {
        var head: ResponseHead?
        var destination: BodyDestination
    }

    /// The wait for a network.
    struct Wait {
        let since: Int64
        /// Whether what it waits for is a network that the request may use.
        var isForAllowed = false
        /// When to look again whether a network that may be used leads there: routes change without a word of the path.
        var looksAgainAt: Int64?
    }

    /// What is known of an earlier download's part.
    enum PartState {
        case unknown
        case opening
        case open
    }

    let rules: TransferRules
    /// Of the present event.
    var now: Int64 = 0
    var effects: [Effect] = []
    /// Of each ``Effect/order`` that has not been taken.
    private var orders: [Order] = []
    var random: SplitMix64

    // What decides by itself.
    var life: TaskMachine
    var retries: RetryMachine
    var logins = TaskLogins()
    /// What a download has so far, where it can be continued.
    var resumption: Resumption?
    /// An upload that goes on where it stopped.
    var upload: UploadMachine?

    // The present transaction.
    var request: TransferRequest
    var origin: Origin
    var attempt = Attempt()

    // The way that the task has come.
    var kind: TransferRules.Kind
    /// What is asked for at first: the task's request, or the one that an interceptor has put in its place.
    var start: TransferRequest
    /// Followed since the first address was asked.
    var redirects = 0
    /// Whether the present address has been asked before.
    var isAskedAgain = false
    /// Whether it has gone back to the first address since something came.
    var hasReturnedToStart = false
    /// Attempts at the present address that have brought nothing, since one has.
    var fruitlessAttempts = 0
    var needsFreshConnection = false
    /// How often in a row the server's certificates had to be asked about.
    var serverQuestions = 0
    var interceptions: Int
    /// Whether the host's budget has paid for the present attempt.
    var hasPaidRetry = false
    /// Whether anything of the task has ever been sent, or may have been.
    var hasLeft = false

    // The question to a handler.
    /// Questions are counted, and one at a time is asked.
    var question = 0
    var isAsked = false

    // The network.
    var wait: Wait?
    /// How long to wait before it is looked again whether a network may be used.
    var looksAgainAfter: Int64 = 5_000_000_000
    /// Whether the gate knows of the task.
    var isAtGate = false
    /// Whether the gate has let it go and no answer has come since.
    var wasReleased = false
    /// The retries as they were before the failures that the gate may explain yet.
    var uncounted: RetryMachine?
    /// While the task waited for another's look-up of its host's name, that had no answer.
    var isNameDoubtful = false

    // The file of a download.
    var partState = PartState.unknown
    var beginning: Beginning?
    /// The version of the file at the destination, if it may be the one that the server has.
    var finishedFile: FileValidator?
    /// Whether the digest has shown that what was here was of something else.
    var hasDistrustedPart = false

    // What is told.
    var metrics = TransferMetrics()
    var progress = TransferProgress()
    var publishedAt = Int64.min
    var hasUnpublishedProgress = false
    /// What the owner sees.
    private(set) var standing = Standing.suspended
    /// Until when the task backs off, as the owner sees it.
    private(set) var backsOffUntil: Int64?
    /// When it is looked whether anybody but the session refers to the task, if it is a stream.
    private var looksForHolderAt: Int64?
    var pendingResult: HTTPSessionError?
    /// The task's, at its end, until the driver takes it.
    var result: Result<TransferResponse, HTTPSessionError>?

    /// All requests that it holds, the present one first.
    var requests: [TransferRequest] { [request, start] + attempt.requests }

    /// `seed`: of the random numbers that spread the retries.
    init(
        _ rules: TransferRules, origin: Origin, upload: UploadMachine? = nil, interceptions: Int = 0, seed: UInt64, now: Int64
    ) {
        self.rules = rules
        self.origin = origin
        self.upload = upload
        self.interceptions = interceptions
        self.now = now
        random = SplitMix64(seed: seed)
        (request, start, kind) = (rules.request, rules.request, rules.kind)
        life = TaskMachine(limits: rules.limits)
        retries = RetryMachine(rules.retryPolicy)
        effects.reserveCapacity(8)
        if kind == .stream { looksForHolderAt = now + TransferMachine.holderInterval }
        guard upload != nil else { return }
        request = nextAttempt()
        // One that another process has begun may be at another origin than where it was made.
        self.origin = Origin(request.url) ?? origin
    }

    /// Whether nothing of the task has been tried before.
    var isFirstAttempt: Bool { life.attempts == 1 }
    var isRunning: Bool { life.state == .running }
    var isBackingOff: Bool {
        if case .backingOff = life.state { return true }
        return false
    }

    /// When ``Event/time`` is due at the latest; `nil`: never.
    var deadline: Int64? {
        // Mutating, though it changes nothing: the compiler copies the whole machine, bit by bit, for a getter that borrows it.
        mutating get {
            var due = life.deadline ?? .max
            if hasUnpublishedProgress { due = min(due, publishedAt + TransferMachine.progressInterval) }
            if let looksAgainAt = wait?.looksAgainAt { due = min(due, looksAgainAt) }
            if let looksForHolderAt { due = min(due, looksForHolderAt) }
            return due == .max ? nil : due
        }
    }

    /// Takes an event; what is not possible now changes nothing. The effects are behind those of the events before.
    mutating func handle(_ event: Event, now: Int64) {
        self.now = now
        switch event {
        case .resume: live(.resume)
        case .suspend: live(.suspend)
        case .cancel: live(.cancel)
        case .admitted: live(.admitted)
        case .nameIsDoubtful: isNameDoubtful = true
        case .partOpened(let remains): partOpened(remains)
        case .cannotStart(let error, let hasBegun): cannotStart(error, hasBegun: hasBegun)
        case .nameStaysUnanswered: failed(with: TransferMachine.unansweredName)
        case .joined(let cause): joined(cause)
        case .lookedUp: lookedUp()
        case .connected: connected()
        case .interim(let head): received(interim: head)
        case .receiverReady: live(.receiverReady)
        case .fed(let error): fed(error)
        case .breakOff: breakOff()
        case .answered(let number, let answer): answered(number, answer)
        case .verified(let isRight): verified(isRight)
        case .uploadVerified(let isRight): uploadVerified(isRight)
        case .explained(let answer): explained(answer)
        case .networkIsGone(let cause): networkIsGone(cause)
        case .networkIsBack(let delay): networkIsBack(delay: delay)
        case .networkChanged: networkChanged()
        case .networkIsAllowed: networkIsAllowed()
        case .connectionIsDoubtful(let reason): connectionIsDoubtful(reason)
        case .connectionIsGone(let reason, let cause): connectionIsGone(reason, cause)
        case .retryIsPaid:
            hasPaidRetry = true
            live(.time)
        case .retryHasToWait(let delay):
            live(.postponed(delay: delay))
            live(.time)
        case .time: timePassed()
        }
    }

    // MARK: Time

    private mutating func timePassed() {
        // Last: what follows from it ends the task.
        defer { looksForHolder() }
        if hasUnpublishedProgress, publishedAt + TransferMachine.progressInterval <= now { publishProgress() }
        if let time = wait?.looksAgainAt, time <= now {
            wait?.looksAgainAt = nil
            networkChanged()
        }
        if case .backingOff(let until) = life.state, until <= now, !wasReleased { return effects.append(.payRetry) }
        live(.time)
    }

    private mutating func looksForHolder() {
        guard let time = looksForHolderAt, time <= now else { return }
        looksForHolderAt = kind == .stream ? now + TransferMachine.holderInterval : nil
        if kind == .stream { effects.append(.lookForHolder) }
    }

    /// How often it is looked whether somebody refers to a stream's task, in nanoseconds.
    private static let holderInterval: Int64 = 1_000_000_000

    /// How often a task's progress is published, in nanoseconds.
    static let progressInterval: Int64 = 50_000_000

    // MARK: Life

    mutating func live(_ event: TaskMachine.Event) {
        for action in life.handle(event, now: now) { perform(action) }
        var end: Int64?
        if case .backingOff(let until) = life.state { end = until }
        guard end != backsOffUntil else { return }
        backsOffUntil = end
        effects.append(.backOff)
    }

    mutating func order(_ order: Order) {
        orders.append(order)
        effects.append(.order)
    }

    /// What the ``Effect/order`` that comes next in ``effects`` carries.
    mutating func takeOrder() -> Order? { orders.isEmpty ? nil : orders.removeFirst() }

    mutating func stand(_ standing: Standing) {
        self.standing = standing
        effects.append(.stand)
    }

    private mutating func perform(_ action: TaskMachine.Action) {
        switch action {
        case .enqueue:
            stopWaiting()
            stand(.waiting)
            // A task on its way (a redirect, a challenge, another try) goes before those that have not begun.
            effects.append(life.attempts > 0 ? .enqueueFirst : .enqueue)
        case .dequeue:
            isNameDoubtful = false
            effects.append(.dequeue)
            stand(.suspended)
        case .begin: begin()
        case .hold:
            effects.append(.hold)
            stand(.suspended)
        case .letGo:
            stand(.running)
            beginIfReady()
            effects.append(.letGo)
            effects.append(.judgeAttempt)
        case .abort:
            order(.measure(request))
            effects.append(.abandon)
        case .failTimedOut: failedByTimeout()
        case .leave: effects.append(isLookingUp ? .leaveLookingUp : .leave)
        case .finish(let reason): finish(reason)
        case .announceResumed:
            if isBackingOff { stand(.backingOff) }
            effects.append(.announceResumed)
        case .announceSuspended:
            leaveGate()
            stand(.suspended)
            effects.append(.announceSuspended)
        }
    }
}
