internal import Reachability

/// Judges transfers under way by what has become of their way: the route that the kernel has to the address that they use, be it the
/// server's or a proxy's. TCP would wait for minutes before it gave up a connection whose address is gone; but a way that is back soon is
/// best left to it.
package struct TransferWays: Sendable {
    /// Losses shorter than this are left to TCP, in nanoseconds.
    static let patience: Int64 = 250_000_000

    /// What the kernel says of the way to an address.
    enum Way: Hashable, Sendable {
        /// There is one: a connection that was made now would have one of these addresses. They are several where the kernel spreads
        /// connections over several ways.
        case from(Set<IPAddress>)
        case none
        /// The route there is one that refuses (`unreachable`, `prohibit`, `blackhole`): waiting brings no other.
        case refused
        /// Nobody has asked, or the answer says nothing of routes.
        case unknown
    }

    /// A connection's ends.
    struct Connection: Hashable, Sendable {
        var local: IPAddress
        var remote: IPAddress
        /// What the kernel said when it was made: another address where its rules tell by more than addresses.
        var chosen: IPAddress?
    }

    /// What an attempt that has no connection yet asks for one, and which address of this machine's the kernel chose for that.
    package struct Try: Hashable, Sendable {
        var remote: IPAddress
        var chosen: IPAddress?
    }

    /// An attempt without a connection, and when it began. No tries: it looks for its host's name.
    struct Attempt: Hashable, Sendable {
        var since: Int64
        var tries: [Try] = []
    }

    enum Fate: Hashable, Sendable {
        case fine
        /// Nothing gets through; at the time given it is ``doubtful(_:)``, unless that changes.
        case lost(until: Int64)
        /// It may carry something yet, but what can be done again is better done over another way, for this reason.
        case doubtful(String)
        /// It will carry nothing any more, for this reason.
        case gone(String)
    }

    private struct Takeover: Hashable, Sendable {
        var interface: UInt32
        var moment: Int64
    }

    /// Whether all goes over an interface of the user's choice, wherever the routes lead.
    private let isBound: Bool
    private var path: NetworkPath?
    /// Interfaces that carry nothing, by index, and since when.
    private var downSince: [UInt32: Int64] = [:]
    private var answers: [IPAddress: Way] = [:]
    /// Addresses in use that have no route, and since when that is known.
    private var unreachableSince: [IPAddress: Int64] = [:]

    // What is there before an address is known: the routes to everywhere.
    /// Families that have lost their default route: from which interface, and when. A family that never had one is well without.
    private var unrouted: [IPAddress.Family: Takeover] = [:]
    private var selected: [IPAddress.Family: UInt32] = [:]
    private var takeovers: [IPAddress.Family: Takeover] = [:]
    /// Whether there is no way at all, where there was one or would be with a link. A machine that never had a default route is well without.
    private(set) var areLost = false

    init(isBound: Bool = false) { self.isBound = isBound }

    /// - Returns: whether connections may have died of the change. Of those over an interface that is not worth telling of (containers have
    ///   such, and come and go), nothing is said: each is looked at before it is used again.
    mutating func update(_ path: NetworkPath, now: Int64) -> Bool {
        defer {
            self.path = path
            areLost = !isBound && path.status == .unsatisfied && (!losses.isEmpty || path.cause?.layer == .link)
        }
        let down = path.interfaces.filter { $0.level < .degraded }.map(\.index)
        downSince = Dictionary(uniqueKeysWithValues: down.map { ($0, downSince[$0] ?? now) })
        for family in [IPAddress.Family.v4, .v6] {
            guard let present = TransferWays.interface(of: path, family)?.index else {
                if unrouted[family] == nil, let before = selected[family] {
                    unrouted[family] = Takeover(interface: before, moment: now)
                }
                continue
            }
            unrouted[family] = nil
            if let before = selected[family], before != present { takeovers[family] = Takeover(interface: before, moment: now) }
            selected[family] = present
        }
        guard let before = self.path else { return false }
        let hasLostAddress = TransferWays.addresses(of: before).contains { interface(having: $0, on: path) == nil }
        return before.status != path.status || hasLostAddress
            || before.interfaceV4?.index != path.interfaceV4?.index || before.interfaceV6?.index != path.interfaceV6?.index
    }

    /// What the kernel says now of all addresses in use; of others nothing is kept.
    mutating func learn(_ answers: [IPAddress: Way], now: Int64) {
        self.answers = answers
        let unreachable = answers.filter { $0.value == .none || $0.value == .refused }.keys
        unreachableSince = Dictionary(uniqueKeysWithValues: unreachable.map { ($0, unreachableSince[$0] ?? now) })
    }

    // MARK: Connections

    func fate(of connection: Connection, now: Int64) -> Fate {
        fate(of: connection, by: answers[connection.remote] ?? .unknown, now: now)
    }

    /// By what the kernel says of its way.
    func fate(of connection: Connection, by way: Way, now: Int64) -> Fate {
        let (local, remote) = (connection.local, connection.remote)
        guard path != nil, !local.isLoopback, !isHere(remote) else { return .fine }
        guard let interface = interface(having: local) else {
            // What the kernel would use is there, whatever the path has heard of yet.
            if case .from(let sources) = way, sources.contains(local) { return .fine }
            return .gone("the address \(local) is gone")
        }
        if let since = downSince[interface.index] { return lost(since, now, "\(interface.name) is \(interface.level.rawValue)") }
        guard !isBound else { return .fine }
        switch way {
        case .unknown: return .fine
        case .none, .refused: return lost(unreachableSince[remote] ?? now, now, "there is no route to \(remote)")
        case .from(let sources):
            // Its own address may be on another interface than the one that sends (`ip route … src`).
            guard !sources.contains(local), !leads(from: sources, over: [local, connection.chosen]) else { return .fine }
            return .doubtful("another interface has taken over from \(interface.name)")
        }
    }

    /// Whether what has one of these addresses goes over an interface that one of `others` is on; also where that is not known yet. Of
    /// several addresses of one interface the kernel may prefer another one every day (RFC 8981).
    private func leads(from sources: Set<IPAddress>, over others: [IPAddress?]) -> Bool {
        let indexes = others.compactMap { $0.flatMap(interface(having:))?.index }
        return sources.contains { interface(having: $0).map { indexes.contains($0.index) } ?? true }
    }

    // MARK: Attempts

    /// Of an attempt that has no connection yet. It is as good as the best of its tries.
    ///
    /// It is ``Fate/gone(_:)`` where there has been no way since it began: TCP would wait for an interface without a carrier as for a slow
    /// server.
    func fate(of attempt: Attempt, now: Int64) -> Fate {
        guard !isBound, path != nil else { return .fine }
        guard !attempt.tries.isEmpty else { return fate(ofLookupSince: attempt.since, now: now) }
        let fates = attempt.tries.map { fate(of: $0, since: attempt.since, now: now) }
        if fates.contains(.fine) { return .fine }
        let waits = fates.compactMap { fate in if case .lost(let until) = fate { until } else { nil } }
        if let until = waits.max() { return .lost(until: until) }
        let isDoubtful = { (fate: Fate) in if case .doubtful = fate { true } else { false } }
        return fates.first(where: isDoubtful) ?? fates.first ?? .fine
    }

    private func fate(of attempt: Try, since start: Int64, now: Int64) -> Fate {
        guard !isHere(attempt.remote) else { return .fine }
        let missing = "there is no way to \(attempt.remote)"
        switch answers[attempt.remote] ?? .unknown {
        case .unknown: return .fine
        case .none, .refused: return lost(unreachableSince[attempt.remote] ?? now, start, now, missing)
        case .from(let sources):
            guard let chosen = attempt.chosen else { return .fine }
            guard let interface = interface(having: chosen) else {
                return sources.contains(chosen) ? .fine : .doubtful("the address \(chosen) is gone")
            }
            guard sources.contains(chosen) || leads(from: sources, over: [chosen]) else {
                return .doubtful("another interface has taken over from \(interface.name)")
            }
            return downSince[interface.index].map { lost($0, start, now, missing) } ?? .fine
        }
    }

    /// Whether the ways to everywhere are other ones than when it began.
    private func fate(ofLookupSince start: Int64, now: Int64) -> Fate {
        if takeovers.values.contains(where: { $0.moment > start }) { return .doubtful("another interface has taken over") }
        let missing = "there is no way to any network"
        if let loss = losses.filter({ $0 > start }).min() { return lost(loss, start, now, missing) }
        return areLost ? lost(start, start, now, missing) : .fine
    }

    /// Whether nothing gets through to an address now, by what the kernel says of the way there.
    func isLost(_ way: Way, to remote: IPAddress) -> Bool {
        way == .unknown ? areLost : loss(way, to: remote) != nil || (way == .refused && !isBound && !isHere(remote))
    }

    /// What is missing on the way to an address, and may come.
    func loss(_ way: Way, to remote: IPAddress) -> Cause? {
        guard !isBound, path != nil, !isHere(remote) else { return nil }
        switch way {
        case .unknown, .refused: return nil
        case .none: return Cause(.route, .noRoute, detail: "there is no route to \(remote)")
        case .from(let sources):
            let ways = sources.compactMap(interface(having:))
            guard ways.count == sources.count, ways.allSatisfy({ downSince[$0.index] != nil }), let one = ways.first else {
                return nil
            }
            let code: Cause.Code = one.level == .off ? .interfaceDown : one.level == .dormant ? .dormant : .noCarrier
            return Cause(.link, code, detail: "\(one.name), which leads to \(remote), is \(one.level.rawValue)")
        }
    }

    /// When ways to everywhere were lost that are not back.
    private var losses: [Int64] { unrouted.values.map(\.moment) + selected.values.compactMap { downSince[$0] } }

    private func lost(_ since: Int64, _ now: Int64, _ reason: String) -> Fate {
        let until = since + TransferWays.patience
        return until <= now ? .doubtful(reason) : .lost(until: until)
    }

    /// What has been without a way since it began has as long to show that there is one.
    private func lost(_ since: Int64, _ start: Int64, _ now: Int64, _ reason: String) -> Fate {
        guard since <= start else { return lost(since, now, reason) }
        let until = start + TransferWays.patience
        return until <= now ? .gone(reason) : .lost(until: until)
    }

    // MARK: Addresses

    /// This machine's own addresses are reached without a way.
    private func isHere(_ address: IPAddress) -> Bool { address.isLoopback || interface(having: address) != nil }

    private func interface(having address: IPAddress) -> NetworkInterface? { path.flatMap { interface(having: address, on: $0) } }

    private func interface(having address: IPAddress, on path: NetworkPath) -> NetworkInterface? {
        path.interfaces.first { $0.addresses.contains { $0.address == address } }
    }

    private static func addresses(of path: NetworkPath) -> Set<IPAddress> {
        Set(path.interfaces.filter { path.notable.contains($0.index) }.flatMap { $0.addresses.map(\.address) })
    }

    private static func interface(of path: NetworkPath, _ family: IPAddress.Family) -> NetworkInterface? {
        family == .v4 ? path.interfaceV4 : path.interfaceV6
    }
}
