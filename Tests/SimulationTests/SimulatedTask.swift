import Foundation
import HTTPTypes
import Pacing
import Reachability

@testable import HTTPSession

/// A download as a session runs it: the real ``TaskMachine``, whose effects are performed in a simulated world, and the
/// invariants of the download.
final class SimulatedTask {
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    /// A change of the task's place in the queue.
    enum QueueChange: Hashable {
        case enqueue(isFirst: Bool)
        case leaveQueue, releaseSlot
    }

    /// A transfer that runs.
    struct Transfer {
        var transport = SimulatedTransport()
        /// The request's range and condition fields.
        var lines: [String]
        var isConnected = false
        /// An answer whose head is pending.
        var unjudged: SimulatedServer.Answer?
        var answer: SimulatedServer.Answer?
        /// The number of the answer's bytes that were delivered.
        var delivered: Int64 = 0
    }

    let id: UInt64
    let policy: RetryPolicy
    let limits: TaskStateMachine.Limits
    private let isIdempotent: Bool
    var machine: TaskMachine
    var transfer: Transfer?
    private var question: Int?
    /// Whether the task waits for the network.
    private var isWaiting = false
    /// The bytes that were present when the attempt began, and whether its response continues them.
    private var (receivedBefore, isContinued) = (Int64(0), false)
    private var isPerforming = false

    // MARK: State of the invariants
    private var startedAt: Int64?
    private var isQueued = false
    private var isHeld = false
    private var hasSlot = false
    private var notBefore: Int64 = 0
    private var begun = 0
    /// The retries since bytes were received and kept.
    private var retriesInARow = 0
    var retriesBeforeOutage: Int?
    /// The longest delay that the next retry may have.
    private var longestWait: Int64?
    private var timeBackingOff = Duration.zero
    /// The version of all received bytes; `nil` if a part was sent without a request for it.
    var version: Int?
    private(set) var isFinished = false
    private(set) var isGood = false
    private(set) var resumedBytes: Int64 = 0
    private var queueChanges: [QueueChange] = []

    init(
        id: UInt64, policy: RetryPolicy, isIdempotent: Bool, asksHandler: Bool, url: URL, limits: TaskStateMachine.Limits,
        seed: UInt64, now: Int64
    ) {
        (self.id, self.policy, self.isIdempotent, self.limits) = (id, policy, isIdempotent, limits)
        var configuration = SessionConfiguration.default
        configuration.waitsForConnectivity = true
        machine = TaskMachine(
            TransferRequest(url: url, method: isIdempotent ? .get : .post),
            to: .file(DownloadDestination(URL(fileURLWithPath: "/file"))), origin: Origin(url) ?? .unknown,
            accepting: TaskJob.successes, handlers: asksHandler ? .response : [], limits: limits, retryPolicy: policy,
            session: SessionRules(configuration, proxies: ProxyOrigins(.none, environment: [:])), seed: seed, now: now)
    }

    /// The state of a task that its owner sees.
    struct State: Hashable {
        let visible: TaskMachine.VisibleState
        let backsOffUntil: Int64?
        let isFinished: Bool
    }

    var isUnderWay: Bool { transfer != nil }
    var deadline: Int64? { machine.deadline }
    var state: State {
        State(visible: machine.visibleState, backsOffUntil: machine.backoffDeadline, isFinished: isFinished)
    }
    /// Whether the attempt has received bytes that the next one keeps.
    private var hasProgressed: Bool {
        machine.resumption != nil && received > receivedBefore && (isContinued || receivedBefore == 0)
    }
    var received: Int64 { machine.progress.bytesReceived }

    func violation(_ text: String) -> Violation { Violation(description: "task \(id), \(state): \(text)") }

    func takeQueueChanges() -> [QueueChange] {
        defer { queueChanges = [] }
        return queueChanges
    }

    // MARK: Events

    func handle(_ event: TaskMachine.Event, _ world: inout TaskSimulation) throws {
        switch event {
        case .resume: startedAt = startedAt ?? world.now
        case .networkRestored where !isWaiting: retriesBeforeOutage = nil
        default: break
        }
        machine.handle(event, now: world.now)
        try perform(&world)
    }

    /// Performs one effect after another, including those that follow from them, as `TaskDriver` does.
    func perform(_ world: inout TaskSimulation) throws {
        guard !isPerforming else { return }
        isPerforming = true
        while let effect = machine.nextEffect() { try perform(effect, &world) }
        isPerforming = false
    }

