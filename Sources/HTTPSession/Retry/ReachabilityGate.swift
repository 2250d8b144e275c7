internal import Reachability

/// Holds tasks whose server is out of reach, and lets them go on when it is back: each server in trouble is watched (``ServerWatches``).
/// Requests are tried first, and the gate explains their failure; while a probe goes on saying so, others to the same server need not fail
/// themselves.
struct ReachabilityGate {
    /// What follows for a task.
    enum Order: Hashable, Sendable {
        /// It waits without counting tries.
        case hold(UInt64, Cause)
        /// It may go on, after so many nanoseconds.
        case release(UInt64, delay: Int64)
    }

    /// Servers watched at a time: tasks of further ones have their retry policy alone, until one of these is back or given up.
    static let maximumWatches = 64
    /// Over how long so many tasks are spread when their server is back, each.
    private static let spread: Int64 = 1_000_000
    /// How long the others wait for the answer of the first, the canary: then they go in any case, spread as well.
    static let canaryPatience: Int64 = 1_000_000_000

    /// What the server's probe has said, where it does not get through.
    private enum Word {
        /// What is missing may come.
        case missing(Cause)
        /// Its name is not known, here and now.
        case nameless
        /// Something else, which waiting does not change.
        case refused
    }

    private struct Watch {
        let number: UInt64
        var word: Word?
        /// By when they came: thousands may wait, and leave one by one.
        private var arrivals: [UInt64: Int] = [:]
        private var lastArrival = 0

        init(_ number: UInt64) { self.number = number }

        var isEmpty: Bool { arrivals.isEmpty }
        /// In the order in which they came.
        var tasks: [UInt64] { arrivals.sorted { $0.value < $1.value }.map(\.key) }

        mutating func add(_ id: UInt64) {
            guard arrivals[id] == nil else { return }
            lastArrival += 1
            arrivals[id] = lastArrival
        }

        mutating func remove(_ id: UInt64) { arrivals[id] = nil }
    }

    private var watches: [Origin: Watch] = [:]
    /// Who has gone first to a server that is back, and who follows its answer.
    private var canaries: [Origin: (id: UInt64, followers: [UInt64])] = [:]
    private var lastNumber: UInt64 = 0

    func isWatched(_ origin: Origin) -> Bool { watches[origin] != nil }

    /// Whether the gate could hold a task for the server.
    func hasRoom(for origin: Origin) -> Bool { watches.count < ReachabilityGate.maximumWatches || isWatched(origin) }

    /// The server is watched from now on. - Returns: the number of its watch.
    mutating func watch(_ origin: Origin) -> UInt64 {
        lastNumber += 1
        watches[origin] = Watch(lastNumber)
        return lastNumber
    }

    /// A task's attempt has failed as it does when a network is gone.
    ///
    /// `hasNoRoute`: the kernel has said that there is no way to the server. `loss`: what is missing on the way to the very addresses that
    /// were tried, where that is known: the whole machine, whose `path` this is, may miss nothing.
    ///
    /// - Returns: why it has to wait, where that is known.
    mutating func failed(_ id: UInt64, at origin: Origin, hasNoRoute: Bool, loss: Cause? = nil, path: NetworkPath?) -> Cause? {
        if canaries[origin]?.id == id { canaries[origin] = nil }
        guard isWatched(origin) else { return nil }
        watches[origin]?.add(id)
        switch watches[origin]?.word {
        case .missing(let cause): return cause
        case .refused: return nil
        case .nameless, nil:
            guard hasNoRoute else { return nil }
            return ReachabilityGate.missing(path) ?? (path?.status == .satisfied ? loss : nil)
        }
    }

    /// What the whole machine misses.
    private static func missing(_ path: NetworkPath?) -> Cause? {
        guard let path, path.status == .unsatisfied, let cause = path.cause, passes(cause) else { return nil }
        return cause
    }

