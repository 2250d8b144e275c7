internal import Reachability

/// Tracks the outages of servers. Tasks wait while their server is unreachable, and proceed when it is reachable again.
///
/// Each unreachable server has a monitor (``ServerWatches``). A task is sent first, and the tracker explains its failure. While a probe confirms
/// the cause, further tasks to the same server wait without an attempt of their own.
struct OutageTracker {
    /// A decision about a task.
    enum Decision: Hashable, Sendable {
        /// The task waits for the missing link or route. Its retries do not count.
        case wait(UInt64, Cause)
        /// The task may proceed after `delay` nanoseconds.
        case proceed(UInt64, delay: Int64)
    }

    /// The most servers watched at a time. Tasks to further servers have only their retry policy until a watch ends.
    static let maximumWatches = 64
    /// The time per task, in nanoseconds, over which the tasks that proceed are spread.
    private static let spacing: Int64 = 1_000_000
    /// The longest wait of the other tasks for a response to the first one, the canary. Then they proceed too, spread over
    /// time.
    static let canaryTimeout: Int64 = 1_000_000_000

    /// The result of a server's probe that failed.
    private enum ProbeResult {
        /// A link or route is missing, and may return.
        case missing(Cause)
        /// The server's name has no address at present.
        case nameUnknown
        /// The failure has a cause that waiting does not change.
        case refused
    }

    private struct Watch {
        let number: UInt64
        var probeResult: ProbeResult?
        /// The tasks in order of arrival. It is a dictionary because thousands may wait and leave one by one.
        private var arrivals: [UInt64: Int] = [:]
        private var lastArrival = 0

        init(_ number: UInt64) { self.number = number }

        var isEmpty: Bool { arrivals.isEmpty }
        /// The waiting tasks, in order of arrival.
        var tasks: [UInt64] { arrivals.sorted { $0.value < $1.value }.map(\.key) }

        mutating func add(_ id: UInt64) {
            guard arrivals[id] == nil else { return }
            lastArrival += 1
            arrivals[id] = lastArrival
        }

        mutating func remove(_ id: UInt64) { arrivals[id] = nil }
    }

    private var watches: [Origin: Watch] = [:]
    /// The task sent first to each server that is reachable again, and the tasks that follow its response.
    private var canaries: [Origin: (id: UInt64, followers: [UInt64])] = [:]
    private var lastNumber: UInt64 = 0

    func isWatched(_ origin: Origin) -> Bool { watches[origin] != nil }

    /// Whether a task could wait for the server.
    func hasRoom(for origin: Origin) -> Bool { watches.count < OutageTracker.maximumWatches || isWatched(origin) }

    /// Starts to watch a server. - Returns: the number of its watch.
    mutating func watch(_ origin: Origin) -> UInt64 {
        lastNumber += 1
        watches[origin] = Watch(lastNumber)
        return lastNumber
    }

    /// Explains a task's failed attempt, if an outage may be the cause.
    ///
    /// `hasNoRoute`: the kernel has no route to the server. `loss`: the missing link or route to the addresses of the attempt, if it is
    /// known; the machine's `path` may be satisfied nevertheless.
    ///
    /// - Returns: the cause for which the task has to wait, if it is known.
    mutating func failed(_ id: UInt64, at origin: Origin, hasNoRoute: Bool, loss: Cause? = nil, path: NetworkPath?) -> Cause? {
        if canaries[origin]?.id == id { canaries[origin] = nil }
        guard isWatched(origin) else { return nil }
        watches[origin]?.add(id)
        switch watches[origin]?.probeResult {
        case .missing(let cause): return cause
        case .refused: return nil
        case .nameUnknown, nil:
            guard hasNoRoute else { return nil }
            return OutageTracker.missing(path) ?? (path?.status == .satisfied ? loss : nil)
        }
    }

    /// The cause for which the machine has no path, if it may be removed without the user.
    private static func missing(_ path: NetworkPath?) -> Cause? {
        guard let path, path.status == .unsatisfied, let cause = path.cause, isRecoverable(cause) else { return nil }
        return cause
    }