    private func perform(_ effect: TaskMachine.Effect, _ world: inout TaskSimulation) throws {
        if isFinished { throw violation("\(effect) after the end") }
        switch effect {
        case .enqueue, .enqueueFirst:
            if isQueued || hasSlot { throw violation("queued twice") }
            if world.now < notBefore { throw violation("queued \(notBefore - world.now) ns before its time") }
            if isWaiting { throw violation("queued while it waits for the network") }
            isQueued = true
            let isFirst = if case .enqueueFirst = effect { true } else { false }
            queueChanges.append(.enqueue(isFirst: isFirst))
        case .dequeue:
            if !isQueued { throw violation("dequeued without being queued") }
            isQueued = false
            queueChanges.append(.leaveQueue)
        case .startTransfer: try start(&world)
        case .suspendTransfer:
            if isHeld { throw violation("held twice") }
            isHeld = true
            try transfer?.transport.hold(true)
        case .resumeTransfer:
            if !isHeld { throw violation("released without being held") }
            isHeld = false
            try transfer?.transport.hold(false)
        case .abandon, .abandonSilently: transfer = nil
        case .releaseQueueSlot, .releaseQueueSlotDuringLookup:
            if !hasSlot { throw violation("released a connection slot that it does not have") }
            if isUnderWay { throw violation("released the connection slot of a running transfer") }
            (hasSlot, isHeld) = (false, false)
            queueChanges.append(.releaseSlot)
        case .openSink:
            let answer = transfer?.answer
            (version, retriesBeforeOutage) = (answer?.head.statusCode == 200 ? answer?.version : nil, nil)
        case .resumeReceiving: try transfer?.transport.emptyReceiver()
        case .publishBackoff: try backOff(&world)
        case .withdrawQuestion: question = nil
        case .leaveOutage: retriesBeforeOutage = nil
        case .refundRetry: world.noteSuccess()
        case .requestRetry:
            let wait = try world.retryWait()
            try handle(wait.map { .retryPostponed($0) } ?? .retryGranted, &world)
        case .finishSink:
            if let version, received != world.length(of: version) { throw violation("finished with \(received) bytes") }
            machine.delivered(.success(ReceivedBody()), during: DateInterval(), now: world.now)
            try perform(&world)
        case .completeTask:
            if isQueued || hasSlot || isUnderWay { throw violation("finished with a connection slot") }
            isFinished = true
            if case .success = machine.removeResult() { isGood = true }
        case .publishState:
            switch machine.visibleState {
            case .waiting, .suspended, .running: isWaiting = false
            case .backingOff, .waitingForConnectivity: break
            }
        case .askHandler(let number, _): question = number
        case .explainFailure: try explainFailure(&world)
        case .report(let report): try receive(report, &world)
        case .discardBody(let error):
            machine.delivered(.failure(error), during: DateInterval(), now: world.now)
            try perform(&world)
        case .openRetryBudget: world.noteTrouble()
        case .recordResolvedName, .reportStalledLookup, .checkRoutes, .reportNotSent, .publishProgress, .reportResumed,
            .reportSuspended, .reportTransaction, .deliverBufferedBody, .renameFile, .releaseBody, .recordMetrics:
            break
        case .upgradeToHTTPS, .scheduleRequestStop, .checkAllowedNetworks, .checkForReferences, .openPartialFile,
            .sendBodyRange, .sendSegments, .confirmFinishedFile, .verifyDigest, .verifyUploadDigest, .reportUploadLocation,
            .storeCredential, .recordTrust, .recordIdentity, .forgetIdentity:
            throw violation("\(effect) for a plain download")
        }
    }

    private func receive(_ report: TaskMachine.Report, _ world: inout TaskSimulation) throws {
        switch report {
        case .willRetry(let error): try checkRetry(error, &world)
        case .waitingForConnectivity:
            if let retriesBeforeOutage { retriesInARow = retriesBeforeOutage }
            (retriesBeforeOutage, notBefore, isWaiting) = (nil, 0, true)
        case .downloadContinued(let offset, _):
            guard let answer = transfer?.answer, answer.version == version, answer.bytes.lowerBound == received,
                offset == received
            else { throw violation("a partial content that does not continue the \(received) bytes") }
            resumedBytes += offset
            isContinued = true
        case .fileMoved, .fileMoveFailed: break
        case .redirected, .challenged, .serverTrustChallenged, .clientCertificateChallenged, .becameDownload, .uploadContinued:
            throw violation("\(report) for a plain download")
        }
    }

    // MARK: Attempts

    private func start(_ world: inout TaskSimulation) throws {
        begun += 1
        if transfer != nil || !hasSlot { throw violation("started without a connection slot, or twice") }
        if state.visible != .running { throw violation("started while not running") }
        if world.now < notBefore { throw violation("started before its time") }
        if isWaiting { throw violation("started while it waits for the network") }
        if begun == 1 { world.noteRequest() }
        (receivedBefore, isContinued) = (received, false)
        let lines = machine.beginDownloadAttempt()
        machine.attemptStarted(
            at: .distantPast, over: nil, with: nil, expectsHTTPS: true, expectsContinue: false, bodyLength: nil)
        transfer = Transfer(lines: lines)
    }

    func admitted(_ world: inout TaskSimulation) throws {
        if !isQueued { throw violation("admitted without being queued") }
        (isQueued, hasSlot) = (false, true)
        try handle(.admitted, &world)
    }

