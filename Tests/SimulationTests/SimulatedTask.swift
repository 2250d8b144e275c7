import Foundation
import HTTPTypes
import Pacing
import Reachability

@testable import HTTPSession

/// A download as a session runs it: the shipped ``TransferMachine``, whose effects are done in a simulated world, and beside it what must be
/// true of all of it.
final class SimulatedTask {
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    /// What the task wants of its surroundings.
    enum Wish: Hashable {
        case place(isFirst: Bool)
        case noPlace, placeIsFree
    }

    /// A transfer under way.
    struct Transfer {
        var transport = SimulatedTransport()
        /// The fields that it asks by.
        var lines: [String]
        var isConnected = false
        /// An answer whose head is pending.
        var unjudged: SimulatedServer.Answer?
        var answer: SimulatedServer.Answer?
        /// Of the answer's bytes.
        var delivered: Int64 = 0
    }

    let id: UInt64
    let policy: RetryPolicy
    let limits: TaskMachine.Limits
    private let isIdempotent: Bool
    var machine: TransferMachine
    var transfer: Transfer?
    private var question: Int?
    private var isPerforming = false

    // What must be true.
    private var startedAt: Int64?
    private var isInLine = false
    private var isHeld = false
    private var hasPlace = false
    private var notBefore: Int64 = 0
    private var begun = 0
    /// Retries since bytes came that are kept, and before the failures that the gate may explain yet.
    private var triesInARow = 0
    var triesBeforeTrouble: Int?
    /// The longest wait that a retry may ask for, when the next one is asked for.
    private var longestWait: Int64?
    private var timeBackingOff = Duration.zero
    /// The version that all bytes are of; `nil`: of none, because a part was sent where nobody asked for one.
    var version: Int?
    private(set) var isFinished = false
    private(set) var isGood = false
    private(set) var resumedBytes: Int64 = 0
    private var wishes: [Wish] = []

    init(
        id: UInt64, policy: RetryPolicy, isIdempotent: Bool, asksHandler: Bool, url: URL, limits: TaskMachine.Limits,
        seed: UInt64, now: Int64
    ) {
        (self.id, self.policy, self.isIdempotent, self.limits) = (id, policy, isIdempotent, limits)
        var configuration = SessionConfiguration.default
        configuration.waitsForConnectivity = true
        let rules = TransferRules(
            session: SessionRules(configuration, proxies: ProxyOrigins(.none, environment: [:])),
            request: TransferRequest(url: url, method: isIdempotent ? .get : .post), kind: .download,
            destination: .file(DownloadDestination(URL(fileURLWithPath: "/file"))),
            acceptableStatusCodes: TaskSpecification.successes, handlers: asksHandler ? .response : [], limits: limits,
            retryPolicy: policy, hasResumeData: false)
        machine = TransferMachine(rules, origin: Origin(url) ?? .unknown, seed: seed, now: now)
    }

    var isUnderWay: Bool { transfer != nil }
    var deadline: Int64? { machine.deadline }
    var state: TaskMachine.State { machine.taskMachine.state }
    var received: Int64 { machine.progress.received }

    func violation(_ text: String) -> Violation { Violation(description: "task \(id), \(state): \(text)") }

    func takeWishes() -> [Wish] {
        defer { wishes = [] }
        return wishes
    }

    // MARK: Events

    func handle(_ event: TransferMachine.Event, _ world: inout TransferSimulation) throws {
        switch event {
        case .resume: startedAt = startedAt ?? world.now
        case .networkRestored where machine.connectivityWait == nil: triesBeforeTrouble = nil
        default: break
        }
        machine.handle(event, now: world.now)
        try perform(&world)
    }

    /// As `TransferDriver` does: one effect after another, also those that follow from doing them.
    func perform(_ world: inout TransferSimulation) throws {
        guard !isPerforming else { return }
        isPerforming = true
        var index = 0
        while index < machine.effects.count {
            try perform(machine.effects[index], &world)
            index += 1
        }
        machine.effects = []
        isPerforming = false
    }

