import FoundationEssentials
import Pacing

@testable import HTTPSession

/// A download as a session runs it: its machines, joined as `TaskRun` joins them, and beside them what must be true of all of it.
struct SimulatedTask {
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    /// What the task wants of its surroundings.
    enum Wish: Hashable {
        case place, noPlace, placeIsFree
    }

    /// An attempt under way.
    struct Attempt {
        var basis: Resumption.Basis?
        var receivedBefore: Int64 = 0
        var isConnected = false
        var isRest = false
        var transport = SimulatedTransport()
        /// An answer whose head is pending.
        var unjudged: SimulatedServer.Answer?
        var answer: SimulatedServer.Answer?
        /// Of the answer's bytes.
        var delivered: Int64 = 0
    }

    let id: UInt64
    let policy: RetryPolicy
    let isIdempotent: Bool
    private let url: URL
    private(set) var machine: TaskMachine
    var retries: RetryMachine
    var uncounted: RetryMachine?
    var resumption: Resumption?
    var received: Int64 = 0
    var wasReleased = false
    var hasPaidRetry = false
    var attempt: Attempt?
    private var isHandlerAsked = false

    // What must be true.
    let limits: TaskMachine.Limits
    private var startedAt: Int64?
    private var isInLine = false
    private var isHeld = false
    private var hasPlace = false
    var isWaitingForNetwork = false
    var notBefore: Int64 = 0
    private var begun = 0
    var triesInARow = 0
    var triesBeforeTrouble: Int?
    /// The version that all bytes are of.
    private var version = 0
    private var isWhole = false
    private(set) var isFinished = false
    private(set) var isGood = false
    private(set) var resumedBytes: Int64 = 0
    private var wishes: [Wish] = []

    init(id: UInt64, policy: RetryPolicy, isIdempotent: Bool, url: URL, limits: TaskMachine.Limits) {
        (self.id, self.policy, self.isIdempotent, self.url, self.limits) = (id, policy, isIdempotent, url, limits)
        machine = TaskMachine(limits: limits)
        retries = RetryMachine(policy)
    }

    var isUnderWay: Bool { attempt != nil }
    var isBackingOff: Bool {
        if case .backingOff = machine.state { return true }
        return false
    }

    func violation(_ text: String) -> Violation { Violation(description: "task \(id), \(machine.state): \(text)") }

    // MARK: Events

    mutating func takeWishes() -> [Wish] {
        defer { wishes = [] }
        return wishes
    }

    mutating func handle(_ event: TaskMachine.Event, _ world: inout TransferSimulation) throws {
        if case .resume = event, startedAt == nil { startedAt = world.now }
        for action in machine.handle(event, now: world.now) { try perform(action, &world) }
    }

    private mutating func perform(_ action: TaskMachine.Action, _ world: inout TransferSimulation) throws {
        if isFinished { throw violation("\(action) behind the end") }
        switch action {
        case .enqueue:
            if isInLine || hasPlace { throw violation("in line twice") }
            if world.now < notBefore { throw violation("in line before its time, \(notBefore - world.now) early") }
            if isWaitingForNetwork { throw violation("in line while it is held") }
            isInLine = true
            wishes.append(.place)
        case .dequeue:
            if !isInLine { throw violation("leaves a line that it does not stand in") }
            isInLine = false
            wishes.append(.noPlace)
        case .begin(let number): try begin(number, &world)
        case .hold:
            if attempt == nil || isHeld { throw violation("holds what does not move") }
            isHeld = true
            try attempt?.transport.hold(true)
        case .letGo:
            if attempt == nil || !isHeld { throw violation("lets go what is not held") }
            isHeld = false
            try attempt?.transport.hold(false)
        case .abort: attempt = nil
        case .failTimedOut:
            if attempt == nil || isHeld { throw violation("timed out without moving") }
            try fail(.timedOut, &world)
        case .leave:
            if !hasPlace { throw violation("gives back a place that it does not have") }
            (hasPlace, isHeld, attempt, isHandlerAsked) = (false, false, nil, false)
            wishes.append(.placeIsFree)
        case .finish(let reason):
            if isInLine || hasPlace { throw violation("finished with a place") }
            isFinished = true
            isGood = reason == .ended && isWhole
            let due = (startedAt ?? 0) + limits.resourceTimeout
            if reason == .resourceTimedOut, world.now < due { throw violation("its time was over too soon") }
        case .announceResumed, .announceSuspended: break
        }
    }

