import Foundation
import Pacing
import Reachability

@testable import HTTPSession

/// Random downloads from one server over one network, through the machine of tasks, the queue and the budget of retries.
/// ``SimulatedTask`` checks the invariants at every effect.
struct TaskSimulation {
    private static let places = 2
    private static let url = URL(string: "https://host/file") ?? URL(fileURLWithPath: "/")
    static let cause = Cause(.link, .noCarrier, detail: "simulated")
    private static let host = TaskQueue.Host(scheme: "https", name: "host", port: 443, needsLookup: false)

    private(set) var now: Int64 = 1
    private(set) var isNetworkUp = true
    private(set) var finished = 0
    private(set) var good = 0
    private(set) var resumedBytes: Int64 = 0
    private var dice: SplitMix64
    private var server: SimulatedServer
    private var queue = TaskQueue(limits: .init(total: places, perHost: places, lookups: 1))
    private var budget: RetryBudget?
    private var budgetSince: Int64 = 0
    private var paid = 0.0
    private var tasks: [SimulatedTask] = []
    private var lastID: UInt64 = 0

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
        server = SimulatedServer(seed: seed &+ 1)
    }

    mutating func run(steps: Int) throws {
        for _ in 0..<4 { addTask() }
        for _ in 0..<steps { try step() }
        // With a network, all remaining tasks must end in time.
        isNetworkUp = true
        for index in tasks.indices {
            try change(index) { task, world in
                try task.handle(.networkRestored(delay: 0), &world)
                try task.checkMotion(&world)
                if !task.isFinished { try task.handle(.cancel, &world) }
                guard task.isFinished else { throw SimulatedTask.Violation(description: "canceled, and still running") }
            }
        }
        guard queue.running == 0, queue.waiting == 0 else { throw SimulatedTask.Violation(description: "slots without a task") }
    }

    private mutating func addTask() {
        lastID += 1
        let policies = [
            RetryPolicy.default, .never, .persistent, RetryPolicy(maximumRetries: 2, baseDelay: .zero, maximumDelay: .zero),
            RetryPolicy(maximumRetries: 9, baseDelay: .milliseconds(1), maximumDelay: .seconds(4)),
        ]
        let limits = TaskStateMachine.Limits(
            requestTimeout: 3_000_000_000, resourceTimeout: random(in: 20_000_000_000...600_000_000_000),
            handlerTimeout: 2_000_000_000)
        tasks.append(
            SimulatedTask(
                id: lastID, policy: policies.randomElement(using: &dice) ?? .default, isIdempotent: chance(85),
                asksHandler: chance(30), url: TaskSimulation.url, limits: limits, seed: dice.next(), now: now))
    }

    private mutating func step() throws {
        now += chance(90) ? random(in: 0...50_000_000) : random(in: 0...2_000_000_000)
        for index in tasks.indices where (tasks[index].deadline ?? .max) <= now {
            try change(index) { task, world in try task.timePassed(&world) }
        }
        let index = Int.random(in: tasks.indices, using: &dice)
        switch Int.random(in: 0..<200, using: &dice) {
        case 0: server.change()
        case 1..<5: try switchNetwork()
        case 5..<11: try change(index) { task, world in try task.handle(.suspend, &world) }
        case 11..<43: try change(index) { task, world in try task.handle(.resume, &world) }
        case 43: try change(index) { task, world in try task.handle(.cancel, &world) }
        case 44..<50: try change(index) { task, _ in task.fillReceiver() }
        case 50..<66: try change(index) { task, world in try task.emptyReceiver(&world) }
        case 66..<69: if !isNetworkUp { try change(index) { task, world in try task.handle(.networkLost(Self.cause), &world) } }
        case 69: try stray(index)
        default: try change(index) { task, world in try task.advance(&world) }
        }
        try admit()
        for index in tasks.indices where tasks[index].isFinished { try replace(index) }
    }

    /// Handles an event that comes too late or from no transfer. It must not change the task's state.
    private mutating func stray(_ index: Int) throws {
        guard !tasks[index].isUnderWay else { return }
        let events: [TaskMachine.Event] = [
            .receiverReady, .failureExplained(.missing(Self.cause)), .handlerAnswered(question: 0, .response(.allow)),
            .networkAllowed,
            .networkChanged, .digestVerified(.success(true)), .uploadDigestVerified(true), .requestStopDue,
            .partialFileOpened(.success(.init())),
        ]
        let event = events.randomElement(using: &dice) ?? .receiverReady
        let before = tasks[index].state
        try change(index) { task, world in try task.handle(event, &world) }
        guard tasks[index].state == before else {
            throw SimulatedTask.Violation(description: "\(event) moved \(before)")
        }
    }

    private mutating func switchNetwork() throws {
        isNetworkUp.toggle()
        guard isNetworkUp else { return }
        for index in tasks.indices {
            let delay = chance(50) ? 0 : random(in: 1...5_000_000)
            try change(index) { task, world in try task.handle(.networkRestored(delay: delay), &world) }
        }
    }

    private mutating func replace(_ index: Int) throws {
        finished += 1
        if tasks[index].isGood { good += 1 }
        resumedBytes += tasks[index].resumedBytes
        addTask()
        tasks.swapAt(index, tasks.count - 1)
        let old = tasks.removeLast()
        guard queue.remove(old.id) == false else { throw SimulatedTask.Violation(description: "finished, and still queued") }
    }

    private mutating func change(
        _ index: Int, _ body: (SimulatedTask, inout TaskSimulation) throws -> Void
    ) throws {
        let task = tasks[index]
        try body(task, &self)
        for change in task.takeQueueChanges() {
            switch change {
            case .enqueue(let isFirst): queue.add(task.id, to: TaskSimulation.host, priority: .default, isFirst: isFirst)
            case .leaveQueue: queue.remove(task.id)
            case .releaseSlot: queue.release(task.id, from: TaskSimulation.host, isAbandoned: false, now: now)
            }
        }
    }

    private mutating func admit() throws {
        while let id = queue.admit(now: now) {
            guard let index = tasks.firstIndex(where: { $0.id == id }) else {
                throw SimulatedTask.Violation(description: "a connection slot without a task")
            }
            try change(index) { task, world in try task.admitted(&world) }
        }
        guard tasks.count(where: \.isUnderWay) <= TaskSimulation.places else {
            throw SimulatedTask.Violation(description: "more transfers than connection slots")
        }
    }

    // MARK: Used by the tasks

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &dice) < percent }
    mutating func random(in range: ClosedRange<Int64>) -> Int64 { .random(in: range, using: &dice) }
    mutating func draw() -> UInt64 { dice.next() }
    mutating func answer(to lines: [String]) -> SimulatedServer.Answer? { server.answer(to: lines) }
    func length(of version: Int) -> Int64 { server.lengths[version] }

    // MARK: The budget

    mutating func noteTrouble() {
        guard budget == nil else { return }
        (budget, budgetSince) = (RetryBudget(now: now), now)
    }

    mutating func noteRequest() {
        guard budget != nil else { return }
        budget?.requested()
        paid -= 0.2
    }

    mutating func noteSuccess() {
        guard budget != nil else { return }
        budget?.succeeded()
        paid -= 1
    }

    /// The time that a retry has to wait; `nil` if it may start.
    mutating func retryWait() throws -> Int64? {
        guard budget?.spend(now: now) == false else {
            if budget != nil { paid += 1 }
            // The budget has ten retries, one a second, a fifth of the requests, and the refunds of successes.
            let limit = 10 + Double(now - budgetSince) / 1e9
            guard paid <= limit + 0.001 else {
                throw SimulatedTask.Violation(description: "\(paid) retries where \(limit) are paid for")
            }
            return nil
        }
        let wait = budget?.wait(now: now) ?? 0
        return max(1, wait)
    }
}
