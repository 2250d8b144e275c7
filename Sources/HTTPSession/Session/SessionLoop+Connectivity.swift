internal import EventLoop
internal import FoundationEssentials
internal import Reachability

/// What the path monitor tells.
extension SessionLoop {
    func serverChanged(_ origin: Origin, watch: UInt64, _ update: ServerUpdate) {
        guard let gate else { return }
        obey(gate.changed(origin, watch: watch, update, draw: SessionLoop.draw))
    }

    /// The task has had an answer.
    func answered(_ id: UInt64, at origin: Origin) {
        guard let gate else { return }
        obey(gate.answered(id, at: origin, draw: SessionLoop.draw))
    }

    private static func draw(below limit: Int64) -> Int64 { .random(in: 0..<max(1, limit)) }

    private func obey(_ orders: [ReachabilityGate.Order]) {
        for order in orders {
            switch order {
            case .hold(let id, let cause): run(id)?.send(.networkIsGone(cause))
            case .release(let id, let delay): run(id)?.send(.networkIsBack(delay: delay))
            }
        }
    }

    func pathChanged(_ path: NetworkPath) {
        for run in allRuns { run.send(.networkChanged) }
        if path.status == .satisfied, let gate { obey(gate.pathIsBack(draw: SessionLoop.draw)) }
    }

    /// Routes alone may change many times a second, where a machine learns them from others: they are looked at so often, in nanoseconds.
    private static let routesInterval: Int64 = 50_000_000

    /// Links, addresses, routes or rules are other ones, whatever that means to the path.
    func waysChanged() {
        if !notices.isUrgent, let waysSeenAt, now < waysSeenAt + SessionLoop.routesInterval {
            return judges(at: waysSeenAt + SessionLoop.routesInterval)
        }
        // What has ended already is not judged.
        engine.advance()
        judgeConnections()
    }

    private func takeNotice() {
        guard let path = notices.take() else { return }
        waysSeenAt = now
        followers = []
        guard ways.update(path, now: now) else { return }
        waysChangedAt = now
        engine.networkChanged()
        queue.forgetNames()
    }

    /// Ends what goes over a way that is gone, or that another is better than.
    func judgeConnections() {
        judgesAt = nil
        takeNotice()
        var connections: [(TransferDriver, TransferWays.Connection)] = []
        var attempts: [(TransferDriver, TransferWays.Attempt)] = []
        var used: [IPAddress: Set<IPAddress>] = [:]
        for run in allRuns {
            if let connection = run.connection {
                connections.append((run, connection))
                used[connection.remote, default: []].insert(connection.local)
            } else if let attempt = run.connectionAttempt {
                attempts.append((run, attempt))
                for one in attempt.tries { used[one.remote, default: []].formUnion([one.chosen].compactMap(\.self)) }
            }
        }
        ways.learn(Dictionary(uniqueKeysWithValues: used.map { ($0, way(to: $0, expecting: $1)) }), now: now)
        for (run, connection) in connections { meet(ways.fate(of: connection, now: now), of: run) }
        for (run, attempt) in attempts {
            let fate = ways.fate(of: attempt, now: now)
            if case .gone = fate, !run.mayWaitForWay { continue }
            meet(fate, of: run)
        }
    }

    private func meet(_ fate: TransferWays.Fate, of run: TransferDriver) {
        switch fate {
        case .fine: break
        case .lost(let until): judges(at: until)
        case .doubtful(let reason): run.send(.connectionIsDoubtful(reason))
        case .gone(let reason): run.send(.connectionIsGone(reason, cause: settings.path?.currentPath?.cause))
        }
    }

    private func judges(at time: Int64) {
        judgesAt = min(judgesAt ?? time, time)
        wakes(at: judgesAt)
    }

    /// An attempt has begun, or one of its tries. - Parameter tries: none: nothing is known of addresses yet.
    func judgesAttempt(_ tries: [TransferWays.Try] = []) {
        let hasNoWay = tries.contains { attempt in attempt.chosen.map { ways.isLost(.from([$0]), to: attempt.remote) } ?? false }
        if tries.isEmpty ? ways.areLost : hasNoWay { judges(at: now + TransferWays.patience) }
    }

    // MARK: What the kernel says

    private func way(to remote: IPAddress, expecting locals: Set<IPAddress> = []) -> TransferWays.Way {
        remote.isLoopback ? .unknown : KernelRoutes.way(to: remote, over: interface, expecting: locals)
    }

    /// Whether nothing gets through to any of these addresses now; of none: to anywhere.
    func isLost(_ remotes: [IPAddress]) -> Bool {
        remotes.isEmpty ? ways.areLost : remotes.allSatisfy { ways.isLost(way(to: $0), to: $0) }
    }

    /// Whether the kernel has a route to one of these addresses that works, also where there is no default route. A session that is bound
    /// to an interface does not know that.
    func hasRoute(to remotes: [IPAddress]) -> Bool {
        interface == nil
            && remotes.contains { remote in
                let way = way(to: remote)
                guard case .from = way else { return false }
                return !ways.isLost(way, to: remote)
            }
    }

    /// What is missing on the way to all of these addresses, and may come; of none, nobody knows.
    func loss(of remotes: [IPAddress]) -> Cause? {
        let losses = remotes.map { ways.loss(way(to: $0), to: $0) }
        return losses.contains(nil) ? nil : losses.first ?? nil
    }

    /// Whether a connection that was made before still goes where the kernel would have it go. It is asked once after a change.
    func leads(from local: String, to remote: String) -> Bool {
        // libcurl drops what has been idle for 118 s in any case.
        guard let waysSeenAt, now - waysSeenAt < 120_000_000_000 else { return true }
        let ends = ConnectionEnds(local: local, remote: remote)
        guard !followers.contains(ends), let near = IPAddress(local)?.unmapped, let far = IPAddress(remote)?.unmapped else {
            return true
        }
        let connection = TransferWays.Connection(local: near, remote: far)
        guard ways.fate(of: connection, by: way(to: far, expecting: [near]), now: now) == .fine else { return false }
        if followers.count >= 1_000 { followers = [] }
        followers.insert(ends)
        return true
    }

    /// How long a connection of HTTP/2, which ``IdleSockets`` does not know, may have been idle to be used again, in whole seconds; 0: none
    /// may. What was idle at the network's last change is too old.
    var maximumIdleSeconds: Int? {
        guard let waysChangedAt else { return nil }
        let seconds = (now - waysChangedAt) / 1_000_000_000
        // libcurl drops what has been idle for 118 s in any case.
        return seconds > 120 ? nil : max(0, Int(seconds) - 2)
    }

    /// How old a look-up may be, in whole seconds: another network's name servers may say something else.
    var maximumLookupSeconds: Int? {
        guard let waysChangedAt else { return nil }
        let seconds = (now - waysChangedAt) / 1_000_000_000
        // libcurl forgets what is older in any case.
        return seconds > 61 ? nil : max(0, Int(seconds) - 1)
    }
}

/// Both ends of a connection, as libcurl writes them.
struct ConnectionEnds: Hashable, Sendable {
    var local: String
    var remote: String
}
