/// The queue of names to resolve, and the counts of the resolver's threads. The queue does not contain the threads themselves.
///
/// The configuration may change while threads are in long lookups. Each change begins a *generation* with its own threads.
/// Threads of former generations end after their present lookup, and count until then. Otherwise a configuration that changes
/// often, with a silent name server, would create threads without limit.
struct LookupQueue: Hashable, Sendable {
    /// The treatment of a new request.
    enum Admission: Hashable {
        /// An existing thread will take the request.
        case wake
        /// One more thread is needed, of this generation.
        case makeThread(generation: Int)
        /// The queue is full.
        case refuse
        /// The queue is stopped.
        case ignore
    }

    /// The next step of a thread.
    enum Turn: Hashable {
        /// Resolve this name. `more`: another thread must be woken for the remaining names.
        case lookUp(LookupRequest, more: Bool)
        case wait
        case end
    }

    /// The factor from the thread limit to the limit of all threads: those of former generations, and those beside blocked ones.
    static let totalFactor = 4

    let threadLimit: Int
    let queueLimit: Int
    private(set) var waiting: [LookupRequest] = []
    /// The number of threads of the present generation.
    private(set) var threads = 0
    /// The number of threads of former generations that have not ended yet.
    private(set) var formerThreads = 0
    private(set) var generation = 0
    private(set) var isStopped = false
    private var idle = 0

    init(threadLimit: Int, queueLimit: Int) {
        self.threadLimit = max(1, threadLimit)
        self.queueLimit = queueLimit
    }

    private var canAddThread: Bool { threads < threadLimit && isBelowTotal }
    private var isBelowTotal: Bool { threads + formerThreads < threadLimit * Self.totalFactor }

    /// Adds a name to resolve. If former threads prevent a new one, the name waits for a later request: a target requests again
    /// with each probe.
    mutating func add(_ request: LookupRequest) -> Admission {
        if isStopped { return .ignore }
        // The target has abandoned its older request. The new one takes its place in the queue: at the end, targets that request
        // more often than threads become free would never be served.
        if let place = waiting.firstIndex(where: { TargetID(owning: $0.id) == TargetID(owning: request.id) }) {
            waiting[place] = request
            // The older request waited for the target's full deadline, so all threads are in long lookups.
            guard idle == 0, isBelowTotal else { return .wake }
            threads += 1
            return .makeThread(generation: generation)
        }
        guard waiting.count < queueLimit else { return .refuse }
        waiting.append(request)
        guard waiting.count > idle, canAddThread else { return .wake }
        threads += 1
        return .makeThread(generation: generation)
    }

    /// Removes the waiting name of a removed target.
    mutating func cancel(_ target: TargetID) {
        waiting.removeAll { TargetID(owning: $0.id) == target }
    }

    /// Begins a generation after a change of the configuration.
    ///
    /// - Returns: the generation of the thread to create for the waiting names; `nil` if none is needed.
    mutating func beginGeneration() -> Int? {
        generation += 1
        formerThreads += threads
        (threads, idle) = (0, 0)
        guard !waiting.isEmpty, !isStopped, canAddThread else { return nil }
        threads = 1
        return generation
    }

    mutating func stop() {
        isStopped = true
        waiting = []
    }

    /// Returns the next step of a thread that has just started, ended a lookup, was woken (`wasIdle`), or was not woken in time
    /// (`timedOut`).
    mutating func next(of generation: Int, wasIdle: Bool, timedOut: Bool) -> Turn {
        guard generation == self.generation else {
            formerThreads -= 1
            return .end
        }
        if wasIdle { idle -= 1 }
        if !isStopped, !waiting.isEmpty {
            let request = waiting.removeFirst()
            return .lookUp(request, more: !waiting.isEmpty)
        }
        // Threads that were created beside blocked ones are not kept: each wake-up wakes all waiting threads.
        if isStopped || timedOut || threads > threadLimit {
            threads -= 1
            return .end
        }
        idle += 1
        return .wait
    }

    /// Handles a counted thread that could not be created.
    ///
    /// - Returns: the requests that no thread will take. The caller must answer them.
    mutating func threadFailed(of generation: Int) -> [LookupRequest] {
        guard generation == self.generation else {
            formerThreads -= 1
            return []
        }
        threads -= 1
        guard threads == 0 else { return [] }
        defer { waiting = [] }
        return waiting
    }
}