    private func perform(_ effect: TransferMachine.Effect, _ world: inout TransferSimulation) throws {
        if isFinished { throw violation("\(effect) behind the end") }
        switch effect {
        case .enqueue, .enqueueFirst:
            if isInLine || hasPlace { throw violation("in line twice") }
            if world.now < notBefore { throw violation("in line before its time, \(notBefore - world.now) early") }
            if machine.connectivityWait != nil { throw violation("in line while it waits for the network") }
            isInLine = true
            if case .enqueueFirst = effect { wishes.append(.place(isFirst: true)) } else { wishes.append(.place(isFirst: false)) }
        case .dequeue:
            if !isInLine { throw violation("leaves a line that it does not stand in") }
            isInLine = false
            wishes.append(.noPlace)
        case .startTransfer: try start(&world)
        case .suspendTransfer:
            if isHeld { throw violation("holds what does not move") }
            isHeld = true
            try transfer?.transport.hold(true)
        case .resumeTransfer:
            if !isHeld { throw violation("lets go what is not held") }
            isHeld = false
            try transfer?.transport.hold(false)
        case .abandon, .abandonSilently: transfer = nil
        case .releaseQueueSlot, .releaseQueueSlotDuringLookup:
            if !hasPlace { throw violation("gives back a place that it does not have") }
            if isUnderWay { throw violation("gives back the place of a transfer that goes on") }
            (hasPlace, isHeld) = (false, false)
            wishes.append(.placeIsFree)
        case .openSink:
            let answer = transfer?.answer
            (version, triesBeforeTrouble) = (answer?.head.statusCode == 200 ? answer?.version : nil, nil)
        case .resumeReceiving: try transfer?.transport.emptyReceiver()
        case .publishBackoff: try backOff(&world)
        case .withdrawQuestion: question = nil
        case .leaveGate: triesBeforeTrouble = nil
        case .refundRetry: world.noteSuccess()
        case .requestRetry:
            let wait = try world.retryWait()
            try handle(wait.map { .retryPostponed($0) } ?? .retryGranted, &world)
        case .finishSink:
            if let version, received != world.length(of: version) { throw violation("finished with \(received) bytes") }
            machine.delivered(.success(ReceivedBody()), during: DateInterval(), now: world.now)
            try perform(&world)
        case .completeTask:
            if isInLine || hasPlace || isUnderWay { throw violation("finished with a place") }
            isFinished = true
            if case .success = machine.result { isGood = true }
        case .runCommand: if let command = machine.takeCommand() { try perform(command, &world) }
        case .recordResolvedName, .reportStalledLookup, .checkRoutes, .reportNotSent, .publishState, .publishProgress,
            .reportResumed,
            .reportSuspended, .reportTransaction:
            break
        case .upgradeToHTTPS, .scheduleRequestStop, .checkAllowedNetworks, .checkForReferences:
            throw violation("\(effect) for a plain download")
        }
    }

    private func perform(_ command: TransferMachine.Command, _ world: inout TransferSimulation) throws {
        switch command {
        case .askHandler(let number, _): question = number
        case .askGate: try askGate(&world)
        case .report(let news): try hear(news, &world)
        case .discardBody(let error):
            machine.delivered(.failure(error), during: DateInterval(), now: world.now)
            try perform(&world)
        case .openRetryBudget: world.noteTrouble()
        case .deliverBufferedBody, .renameFile, .releaseBody, .recordMetrics: break
        case .openPartialFile, .sendBodyRange, .sendSegments, .confirmFinishedFile, .verifyDigest, .verifyUploadDigest,
            .reportUploadLocation, .storeCredential, .recordTrust,
            .recordIdentity, .forgetIdentity:
            throw violation("\(command) for a plain download")
        }
    }

    private func hear(_ news: TransferMachine.Report, _ world: inout TransferSimulation) throws {
        switch news {
        case .willRetry(let error): try checkRetry(error, &world)
        case .waitingForConnectivity:
            if let triesBeforeTrouble { triesInARow = triesBeforeTrouble }
            (triesBeforeTrouble, notBefore) = (nil, 0)
        case .downloadContinued(let offset, _):
            guard let answer = transfer?.answer, answer.version == version, answer.bytes.lowerBound == received,
                offset == received
            else { throw violation("a part that is not the rest of what is here, \(received) bytes") }
            resumedBytes += offset
        case .fileMoved, .fileMoveFailed: break
        case .redirected, .challenged, .serverTrustChallenged, .clientCertificateChallenged, .becameDownload, .uploadContinued:
            throw violation("\(news) for a plain download")
        }
    }

    // MARK: Attempts

    private func start(_ world: inout TransferSimulation) throws {
        begun += 1
        if transfer != nil || !hasPlace { throw violation("begun without a place, or twice") }
        if state != .running { throw violation("begun without running") }
        if world.now < notBefore { throw violation("begun before its time") }
        if machine.connectivityWait != nil { throw violation("begun while it waits for the network") }
        if begun == 1 { world.noteRequest() }
        let lines = machine.downloadFieldLines()
        machine.attempt.begin(at: .distantPast, over: nil, with: nil, expectsHTTPS: true)
        machine.bodyStarted(length: nil)
        transfer = Transfer(lines: lines)
    }