    /// Lets time pass. The machine's deadline may have come.
    func timePassed(_ world: inout TaskSimulation) throws {
        try handle(.deadlineReached(), &world)
        if let due = machine.deadline, due <= world.now { throw violation("still due, \(world.now - due) late") }
        if let startedAt, !isFinished, world.now >= startedAt + limits.resourceTimeout {
            throw violation("runs beyond its resource timeout")
        }
    }

    /// Answers for the outage tracker: the probe knows the cause or does not know it yet.
    private func explainFailure(_ world: inout TaskSimulation) throws {
        if hasProgressed { retriesInARow = 0 }
        guard !world.isNetworkUp, world.chance(50) else {
            if retriesBeforeOutage == nil { retriesBeforeOutage = retriesInARow }
            return try handle(.failureExplained(.unknown), &world)
        }
        try handle(.failureExplained(.missing(TaskSimulation.cause)), &world)
    }

    // MARK: Retries

    private func checkRetry(_ error: HTTPSessionError, _ world: inout TaskSimulation) throws {
        if !isIdempotent, machine.attempt.isConnected { throw violation("a request that may have been executed is retried") }
        if hasProgressed { retriesInARow = 0 }
        // A dead connection is replaced at once, and does not count as a retry.
        let backedOff = machine.metrics.timeBackingOff
        defer { timeBackingOff = backedOff }
        if machine.needsFreshConnection, backedOff == timeBackingOff { return }
        retriesInARow += 1
        if let maximum = policy.maximumRetries, retriesInARow > maximum { throw violation("\(retriesInARow) retries in a row") }
        let retryAfter = machine.attempt.head?.firstValue(of: "retry-after").flatMap { RetryAfter.parse($0, now: .distantPast) }
        let doublings = Int64(min(20, retriesInARow - 1))
        let limit = min(policy.maximumDelay.saturatingNanoseconds, policy.baseDelay.saturatingNanoseconds << doublings)
        longestWait = (retryAfter ?? 0) + max(1, limit)
    }

    /// Checks the end of a delay when the task's owner sees it.
    private func backOff(_ world: inout TaskSimulation) throws {
        guard let until = machine.backoffDeadline else { return }
        notBefore = until
        guard let longestWait else { return }
        self.longestWait = nil
        // A long delay ends on a full step of the clock, of 33 ms.
        guard until - world.now <= longestWait + 1 << 25 else { throw violation("a wait of \(until - world.now)") }
    }

    // MARK: The transfer

    /// Makes the receiver refuse further bytes.
    func fillReceiver() { transfer?.transport.fillReceiver() }

    func emptyReceiver(_ world: inout TaskSimulation) throws {
        try handle(.receiverReady, &world)
        try transfer?.transport.emptyReceiver()
    }

    /// Sets libcurl's pause bits, which the loop does at one place of its turn.
    func settle(_ world: inout TaskSimulation) throws {
        if let delivery = try transfer?.transport.settle() { try take(delivery, &world) }
    }

    /// Lets the response handler allow the response, if it was asked.
    func answer(_ world: inout TaskSimulation) throws {
        guard let question else { return }
        self.question = nil
        try handle(.handlerAnswered(question: question, .response(.allow)), &world)
    }

    /// Checks that a running task whose receiver has room makes progress after a turn of the loop.
    func checkMotion(_ world: inout TaskSimulation) throws {
        try handle(.resume, &world)
        try answer(&world)
        try emptyReceiver(&world)
        try settle(&world)
        if let transport = transfer?.transport, !transport.reads || transport.keptBytes > 0 {
            throw violation("paused for no reason")
        }
    }

    /// Lets the next event happen to the transfer.
    func advance(_ world: inout TaskSimulation) throws {
        if question != nil, world.chance(30) { return try answer(&world) }
        guard let present = transfer else { return }
        if present.transport.isListedToSettle, world.chance(60) { return try settle(&world) }
        guard present.transport.reads else {
            // The connection may lose its address while it is paused.
            return world.chance(2) ? try fail(.connectionLost, &world) : ()
        }
        guard world.isNetworkUp else {
            // An established connection may also stay silent until it times out.
            return world.chance(50) ? try fail(present.isConnected ? .connectionLost : .cannotConnectToHost, &world) : ()
        }
        guard present.isConnected else {
            // No request is sent while the task is suspended.
            guard !isHeld else { return }
            transfer?.isConnected = true
            return try handle(.connected, &world)
        }
        guard let answer = present.answer ?? present.unjudged else {
            if world.chance(10) { return try fail(.connectionLost, isDead: world.chance(50), &world) }
            return try takeHead(&world)
        }
        let left = Int64(answer.bytes.count) - present.delivered
        if left == 0 { return try finishAnswer(&world) }
        if world.chance(12) { return try fail(.connectionLost, &world) }
        if let delivery = try transfer?.transport.receive(min(left, world.random(in: 1...60_000))) { try take(delivery, &world) }
    }
}
