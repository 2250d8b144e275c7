/// Which thread resolves which name: the names that wait and the threads that are counted, without the threads themselves.
///
/// The configuration may change while threads are inside a lookup that lasts. Each change begins a *generation* with threads of its
/// own; those of former ones end with the lookup that they are in. Until then they count, so that a configuration that changes often
/// over a name server that is silent does not make threads without end.
struct LookupQueue: Hashable, Sendable {
    /// What a new request leads to.
    enum Admission: Hashable {
        /// A thread that is there takes it.
        case wake
        /// It needs one more thread, which belongs to this generation.
        case makeThread(generation: Int)
        /// Too many wait already.
        case refuse
        /// Nothing is resolved any more.
        case ignore
    }

    /// What a thread does next.
    enum Turn: Hashable {
        /// It resolves this name; `more`: another thread is to be woken for the rest.
        case take(LookupRequest, more: Bool)
        case wait
        case end
    }

    /// Threads of all generations, with those that are made beside ones that are stuck: this many times the limit.
    static let threadsInAll = 4

    let threadLimit: Int
    let queueLimit: Int
    private(set) var waiting: [LookupRequest] = []
    /// Threads of the present generation.
    private(set) var threads = 0
    /// Threads of former generations that have not ended yet.
    private(set) var former = 0
    private(set) var generation = 0
    private(set) var isStopped = false
    private var idle = 0

    init(threadLimit: Int, queueLimit: Int) {
        self.threadLimit = max(1, threadLimit)
        self.queueLimit = queueLimit
    }

    private var hasRoom: Bool { threads < threadLimit && isBelowTotal }
    private var isBelowTotal: Bool { threads + former < threadLimit * Self.threadsInAll }

    /// A name is to be resolved. Where former threads leave no room for one, it waits for the next request that finds room: a target
    /// asks again with each probe.
    mutating func add(_ request: LookupRequest) -> Admission {
        if isStopped { return .ignore }
        // An older one of the same target has been given up. The new one has its place: at the end of the queue, targets that ask
        // more often than threads come free would never have their turn.
        if let place = waiting.firstIndex(where: { TargetID(owning: $0.id) == TargetID(owning: request.id) }) {
            waiting[place] = request
            // It has waited for as long as its target had patience: all threads are inside lookups that last.
            guard idle == 0, isBelowTotal else { return .wake }
            threads += 1
            return .makeThread(generation: generation)
        }
        guard waiting.count < queueLimit else { return .refuse }
        waiting.append(request)
        guard waiting.count > idle, hasRoom else { return .wake }
        threads += 1
        return .makeThread(generation: generation)
    }

    /// A target is gone: what waits for it is nobody's.
    mutating func cancel(_ target: TargetID) {
        waiting.removeAll { TargetID(owning: $0.id) == target }
    }

    /// The configuration has changed: a generation begins.
    ///
    /// - Returns: the generation of the thread that is to be made for what waits, where there is any.
    mutating func beginGeneration() -> Int? {
        generation += 1
        former += threads
        (threads, idle) = (0, 0)
        guard !waiting.isEmpty, !isStopped, hasRoom else { return nil }
        threads = 1
        return generation
    }

    mutating func stop() {
        isStopped = true
        waiting = []
    }

    /// A thread of a generation has nothing to do: it begins, has ended a lookup, was woken (`wasIdle`), or was not (`timedOut`).
    mutating func next(of generation: Int, wasIdle: Bool, timedOut: Bool) -> Turn {
        guard generation == self.generation else {
            former -= 1
            return .end
        }
        if wasIdle { idle -= 1 }
        if !isStopped, !waiting.isEmpty {
            let request = waiting.removeFirst()
            return .take(request, more: !waiting.isEmpty)
        }
        // Those that were made beside stuck ones are not kept: each wake-up wakes all that wait.
        if isStopped || timedOut || threads > threadLimit {
            threads -= 1
            return .end
        }
        idle += 1
        return .wait
    }

    /// A thread that was counted could not be made.
    ///
    /// - Returns: what nobody will take, which is to be answered.
    mutating func lose(of generation: Int) -> [LookupRequest] {
        guard generation == self.generation else {
            former -= 1
            return []
        }
        threads -= 1
        guard threads == 0 else { return [] }
        defer { waiting = [] }
        return waiting
    }
}