    /// Makes a task wait that is about to be sent, if others have shown that its server is unreachable.
    ///
    /// - Returns: the cause, if the task waits.
    mutating func join(_ id: UInt64, at origin: Origin) -> Cause? {
        // The failures of a name server do not matter to existing connections, and those may serve the task.
        guard case .missing(let cause) = watches[origin]?.probeResult, [.link, .address, .route].contains(cause.layer) else {
            return nil
        }
        watches[origin]?.add(id)
        return cause
    }

    /// The task has received a response. - Returns: the decisions about the tasks that follow it.
    mutating func answered(_ id: UInt64, at origin: Origin, draw: (Int64) -> Int64) -> [Decision] {
        guard !canaries.isEmpty, let canary = canaries[origin], canary.id == id else { return [] }
        canaries[origin] = nil
        return spread(canary.followers, draw)
    }

    /// Removes a task that has ended or no longer waits.
    mutating func forget(_ id: UInt64, at origin: Origin) {
        if canaries[origin]?.id == id { canaries[origin] = nil }
        watches[origin]?.remove(id)
        if watches[origin]?.isEmpty == true { watches[origin] = nil }
    }

    /// Takes a change of a server's status. `watch` is the number of the watch that reports it: a dropped watch may still deliver
    /// a report. `draw` returns a random number below its argument.
    mutating func changed(
        _ origin: Origin, watch number: UInt64, _ update: ServerUpdate, path: NetworkPath?, draw: (Int64) -> Int64
    ) -> [Decision] {
        guard watches[origin]?.number == number else { return [] }
        let tasks = watches[origin]?.tasks ?? []
        switch update.statusName {
        case .unknown: return []
        case .unreachable:
            // Waiting does not help if a name does not exist, or if an administrator's route refuses.
            guard let cause = update.cause, OutageTracker.isRecoverable(cause) else {
                // Without a network, no name can be resolved. With a network, the tasks find out themselves.
                let isOfName = update.cause?.layer == .dns
                watches[origin]?.probeResult = isOfName ? .nameUnknown : .refused
                return isOfName && OutageTracker.missing(path) != nil ? [] : spread(tasks, draw)
            }
            watches[origin]?.probeResult = .missing(cause)
            return tasks.map { .wait($0, cause) }
        case .up, .degraded, .down:
            // A server that is down is reachable by the network, so the retry policy applies.
            watches[origin] = nil
            return sendCanary(of: tasks, to: origin, draw)
        }
    }

    /// The machine has a path again. The probe does not repeat its report about a name that it could not resolve. Without probes (`isProbed`) only
    /// the path decides.
    mutating func pathRestored(isProbed: Bool = true, draw: (Int64) -> Int64) -> [Decision] {
        var decisions: [Decision] = []
        for (origin, watch) in watches.sorted(by: { $0.value.number < $1.value.number }) {
            if !isProbed {
                watches[origin] = nil
                decisions += sendCanary(of: watch.tasks, to: origin, draw)
            } else if case .nameUnknown = watch.probeResult {
                decisions += sendCanary(of: watch.tasks, to: origin, draw)
            }
        }
        return decisions
    }

    private mutating func sendCanary(of tasks: [UInt64], to origin: Origin, _ draw: (Int64) -> Int64) -> [Decision] {
        guard let first = tasks.first else { return [] }
        let followers = Array(tasks.dropFirst())
        canaries[origin] = followers.isEmpty ? nil : (first, followers)
        return [.proceed(first, delay: 0)] + spread(followers, after: OutageTracker.canaryTimeout, draw)
    }

    private func spread(_ tasks: [UInt64], after wait: Int64 = 0, _ draw: (Int64) -> Int64) -> [Decision] {
        let width = OutageTracker.spacing * Int64(tasks.count)
        return tasks.map { .proceed($0, delay: wait + draw(width)) }
    }

    /// Whether the missing part may return: this machine's link, address, route or next hop, or the route to its name server.
    private static func isRecoverable(_ cause: Cause) -> Bool {
        switch cause.layer {
        case .link, .address: true
        case .route: cause.code == .noRoute
        case .neighbor: cause.code == .gatewaySilent
        case .dns: cause.code == .resolverSilent
        default: false
        }
    }
}