    /// A task is about to be tried.
    ///
    /// - Returns: why it has to wait instead, where that is known from others.
    mutating func join(_ id: UInt64, at origin: Origin) -> Cause? {
        // Without a name server, connections that are there do as well.
        guard case .missing(let cause) = watches[origin]?.word, [.link, .address, .route].contains(cause.layer) else {
            return nil
        }
        watches[origin]?.add(id)
        return cause
    }

    /// The task has had an answer. - Returns: what that means to others.
    mutating func answered(_ id: UInt64, at origin: Origin, draw: (Int64) -> Int64) -> [Order] {
        guard !canaries.isEmpty, let canary = canaries[origin], canary.id == id else { return [] }
        canaries[origin] = nil
        return release(canary.followers, draw)
    }

    /// The task waits for nothing here any more, or has ended.
    mutating func forget(_ id: UInt64, at origin: Origin) {
        if canaries[origin]?.id == id { canaries[origin] = nil }
        watches[origin]?.remove(id)
        if watches[origin]?.isEmpty == true { watches[origin] = nil }
    }

    /// The server's state has changed. `watch`: whose word it is; one that has been dropped may have said something that was still on
    /// its way. `draw` gives a number below its argument.
    mutating func changed(
        _ origin: Origin, watch number: UInt64, _ update: ServerUpdate, path: NetworkPath?, draw: (Int64) -> Int64
    ) -> [Order] {
        guard watches[origin]?.number == number else { return [] }
        let tasks = watches[origin]?.tasks ?? []
        switch update.state {
        case .unknown: return []
        case .unreachable:
            // A name that does not exist, or a route that an administrator refuses, will not be there for waiting.
            guard let cause = update.cause, ReachabilityGate.passes(cause) else {
                // Without a network no name is known: with one, the tasks find out.
                let isOfName = update.cause?.layer == .dns
                watches[origin]?.word = isOfName ? .nameless : .refused
                return isOfName && ReachabilityGate.missing(path) != nil ? [] : release(tasks, draw)
            }
            watches[origin]?.word = .missing(cause)
            return tasks.map { .hold($0, cause) }
        case .up, .degraded, .down:
            // Where it is down the network is back, and the retry policy counts.
            watches[origin] = nil
            return sendCanary(of: tasks, to: origin, draw)
        }
    }

    /// The machine has a path again. The probe reports nothing for a name that it could not resolve before; without probes (`isProbed`) the
    /// path is all that is known.
    mutating func pathIsBack(isProbed: Bool = true, draw: (Int64) -> Int64) -> [Order] {
        var orders: [Order] = []
        for (origin, watch) in watches {
            if !isProbed {
                watches[origin] = nil
                orders += sendCanary(of: watch.tasks, to: origin, draw)
            } else if case .nameless = watch.word {
                orders += sendCanary(of: watch.tasks, to: origin, draw)
            }
        }
        return orders
    }

    private mutating func sendCanary(of tasks: [UInt64], to origin: Origin, _ draw: (Int64) -> Int64) -> [Order] {
        guard let first = tasks.first else { return [] }
        let followers = Array(tasks.dropFirst())
        canaries[origin] = followers.isEmpty ? nil : (first, followers)
        return [.release(first, delay: 0)] + release(followers, after: ReachabilityGate.canaryPatience, draw)
    }

    private func release(_ tasks: [UInt64], after wait: Int64 = 0, _ draw: (Int64) -> Int64) -> [Order] {
        let width = ReachabilityGate.spread * Int64(tasks.count)
        return tasks.map { .release($0, delay: wait + draw(width)) }
    }

    /// Whether what is missing may come: this machine's link, address, route or next hop, or the way to its name server.
    private static func passes(_ cause: Cause) -> Bool {
        switch cause.layer {
        case .link, .address: true
        case .route: cause.code == .noRoute
        case .neighbor: cause.code == .gatewaySilent
        case .dns: cause.code == .resolverSilent
        default: false
        }
    }
}
