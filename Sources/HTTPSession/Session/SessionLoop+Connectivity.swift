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

    private func obey(_ decisions: [ReachabilityGate.Decision]) {
        for decision in decisions {
            switch decision {
            case .wait(let id, let cause): run(id)?.send(.networkLost(cause))
            case .release(let id, let delay): run(id)?.send(.networkRestored(delay: delay))
            }
        }
    }

    func pathChanged(_ path: NetworkPath) {
        for run in allRuns { run.send(.networkChanged) }
        if path.status == .satisfied, let gate { obey(gate.pathRestored(draw: SessionLoop.draw)) }
    }

    /// Routes alone may change many times a second, where a machine learns them from others: they are looked at so often, in nanoseconds.
    private static let routesInterval: Int64 = 50_000_000

    /// Links, addresses, routes or rules are other ones, whatever that means to the path.
    func routesChanged() {
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
        guard routeTracker.update(path, now: now) else { return }
        waysChangedAt = now
        engine.networkChanged()
        queue.invalidateNames()
    }

    /// Ends what goes over a way that is gone, or that another is better than.
    func judgeConnections() {
        judgesAt = nil
        takeNotice()
        var connections: [(TransferDriver, RouteTracker.Connection)] = []
        var attempts: [(TransferDriver, RouteTracker.Attempt)] = []
        var used: [IPAddress: Set<IPAddress>] = [:]
        for run in allRuns {
            if let connection = run.connection {
                connections.append((run, connection))
                used[connection.remote, default: []].insert(connection.local)
            } else if let attempt = run.connectionAttempt {
                attempts.append((run, attempt))
                for one in attempt.connectAttempts { used[one.remote, default: []].formUnion([one.chosen].compactMap(\.self)) }
            }
        }
        routeTracker.updateRoutes(Dictionary(uniqueKeysWithValues: used.map { ($0, way(to: $0, expecting: $1)) }), now: now)
        for (run, connection) in connections { meet(routeTracker.health(of: connection, now: now), of: run) }
        for (run, attempt) in attempts {
            let health = routeTracker.health(of: attempt, now: now)
            if case .dead = health, !run.mayWaitForRoute { continue }
            meet(health, of: run)
        }
    }

    private func meet(_ health: RouteTracker.Health, of run: TransferDriver) {
        switch health {
        case .healthy: break
        case .unreachable(let until): judges(at: until)
        case .suspect(let reason): run.send(.connectionSuspect(reason))
        case .dead(let reason): run.send(.connectionDead(reason, cause: settings.path?.currentPath?.cause))
        }
    }

    private func judges(at time: Int64) {
        judgesAt = min(judgesAt ?? time, time)
        wakes(at: judgesAt)
    }

    /// An attempt has begun, or one of its tries. - Parameter tries: none: nothing is known of addresses yet.
    func judgesAttempt(_ connectAttempts: [RouteTracker.ConnectAttempt] = []) {
        let hasNoWay = connectAttempts.contains { attempt in
            attempt.chosen.map { routeTracker.isUnreachable(.from([$0]), to: attempt.remote) } ?? false
        }
        if connectAttempts.isEmpty ? routeTracker.hasLostAllRoutes : hasNoWay { judges(at: now + RouteTracker.toleratedOutage) }
    }

    // MARK: What the kernel says

    private func way(to remote: IPAddress, expecting locals: Set<IPAddress> = []) -> RouteTracker.Route {
        remote.isLoopback ? .unknown : KernelRoutes.way(to: remote, over: interface, expecting: locals)
    }

    /// Whether nothing gets through to any of these addresses now; of none: to anywhere.
    func isLost(_ remotes: [IPAddress]) -> Bool {
        remotes.isEmpty ? routeTracker.hasLostAllRoutes : remotes.allSatisfy { routeTracker.isUnreachable(way(to: $0), to: $0) }
    }

    /// Whether the kernel has a route to one of these addresses that works, also where there is no default route. A session that is bound
    /// to an interface does not know that.
    func hasRoute(to remotes: [IPAddress]) -> Bool {
        interface == nil
            && remotes.contains { remote in
                let way = way(to: remote)
                guard case .from = way else { return false }
                return !routeTracker.isUnreachable(way, to: remote)
            }
    }

    /// What is missing on the way to all of these addresses, and may come; of none, nobody knows.
    func loss(of remotes: [IPAddress]) -> Cause? {
        let losses = remotes.map { routeTracker.recoverableCause(way(to: $0), to: $0) }
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
        let connection = RouteTracker.Connection(local: near, remote: far)
        guard routeTracker.health(of: connection, by: way(to: far, expecting: [near]), now: now) == .healthy else { return false }
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
