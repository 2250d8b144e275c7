import Pacing

@testable import HTTPSessionJournal

/// Processes that open one durable session after another and are killed at every step. The disk refuses writes at times and loses
/// power, and another program moves files. ``SimulatedDurableTask`` checks the invariants.
struct JournalSimulation {
    private(set) var now: Int64 = 1_000
    private(set) var kills = 0
    private(set) var finished = 0
    /// The number of ended tasks, by the name of the outcome.
    private(set) var outcomes: [String: Int] = [:]
    /// The number of tasks whose event was delivered more than once.
    private(set) var redelivered = 0
    private var dice: SplitMix64
    private var lastInode: UInt64 = 10
    private var lastID = 0
    private var tasks: [SimulatedDurableTask] = []
    private var isLive = true
    private var isDiskFull = false
    /// The number of actions until the process is killed.
    private var fuse: Int?

    init(seed: UInt64) { dice = SplitMix64(seed: seed) }

    mutating func run(steps: Int) throws {
        for _ in 0..<6 { addTask() }
        for _ in 0..<steps { try step() }
        // The last process runs undisturbed.
        try crash(powerFails: false)
        (isDiskFull, fuse) = (false, nil)
        try live { world in
            for _ in 0..<1_000 where world.tasks.contains(where: { !$0.isOver }) {
                try world.each { task, world in
                    try task.reattachIfIdle(&world)
                    try task.advanceTransfer(&world)
                    try task.deliver(acknowledges: true, &world)
                }
            }
        }
        for task in tasks { try task.checkEnd() }
    }

    private mutating func addTask() {
        lastID += 1
        let isDownload = chance(60)
        let terms = TaskLifecycle.Terms(
            isDownload: isDownload, refusesExistingFile: isDownload && chance(40), isRepeatable: chance(65),
            expires: now + Int64(random(in: 50...5_000)))
        tasks.append(SimulatedDurableTask(id: lastID, terms: terms, isTaken: isDownload && chance(10)))
        change(tasks.count - 1) { task, world in try task.reattach(&world) }
    }

    private mutating func step() throws {
        now += Int64(random(in: 0...10))
        if failure != nil { try rethrow() }
        let index = random(in: 0...tasks.count - 1)
        if isLive, fuse == nil, chance(10) { fuse = random(in: 0...6) }
        switch random(in: 0...99) {
        case 0..<3: try crash(powerFails: chance(30))
        case 3..<5: isDiskFull.toggle()
        case 5..<7: change(index) { task, world in task.meddle(&world) }
        case 7..<10: change(index) { task, world in try task.cancel(&world) }
        case 10..<30: change(index) { task, world in try task.deliver(acknowledges: world.chance(50), &world) }
        case 30..<40: change(index) { task, world in if !task.delivered.isEmpty { try task.acknowledge(&world) } }
        case 40..<45: change(index) { task, world in try task.stray(world.strayEvent(), &world) }
        // A session attaches its task again some time after a refusal.
        case 45..<55: change(index) { task, world in try task.reattachIfIdle(&world) }
        default: change(index) { task, world in try task.advanceTransfer(&world) }
        }
        if !isLive { start() }
        for index in tasks.indices where tasks[index].isOver { try replace(index) }
        try rethrow()
    }

    private var failure: SimulatedDurableTask.Violation?

    private func rethrow() throws { if let failure { throw failure } }

    private mutating func replace(_ index: Int) throws {
        let old = tasks[index]
        try old.checkEnd()
        finished += 1
        if old.delivered.count > 1 { redelivered += 1 }
        outcomes[old.delivered.first.map { String("\($0)".prefix { $0.isLetter }) } ?? "", default: 0] += 1
        addTask()
        tasks.swapAt(index, tasks.count - 1)
        tasks.removeLast()
    }

    private func strayEvent() -> TaskLifecycle.Event { lastID % 2 == 0 ? .placed : .transferred(nil, hiddenFile: nil) }

    // MARK: The process

    private mutating func start() {
        isLive = true
        for index in tasks.indices where isLive { change(index) { task, world in try task.reattach(&world) } }
    }

    private mutating func crash(powerFails: Bool) throws {
        kills += 1
        (isLive, fuse) = (false, nil)
        for index in tasks.indices {
            var task = tasks[index]
            task.die(powerFails: powerFails, &self)
            tasks[index] = task
        }
    }

    private mutating func change(
        _ index: Int, _ body: (inout SimulatedDurableTask, inout JournalSimulation) throws -> Void
    ) {
        guard isLive else { return }
        var task = tasks[index]
        do {
            try body(&task, &self)
            tasks[index] = task
        } catch let violation as SimulatedDurableTask.Violation {
            failure = failure ?? violation
        } catch {
            tasks[index] = task
            try? crash(powerFails: chance(30))
        }
    }

    private mutating func each(_ body: (inout SimulatedDurableTask, inout JournalSimulation) throws -> Void) throws {
        for index in tasks.indices { change(index, body) }
        try rethrow()
    }

    private mutating func live(_ body: (inout JournalSimulation) throws -> Void) throws {
        start()
        try body(&self)
    }

    // MARK: Used by the tasks

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &dice) < percent }
    mutating func random(in range: ClosedRange<Int>) -> Int { .random(in: range, using: &dice) }

    mutating func newFile() -> FileIdentity {
        lastInode += 1
        return FileIdentity(inode: lastInode, size: 5, modified: now)
    }

    /// Counts an action. - Throws: ``SimulatedDurableTask/Crash``, if the process is killed before it.
    mutating func burn() throws {
        guard let left = fuse else { return }
        if left == 0 { throw SimulatedDurableTask.Crash() }
        fuse = left - 1
    }

    /// A transaction of the journal. - Throws: if the disk is full.
    func write() throws { if isDiskFull { throw SimulatedDurableTask.Refusal() } }
}

extension SimulatedDurableTask {
    /// Attaches the task again, unless its transfer runs or an event waits for its handler.
    mutating func reattachIfIdle(_ world: inout JournalSimulation) throws {
        guard !isTransferring, !hasDelivery else { return }
        try reattach(&world)
    }
}