    func admitted(_ world: inout TransferSimulation) throws {
        if !isInLine { throw violation("admitted without standing in line") }
        (isInLine, hasPlace) = (false, true)
        try handle(.admitted, &world)
    }

    /// The deadline may have come.
    func timePassed(_ world: inout TransferSimulation) throws {
        try handle(.deadlineReached, &world)
        if let due = machine.deadline, due <= world.now { throw violation("still due, \(world.now - due) late") }
        if let startedAt, !isFinished, world.now >= startedAt + limits.resourceTimeout {
            throw violation("lives beyond its time")
        }
    }

    /// The probe knows why, or not yet.
    private func askGate(_ world: inout TransferSimulation) throws {
        if machine.hasProgressed { triesInARow = 0 }
        guard !world.isNetworkUp, world.chance(50) else {
            if triesBeforeTrouble == nil { triesBeforeTrouble = triesInARow }
            return try handle(.gateAnswered(.unknown), &world)
        }
        try handle(.gateAnswered(.missing(TransferSimulation.cause)), &world)
    }

    // MARK: Retries

    private func checkRetry(_ error: HTTPSessionError, _ world: inout TransferSimulation) throws {
        if !isIdempotent, machine.attempt.isConnected { throw violation("what may have been executed is done again") }
        if machine.hasProgressed { triesInARow = 0 }
        // A dead connection is replaced at once, and counts for nothing.
        let backedOff = machine.metrics.timeBackingOff
        defer { timeBackingOff = backedOff }
        if machine.needsFreshConnection, backedOff == timeBackingOff { return }
        triesInARow += 1
        if let maximum = policy.maximumRetries, triesInARow > maximum { throw violation("\(triesInARow) tries in a row") }
        let wish = machine.attempt.head?.firstValue(of: "retry-after").flatMap { RetryAfter.parse($0, now: .distantPast) }
        let doublings = Int64(min(20, triesInARow - 1))
        let limit = min(policy.maximumDelay.saturatingNanoseconds, policy.baseDelay.saturatingNanoseconds << doublings)
        longestWait = (wish ?? 0) + max(1, limit)
    }

    /// The wait that the task's owner sees has another end.
    private func backOff(_ world: inout TransferSimulation) throws {
        guard let until = machine.backoffDeadline else { return }
        notBefore = until
        guard let longestWait else { return }
        self.longestWait = nil
        // Long ones end on a full step of the clock, of 33 ms.
        guard until - world.now <= longestWait + 1 << 25 else { throw violation("a wait of \(until - world.now)") }
    }

    // MARK: The transfer

    /// The receiver has no room from now on.
    func fillReceiver() { transfer?.transport.fillReceiver() }

    func emptyReceiver(_ world: inout TransferSimulation) throws {
        try handle(.receiverReady, &world)
        try transfer?.transport.emptyReceiver()
    }

    /// The loop comes to the place where it sets libcurl's bits.
    func settle(_ world: inout TransferSimulation) throws {
        if let delivery = try transfer?.transport.settle() { try take(delivery, &world) }
    }

    /// The handler says that the response is allowed, if it was asked.
    func answer(_ world: inout TransferSimulation) throws {
        guard let question else { return }
        self.question = nil
        try handle(.handlerAnswered(question: question, .response(.allow)), &world)
    }

    /// The task runs, its receiver has room, and the loop has been round: what is under way moves.
    func checkMotion(_ world: inout TransferSimulation) throws {
        try handle(.resume, &world)
        try answer(&world)
        try emptyReceiver(&world)
        try settle(&world)
        if let transport = transfer?.transport, !transport.reads || transport.keptBytes > 0 { throw violation("stranded") }
    }

    /// Something happens to the transfer.
    func advance(_ world: inout TransferSimulation) throws {
        if question != nil, world.chance(30) { return try answer(&world) }
        guard let present = transfer else { return }
        if present.transport.isListedToSettle, world.chance(60) { return try settle(&world) }
        guard present.transport.reads else {
            // Its address may go while it stands still.
            return world.chance(2) ? try fail(.connectionLost, &world) : ()
        }
        guard world.isNetworkUp else {
            // A connection that stood may also say nothing until it has timed out.
            return world.chance(50) ? try fail(present.isConnected ? .connectionLost : .cannotConnectToHost, &world) : ()
        }
        guard present.isConnected else {
            // No request goes while the task is suspended.
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