    private mutating func begin(_ number: Int, _ world: inout TransferSimulation) throws {
        begun += 1
        if number != begun { throw violation("attempt \(number) is the \(begun)th") }
        if attempt != nil || hasPlace { throw violation("two transfers at a time") }
        if !isInLine { throw violation("begun without standing in line") }
        if machine.state != .running { throw violation("begun without running") }
        if world.now < notBefore { throw violation("begun before its time") }
        if isWaitingForNetwork { throw violation("begun while it is held") }
        (isInLine, hasPlace) = (false, true)
        var next = Attempt()
        next.receivedBefore = received
        next.basis = received > 0 ? resumption?.basis(at: url) : nil
        attempt = next
        if number == 1 { world.noteRequest() }
    }

    /// The deadline may have come.
    mutating func timePassed(_ world: inout TransferSimulation) throws {
        if case .backingOff(let until) = machine.state, until <= world.now, !wasReleased {
            if let wait = try world.retryWait() {
                notBefore = world.now + wait
                try handle(.postponed(delay: wait), &world)
            } else {
                hasPaidRetry = true
            }
        }
        try handle(.time, &world)
        if let due = machine.deadline, due <= world.now { throw violation("still due, \(world.now - due) late") }
        if let startedAt, !isFinished, world.now >= startedAt + limits.resourceTimeout {
            throw violation("lives beyond its time")
        }
    }

    mutating func suspend(_ world: inout TransferSimulation) throws {
        try handle(.suspend, &world)
        (isWaitingForNetwork, uncounted, triesBeforeTrouble) = (false, nil, nil)
    }

    // MARK: The gate

    mutating func networkIsGone(_ world: inout TransferSimulation) throws {
        guard isBackingOff, !isWaitingForNetwork else { return }
        wait()
        try handle(.networkIsGone, &world)
    }

    mutating func networkIsBack(delay: Int64, _ world: inout TransferSimulation) throws {
        guard isWaitingForNetwork else {
            (uncounted, triesBeforeTrouble) = (nil, nil)
            return
        }
        (isWaitingForNetwork, wasReleased) = (false, true)
        notBefore = world.now + delay
        try handle(.networkIsBack(delay: delay), &world)
    }

    mutating func wait() {
        if let uncounted { retries = uncounted }
        if let triesBeforeTrouble { triesInARow = triesBeforeTrouble }
        (uncounted, triesBeforeTrouble) = (nil, nil)
        isWaitingForNetwork = true
        notBefore = 0
    }

    // MARK: The attempt

    /// The receiver has no room from now on.
    mutating func fillReceiver() { attempt?.transport.fillReceiver() }

    mutating func emptyReceiver(_ world: inout TransferSimulation) throws {
        try handle(.receiverReady, &world)
        try attempt?.transport.emptyReceiver()
    }

    /// The loop comes to the place where it sets libcurl's bits.
    mutating func settle(_ world: inout TransferSimulation) throws {
        if let delivery = try attempt?.transport.settle() { try take(delivery, &world) }
    }

    /// The task runs, its receiver has room, and the loop has been round: what is under way moves.
    mutating func checkMotion(_ world: inout TransferSimulation) throws {
        try handle(.resume, &world)
        try emptyReceiver(&world)
        try settle(&world)
        if let transport = attempt?.transport, !transport.reads || transport.keptBytes > 0 { throw violation("stranded") }
    }

    /// Something happens to the attempt.
    mutating func advance(_ world: inout TransferSimulation) throws {
        guard let present = attempt else { return }
        if present.transport.isListedToSettle, world.chance(60) { return try settle(&world) }
        guard present.transport.reads else {
            // Its address may go while it stands still.
            return world.chance(2) ? try fail(.connectionLost, &world) : ()
        }
        if isHandlerAsked {
            isHandlerAsked = false
            try handle(.handlerAnswered, &world)
            return
        }
        guard world.isNetworkUp else {
            // A connection that stood may also say nothing until it has timed out.
            return world.chance(50) ? try fail(present.isConnected ? .connectionLost : .cannotConnectToHost, &world) : ()
        }
        try handle(.activity, &world)
        guard present.isConnected else {
            // No request goes while the task is suspended.
            attempt?.isConnected = !isHeld
            return
        }
        guard let answer = present.answer ?? present.unjudged else {
            if world.chance(10) { return try fail(.connectionLost, isDead: world.chance(50), &world) }
            return try takeHead(&world)
        }
        let left = Int64(answer.bytes.count) - present.delivered
        if left == 0 { return try finishAnswer(&world) }
        if world.chance(12) { return try fail(.connectionLost, &world) }
        if world.chance(5) {
            isHandlerAsked = true
            return try handle(.handlerAsked, &world)
        }
        if let delivery = try attempt?.transport.receive(min(left, world.random(in: 1...60_000))) { try take(delivery, &world) }
    }

