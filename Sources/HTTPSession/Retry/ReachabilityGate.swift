internal import Reachability

/// Holds tasks whose server is out of reach, and lets them go on when it is back: each server in trouble is probed on the session's path
/// monitor, which probes again when a path changes. Requests are tried first, and the gate explains their failure; while a probe goes on
/// saying so, others to the same server need not fail themselves.
final class ReachabilityGate {
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

    private final class Watch {
        let number: UInt64
        let monitor: ServerMonitor
        let token: CallbackToken
        var word: Word?
        /// By when they came: thousands may wait, and leave one by one.
        private var arrivals: [UInt64: Int] = [:]
        private var lastArrival = 0

        init(_ number: UInt64, _ monitor: ServerMonitor, _ token: CallbackToken) {
            self.number = number
            self.monitor = monitor
            self.token = token
        }

        var isEmpty: Bool { arrivals.isEmpty }
        /// In the order in which they came.
        var tasks: [UInt64] { arrivals.sorted { $0.value < $1.value }.map(\.key) }

        func add(_ id: UInt64) {
            guard arrivals[id] == nil else { return }
            lastArrival += 1
            arrivals[id] = lastArrival
        }

        func remove(_ id: UInt64) { arrivals[id] = nil }
    }

    private let path: PathMonitor
    private let settings: ProbeSettings
    private let report: @Sendable (Origin, _ watch: UInt64, ServerUpdate) -> Void
    private var watches: [Origin: Watch] = [:]
    /// Who has gone first to a server that is back, and who follows its answer.
    private var canaries: [Origin: (id: UInt64, followers: [UInt64])] = [:]
    private var lastNumber: UInt64 = 0

    /// `report` is called on a thread of the monitor's, and what it is told belongs to ``changed(_:watch:_:draw:)``.
    init(
        _ path: PathMonitor, settings: ProbeSettings,
        report: @escaping @Sendable (Origin, _ watch: UInt64, ServerUpdate) -> Void
    ) {
        self.path = path
        self.settings = settings
        self.report = report
    }

    /// A task's attempt has failed as it does when a network is gone; `endpoint` is what it has to reach first.
    ///
    /// `hasNoRoute`: the kernel has said that there is no way to it. `loss`: what is missing on the way to the very addresses that were tried,
    /// where that is known: the whole machine may miss nothing.
    ///
    /// - Returns: why it has to wait, where that is known.
    func failed(_ id: UInt64, at origin: Origin, endpoint: Endpoint, hasNoRoute: Bool, loss: Cause? = nil) -> Cause? {
        if canaries[origin]?.id == id { canaries[origin] = nil }
        guard let watch = watches[origin] ?? watch(origin, endpoint) else { return nil }
        watch.add(id)
        switch watch.word {
        case .missing(let cause): return cause
        case .refused: return nil
        case .nameless, nil: return hasNoRoute ? missing ?? (path.currentPath?.status == .satisfied ? loss : nil) : nil
        }
    }

    /// What the whole machine misses.
    private var missing: Cause? {
        guard let path = path.currentPath, path.status == .unsatisfied, let cause = path.cause, ReachabilityGate.passes(cause)
        else { return nil }
        return cause
    }

    /// A task is about to be tried.
    ///
    /// - Returns: why it has to wait instead, where that is known from others.
    func join(_ id: UInt64, at origin: Origin) -> Cause? {
        // Without a name server, connections that are there do as well.
        guard let watch = watches[origin], case .missing(let cause) = watch.word, [.link, .address, .route].contains(cause.layer)
        else { return nil }
        watch.add(id)
        return cause
    }

    /// Whether the gate could hold a task for the server.
    func hasRoom(for origin: Origin) -> Bool { watches.count < ReachabilityGate.maximumWatches || watches[origin] != nil }

    /// The task has had an answer. - Returns: what that means to others.
    func answered(_ id: UInt64, at origin: Origin, draw: (Int64) -> Int64) -> [Order] {
        guard !canaries.isEmpty, let canary = canaries[origin], canary.id == id else { return [] }
        canaries[origin] = nil
        return release(canary.followers, draw)
    }

    /// The task waits for nothing here any more, or has ended.
    func forget(_ id: UInt64, at origin: Origin) {
        if canaries[origin]?.id == id { canaries[origin] = nil }
        guard let watch = watches[origin] else { return }
        watch.remove(id)
        if watch.isEmpty { watches[origin] = nil }
    }

    /// The server's state has changed. `watch`: whose word it is; one that has been dropped may have said something that was still on
    /// its way. `draw` gives a number below its argument.
    func changed(_ origin: Origin, watch number: UInt64, _ update: ServerUpdate, draw: (Int64) -> Int64) -> [Order] {
        guard let watch = watches[origin], watch.number == number else { return [] }
        switch update.state {
        case .unknown: return []
        case .unreachable:
            // A name that does not exist, or a route that an administrator refuses, will not be there for waiting.
            guard let cause = update.cause, ReachabilityGate.passes(cause) else {
                // Without a network no name is known: with one, the tasks find out.
                watch.word = update.cause?.layer == .dns ? .nameless : .refused
                if case .nameless = watch.word, missing != nil { return [] }
                return release(watch.tasks, draw)
            }
            watch.word = .missing(cause)
            return watch.tasks.map { .hold($0, cause) }
        case .up, .degraded, .down:
            // Where it is down the network is back, and the retry policy counts.
            watches[origin] = nil
            return sendCanary(of: watch.tasks, to: origin, draw)
        }
    }

    /// The machine has a path again. The probe says nothing anew of a name that it has not known before.
    func pathIsBack(draw: (Int64) -> Int64) -> [Order] {
        var orders: [Order] = []
        for (origin, watch) in watches {
            if case .nameless = watch.word { orders += sendCanary(of: watch.tasks, to: origin, draw) }
        }
        return orders
    }

    private func sendCanary(of tasks: [UInt64], to origin: Origin, _ draw: (Int64) -> Int64) -> [Order] {
        guard let first = tasks.first else { return [] }
        let followers = Array(tasks.dropFirst())
        canaries[origin] = followers.isEmpty ? nil : (first, followers)
        return [.release(first, delay: 0)] + release(followers, after: ReachabilityGate.canaryPatience, draw)
    }

    private func release(_ tasks: [UInt64], after wait: Int64 = 0, _ draw: (Int64) -> Int64) -> [Order] {
        let width = ReachabilityGate.spread * Int64(tasks.count)
        return tasks.map { .release($0, delay: wait + draw(width)) }
    }

    private func watch(_ origin: Origin, _ endpoint: Endpoint) -> Watch? {
        guard watches.count < ReachabilityGate.maximumWatches,
            let monitor = try? ServerMonitor(endpoint, settings: settings, on: path)
        else { return nil }
        lastNumber += 1
        let watch = Watch(lastNumber, monitor, monitor.onChange { [report, lastNumber] in report(origin, lastNumber, $0) })
        watches[origin] = watch
        return watch
    }

    /// Whether what is missing may come: this machine's link, address, route or next hop, or the way to its name server.
    private static func passes(_ cause: Cause) -> Bool {
        switch cause.layer {
        case .link, .address: true
        case .route: cause.code == .noRoute
        case .neighbor: cause.code == .gatewaySilent
        case .dns: cause.code == .resolverSilent
        case .firewall, .network, .tcp, .tls, .http, .local: false
        }
    }
}
