internal import Reachability

/// Judges transfers under way by what has become of their way. TCP would wait for minutes before it gave up a connection whose address is
/// gone; but a way that is back soon is best left to it.
struct TransferWays: Sendable {
    /// Losses shorter than this are left to TCP, in nanoseconds.
    static let patience: Int64 = 250_000_000

    /// A connection's ends, and since when it is used.
    struct Connection: Hashable, Sendable {
        var local: IPAddress
        var remote: IPAddress
        var since: Int64
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
    /// Families that have lost their default route: from which interface, and when. A family that never had one is well without.
    private var unrouted: [IPAddress.Family: Takeover] = [:]
    private var selected: [IPAddress.Family: UInt32] = [:]
    private var takeovers: [IPAddress.Family: Takeover] = [:]
    /// Whether there is no way at all, where there was one or would be with a link. A machine that never had a default route is well without.
    private(set) var areLost = false

    init(isBound: Bool = false) { self.isBound = isBound }

    /// - Returns: whether connections may have died of the change.
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
        return before.status != path.status || !TransferWays.addresses(of: before).isSubset(of: TransferWays.addresses(of: path))
            || before.interfaceV4?.index != path.interfaceV4?.index || before.interfaceV6?.index != path.interfaceV6?.index
    }

    func fate(of connection: Connection, now: Int64) -> Fate {
        let (local, remote) = (connection.local, connection.remote)
        guard let path, !local.isLoopback, !path.interfaces.contains(where: { $0.addresses.contains { $0.address == remote } })
        else {
            return .fine
        }
        guard let interface = path.interfaces.first(where: { $0.addresses.contains { $0.address == local } }) else {
            return .gone("the address \(local) is gone")
        }
        if let since = downSince[interface.index] { return lost(since, now, "\(interface.name) is \(interface.level.rawValue)") }
        if isBound || interface.addresses.contains(where: { !$0.isDefault && $0.contains(remote) }) { return .fine }
        if let takeover = takeovers[local.family], takeover.interface == interface.index, takeover.moment > connection.since {
            return .doubtful("another interface has taken over from \(interface.name)")
        }
        if let loss = unrouted[local.family], loss.interface == interface.index, loss.moment > connection.since {
            return lost(loss.moment, now, "there is no route")
        }
        return .fine
    }

    /// Of an attempt that has no connection yet, and so no address that could be looked for: whether the ways are other ones than when
    /// it began. It is ``Fate/gone(_:)`` where there has been none since: TCP would wait for an interface without a carrier as for a slow server.
    func fate(ofAttemptSince start: Int64, now: Int64) -> Fate {
        guard !isBound else { return .fine }
        if takeovers.values.contains(where: { $0.moment > start }) { return .doubtful("another interface has taken over") }
        if let loss = losses.filter({ $0 > start }).min() { return lost(loss, now, "the way is lost") }
        guard areLost else { return .fine }
        let until = start + TransferWays.patience
        return until <= now ? .gone("there is no way to any network") : .lost(until: until)
    }

    /// When ways were lost that are not back.
    private var losses: [Int64] { unrouted.values.map(\.moment) + selected.values.compactMap { downSince[$0] } }

    private func lost(_ since: Int64, _ now: Int64, _ reason: String) -> Fate {
        let until = since + TransferWays.patience
        return until <= now ? .doubtful(reason) : .lost(until: until)
    }

    private static func addresses(of path: NetworkPath) -> Set<IPAddress> {
        Set(path.interfaces.flatMap { $0.addresses.map(\.address) })
    }

    private static func interface(of path: NetworkPath, _ family: IPAddress.Family) -> NetworkInterface? {
        family == .v4 ? path.interfaceV4 : path.interfaceV6
    }
}