    private mutating func take(_ delivery: SimulatedTransport.Delivery, _ world: inout TransferSimulation) throws {
        if let head = delivery.head { try judgePending(head, &world) }
        if delivery.isRefused { try handle(.receiverFull, &world) }
        if delivery.count > 0 { try take(delivery.count) }
    }

    private mutating func takeHead(_ world: inout TransferSimulation) throws {
        let lines = attempt?.basis.flatMap { resumption?.fieldLines(after: received, by: $0) } ?? []
        guard let answer = world.answer(to: lines) else { throw violation("no answer") }
        guard !world.chance(20) else {
            attempt?.unjudged = answer
            attempt?.transport.receiveChallenge(answer.head)
            return
        }
        try judge(answer, &world)
    }

    private mutating func judgePending(_ head: ResponseHead, _ world: inout TransferSimulation) throws {
        guard let answer = attempt?.unjudged, answer.head == head else { throw violation("a head that is not the attempt's") }
        attempt?.unjudged = nil
        try judge(answer, &world)
    }

    private mutating func judge(_ answer: SimulatedServer.Answer, _ world: inout TransferSimulation) throws {
        (uncounted, triesBeforeTrouble) = (nil, nil)
        attempt?.answer = answer
        let head = answer.head
        if head.statusCode >= 400 {
            var failure = RetryMachine.Failure(code: .unacceptableStatus, statusCode: head.statusCode, isIdempotent: isIdempotent)
            failure.retryAfter = head.firstValue(of: "retry-after").flatMap { RetryAfter.parse($0, now: .distantPast) }
            if case .retry(let delay) = try decide(failure, &world) { return try retry(delay, &world) }
        }
        wasReleased = false
        if hasPaidRetry, !policy.statusCodes.contains(head.statusCode) { world.noteSuccess() }
        hasPaidRetry = false
        guard let basis = attempt?.basis, let resumption else { return try takeWhole(answer, &world) }
        switch resumption.judge(head, received: received, by: basis) {
        case .append(let total):
            guard answer.version == version, answer.bytes.lowerBound == received else {
                throw violation("bytes \(answer.bytes) of version \(answer.version) behind \(received) of version \(version)")
            }
            self.resumption?.total = total
            attempt?.isRest = true
            resumedBytes += received
        case .replace: try takeWhole(answer, &world)
        case .startOver:
            self.resumption = nil
            try again(0, &world)
        case .complete:
            isWhole = true
            guard received == world.length(of: version) else { throw violation("complete, and it is not") }
            try handle(.ended, &world)
        case .keep: try handle(.ended, &world)
        }
    }

    private mutating func takeWhole(_ answer: SimulatedServer.Answer, _ world: inout TransferSimulation) throws {
        guard answer.head.statusCode == 200 else { return try handle(.ended, &world) }
        (received, version) = (0, answer.version)
        resumption = isIdempotent ? Resumption(whole: answer.head, from: url, now: Date(timeIntervalSince1970: 1e9)) : nil
    }

    private mutating func take(_ count: Int64) throws {
        // The head may have ended the attempt.
        guard let present = attempt else { return }
        guard let answer = present.answer else { throw violation("a body without its head") }
        guard answer.version == version, answer.bytes.lowerBound + present.delivered == received else {
            throw violation("spliced: \(answer.bytes) of version \(answer.version) at \(received) of version \(version)")
        }
        received += count
        attempt?.delivered += count
    }

    private mutating func finishAnswer(_ world: inout TransferSimulation) throws {
        if let head = attempt?.transport.takePendingHead() {
            try judgePending(head, &world)
            guard attempt != nil else { return }
        }
        if attempt?.answer == nil { throw violation("the end of a response without its head") }
        if let present = attempt, present.isRest, let total = resumption?.total, received < total {
            return received - present.receivedBefore < 16 << 10 ? try fail(.connectionLost, &world) : try again(0, &world)
        }
        isWhole = true
        guard received == world.length(of: version) else { throw violation("finished with \(received) bytes") }
        try handle(.ended, &world)
    }
}
