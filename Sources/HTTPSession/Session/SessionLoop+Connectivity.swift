internal import ByteComparison
internal import EventLoop
internal import FoundationEssentials
internal import Reachability

/// The session's reactions to the path monitor.
extension SessionLoop {
    func serverChanged(_ origin: Origin, watch: UInt64, _ update: ServerUpdate) {
        guard let serverWatches else { return }
        obey(serverWatches.changed(origin, watch: watch, update, draw: draw))
    }

    /// A task has received a response.
    func answered(_ id: UInt64, at origin: Origin) {
        guard let serverWatches else { return }
        obey(serverWatches.answered(id, at: origin, draw: draw))
    }

    private func obey(_ decisions: [OutageTracker.Decision]) {
        for decision in decisions {
            switch decision {
            case .wait(let id, let cause): run(id)?.send(.networkLost(cause))
            case .proceed(let id, let delay): run(id)?.send(.networkRestored(delay: delay))
            }
        }
    }

    func pathChanged(_ path: NetworkPath) {
        for run in allRuns { run.send(.networkChanged) }
        if path.status == .satisfied, let serverWatches { obey(serverWatches.pathRestored(draw: draw)) }
    }

    /// The shortest time between two readings of the routes, in nanoseconds. On a machine with a routing protocol, the routes may change many
    /// times a second.
    private static let routesInterval: Int64 = 50_000_000

    /// Links, addresses, routes or rules have changed, whether or not the path has.
    func routesChanged() {
        if !notices.isUrgent, let routesSeenAt, now < routesSeenAt + SessionLoop.routesInterval {
            return scheduleJudgment(at: routesSeenAt + SessionLoop.routesInterval)
        }
        // First report the transfers that have ended, so that they are not judged.
        engine.advance()
        judgeConnections()
    }

    private func updateRoutes() {
        guard let path = notices.take() else { return }
        routesSeenAt = now
        followers = []
        guard routeTracker.update(path, now: now) else { return }
        routesChangedAt = now
        engine.networkChanged()
        queue.invalidateNames()
    }

    /// Ends the transfers whose route is gone, or has been replaced by a better one.
    func judgeConnections() {
        nextJudgment = nil
        updateRoutes()
        var connections: [(TaskDriver, RouteTracker.Connection)] = []
        var attempts: [(TaskDriver, RouteTracker.Attempt)] = []
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
        routeTracker.updateRoutes(Dictionary(uniqueKeysWithValues: used.map { ($0, route(to: $0, expecting: $1)) }), now: now)
        for (run, connection) in connections { apply(routeTracker.health(of: connection, now: now), to: run) }
        for (run, attempt) in attempts {
            let health = routeTracker.health(of: attempt, now: now)
            if case .dead = health, !run.mayWaitForRoute { continue }
            apply(health, to: run)
        }
    }

    private func apply(_ health: RouteTracker.Health, to run: TaskDriver) {
        switch health {
        case .healthy: break
        case .unreachable(let until): scheduleJudgment(at: until)
        case .suspect(let reason): run.send(.connectionSuspect(reason))
        case .dead(let reason):
            // The notice precedes the publication of the same path.
            run.send(.connectionDead(reason, cause: notices.path?.cause ?? settings.path?.currentPath?.cause))
        }
    }

    private func scheduleJudgment(at time: Int64) {
        nextJudgment = min(nextJudgment ?? time, time)
        scheduleWake(at: nextJudgment)
    }

    /// Schedules the judgment of an attempt that has begun, or that has begun to connect to another address.
    ///
    /// - Parameter addresses: The addresses that it connects to; empty if they are not known yet.
    func scheduleAttemptJudgment(_ addresses: [RouteTracker.ConnectAttempt] = []) {
        let hasNoRoute = addresses.contains { attempt in
            attempt.chosen.map { routeTracker.isUnreachable(.from([$0]), to: attempt.remote) } ?? false
        }
        if addresses.isEmpty ? routeTracker.hasLostAllRoutes : hasNoRoute {
            scheduleJudgment(at: now + RouteTracker.toleratedOutage)
        }
    }

    // MARK: The kernel's routes

    private func route(to remote: IPAddress, expecting locals: Set<IPAddress> = []) -> RouteTracker.Route {
        remote.isLoopback ? .unknown : KernelRoutes.route(to: remote, over: interface, expecting: locals)
    }

    /// Whether the routes to all of these addresses are lost; without addresses, whether all routes are lost.
    func isLost(_ remotes: [IPAddress]) -> Bool {
        remotes.isEmpty ? routeTracker.hasLostAllRoutes : remotes.allSatisfy { routeTracker.isUnreachable(route(to: $0), to: $0) }
    }

    /// Whether the kernel has a working route to one of these addresses, also if there is no default route. Always `false` for a session that is
    /// bound to an interface.
    func hasRoute(to remotes: [IPAddress]) -> Bool {
        interface == nil
            && remotes.contains { remote in
                let route = route(to: remote)
                guard case .from = route else { return false }
                return !routeTracker.isUnreachable(route, to: remote)
            }
    }

    /// The cause for which no connection to any of these addresses is possible at present; `nil` if one is possible, or without addresses.
    func loss(of remotes: [IPAddress]) -> Cause? {
        let losses = remotes.map { routeTracker.recoverableCause(route(to: $0), to: $0) }
        return losses.contains(nil) ? nil : losses.first ?? nil
    }

    /// Whether an existing connection still uses the route that the kernel would choose now. The kernel is asked once after each change.
    func followsRoute(from local: String, to remote: String) -> Bool {
        // libcurl closes connections that have been idle for 118 s.
        guard let routesSeenAt, now - routesSeenAt < 120_000_000_000 else { return true }
        let ends = ConnectionEnds(local: local, remote: remote)
        guard !followers.contains(ends), let near = IPAddress(local)?.unmapped, let far = IPAddress(remote)?.unmapped else {
            return true
        }
        let connection = RouteTracker.Connection(local: near, remote: far)
        guard routeTracker.health(of: connection, by: route(to: far, expecting: [near]), now: now) == .healthy else {
            return false
        }
        if followers.count >= 1_000 { followers = [] }
        followers.insert(ends)
        return true
    }

    /// The longest time for which an HTTP/2 connection may have been idle to be reused, in whole seconds; 0 permits no reuse. A connection that was
    /// idle at the last change of the network is too old. ``IdleSockets`` does not know these connections.
    var maximumIdleSeconds: Int? {
        guard let routesChangedAt else { return nil }
        let seconds = (now - routesChangedAt) / 1_000_000_000
        // libcurl closes connections that have been idle for 118 s.
        return seconds > 120 ? nil : max(0, Int(seconds) - 2)
    }

    /// The greatest age of a lookup, in whole seconds: the name servers of another network may give other addresses.
    var maximumLookupSeconds: Int? {
        guard let routesChangedAt else { return nil }
        let seconds = (now - routesChangedAt) / 1_000_000_000
        // libcurl drops older results.
        return seconds > 61 ? nil : max(0, Int(seconds) - 1)
    }
}

/// The two addresses of a connection, as libcurl writes them.
struct ConnectionEnds: Hashable, Sendable {
    @ExactString var local: String
    @ExactString var remote: String
}
