import Expectations
import HTTPSession
import Pacing
import Testing

/// A model of the queue with the same rules in their simplest form.
private struct Model {
    struct Task {
        let id: UInt64
        let host: TaskQueue.Host
        let priority: TransferRequest.Priority
        var isLookingUp = false
    }

    let limits: TaskQueue.Limits
    var waiting: [Task] = []
    var running: [Task] = []
    var multiplexed: Set<TaskQueue.Host> = []
    var resolvedUntil: [TaskQueue.Host: Int64] = [:]
    var abandoned: [Int64] = []

    func needsLookup(_ host: TaskQueue.Host, _ now: Int64) -> Bool {
        host.needsLookup && resolvedUntil[host, default: .min] <= now
    }

    func mayStart(_ task: Task, _ now: Int64) -> Bool {
        let running = running.filter { $0.host.name == task.host.name }
        let exclusive = running.count { $0.host.isExclusive }
        let shared = running.count - exclusive
        guard self.running.count < limits.total else { return false }
        if multiplexed.contains(task.host) {
            guard shared < limits.perMultiplexedHost else { return false }
        } else {
            let areMultiplexed = multiplexed.contains { $0.name == task.host.name }
            guard exclusive + (areMultiplexed ? min(1, shared) : shared) < limits.perHost else { return false }
        }
        guard needsLookup(task.host, now) else { return true }
        return !running.contains { $0.host == task.host && $0.isLookingUp }
            && self.running.count(where: \.isLookingUp) + abandoned.count(where: { $0 > now }) < limits.lookups
    }

    /// The first task of each host and priority.
    func fronts() -> [Task] {
        var seen: Set<String> = []
        return waiting.filter { seen.insert("\($0.host) \($0.priority)").inserted }
    }

    /// - Returns: the fault in the queue's choice, if any.
    mutating func admit(_ id: UInt64?, _ now: Int64) -> String? {
        let possible = fronts().filter { mayStart($0, now) }
        guard let id else { return possible.isEmpty ? nil : "\(possible.map(\.id)) may start, and does not" }
        guard let index = waiting.firstIndex(where: { $0.id == id }) else { return "\(id) does not wait" }
        guard let task = possible.first(where: { $0.id == id }) else { return "\(id) may not start" }
        if let urgent = possible.first(where: { $0.priority > task.priority }) { return "\(urgent.id) is more urgent than \(id)" }
        waiting.remove(at: index)
        running.append(Task(id: id, host: task.host, priority: task.priority, isLookingUp: needsLookup(task.host, now)))
        return nil
    }
}

@Suite struct TaskQueueRandomTests {
    private static let hosts = (0..<6).flatMap {
        let host = TaskQueue.Host.named("h\($0)", isResolving: $0 < 4)
        return $0 % 2 == 0 ? [host] : [host, host.exclusive]
    }

    private static func add(
        _ id: UInt64, _ host: TaskQueue.Host, _ queue: inout TaskQueue, _ model: inout Model,
        _ generator: inout SplitMix64
    ) {
        let task = Model.Task(
            id: id, host: host, priority: TransferRequest.Priority.allCases.randomElement(using: &generator) ?? .default)
        let isFirst = Int.random(in: 0..<4, using: &generator) == 0
        queue.add(id, to: host, priority: task.priority, isFirst: isFirst)
        model.waiting.insert(task, at: isFirst ? 0 : model.waiting.count)
    }

    /// Whether every waiting task starts when all running tasks end and none is added.
    private static func drain(_ queue: inout TaskQueue, _ model: inout Model, now: Int64) -> String? {
        var now = now
        for _ in 0...model.waiting.count + model.running.count {
            for task in model.running { queue.release(task.id, from: task.host, isAbandoned: false, now: now) }
            model.running = []
            now += 100
            while true {
                let id = queue.admit(now: now)
                if let fault = model.admit(id, now) { return fault }
                if id == nil { break }
            }
        }
        return queue.waiting == 0 && queue.running == 0 ? nil : "\(queue.waiting) wait for ever"
    }

    @Test func `at random, no task starts above a limit, and every task that may start does`() {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SplitMix64(seed: seed)
        for _ in 0..<20 {
            let limits = TaskQueue.Limits(
                total: .random(in: 1...12, using: &generator), perHost: .random(in: 1...4, using: &generator),
                perMultiplexedHost: 6,
                lookups: .random(in: 1...3, using: &generator), lookupLifetime: 40, abandonedLookup: 25)
            var queue = TaskQueue(limits: limits)
            var model = Model(limits: limits)
            var lastID: UInt64 = 0
            var now: Int64 = 0
            for step in 0..<400 {
                now += .random(in: 0...3, using: &generator)
                let host = Self.hosts.randomElement(using: &generator) ?? .named("none")
                switch Int.random(in: 0..<20, using: &generator) {
                case 0...7:
                    lastID += 1
                    Self.add(lastID, host, &queue, &model, &generator)
                case 8...9:
                    guard let task = model.waiting.randomElement(using: &generator) else { break }
                    model.waiting.removeAll { $0.id == task.id }
                    expectEqual(queue.remove(task.id), true, "seed \(seed) step \(step)")
                    // Most tasks return: they were suspended and resumed.
                    if Int.random(in: 0..<3, using: &generator) > 0 { Self.add(task.id, host, &queue, &model, &generator) }
                case 10:
                    guard let index = model.running.indices.randomElement(using: &generator) else { break }
                    let task = model.running[index]
                    queue.nameResolved(task.id, to: task.host, now: now)
                    model.running[index].isLookingUp = false
                    if task.host.needsLookup { model.resolvedUntil[task.host] = now + limits.lookupLifetime }
                case 11:
                    guard let task = model.running.randomElement(using: &generator), Int.random(in: 0..<9, using: &generator) == 0
                    else { break }
                    queue.setMultiplexed(task.host)
                    if !task.host.isExclusive { model.multiplexed.insert(task.host) }
                default:
                    guard let index = model.running.indices.randomElement(using: &generator) else { break }
                    let task = model.running.remove(at: index)
                    let isAbandoned = Bool.random(using: &generator)
                    queue.release(task.id, from: task.host, isAbandoned: isAbandoned, now: now)
                    if isAbandoned, task.isLookingUp { model.abandoned.append(now + limits.abandonedLookup) }
                }
                while true {
                    let id = queue.admit(now: now)
                    if let fault = model.admit(id, now) {
                        Issue.record("seed \(seed) step \(step): \(fault)")
                        return
                    }
                    if id == nil { break }
                }
                #expect(queue.waiting == model.waiting.count && queue.running == model.running.count, "seed \(seed) step \(step)")
            }
            let fault = Self.drain(&queue, &model, now: now)
            expectNil(fault, "seed \(seed)")
        }
    }
}
