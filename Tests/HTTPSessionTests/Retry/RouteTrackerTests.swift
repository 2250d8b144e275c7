import Expectations
import Reachability
import Testing

@testable import HTTPSession

/// Times are milliseconds. An outage of 250 ms is tolerated. The server is at 203.0.113.9.
struct RouteTrackerTests {
    private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    private func interface(_ index: UInt32, _ addresses: String..., level: LinkLevel = .routable) throws -> NetworkInterface {
        NetworkInterface(
            name: "if\(index)", index: index, type: .wired, isVirtual: false, isExpensive: false, level: level,
            addresses: try addresses.map { IPPrefix(try address($0), length: 24) })
    }

    private func path(_ selected: NetworkInterface?, _ others: NetworkInterface...) -> NetworkPath {
        NetworkPath(
            status: selected == nil ? .unsatisfied : .satisfied, interface: selected, interfaceV4: selected,
            interfaces: (selected.map { [$0] } ?? []) + others, notable: [1, 2])
    }

    /// Sets the kernel's route to the server: it would use one of these local addresses. Without any, there is no route.
    private func updateRoutes(
        _ tracker: inout RouteTracker, from sources: String..., to remote: String = "203.0.113.9", at now: Int64
    )
        throws
    {
        let route: RouteTracker.Route = sources.isEmpty ? .none : .from(Set(try sources.map(address)))
        tracker.updateRoutes([try address(remote): route], now: now * 1_000_000)
    }

    private func health(
        _ tracker: RouteTracker, from local: String = "192.0.2.2", to remote: String = "203.0.113.9", chosen: String? = nil,
        at now: Int64
    ) throws -> RouteTracker.Health {
        let connection = RouteTracker.Connection(
            local: try address(local), remote: try address(remote), chosen: try chosen.map(address))
        return tracker.health(of: connection, now: now * 1_000_000)
    }

    private func update(_ tracker: inout RouteTracker, _ path: NetworkPath, at now: Int64) -> Bool {
        tracker.update(path, now: now * 1_000_000)
    }

    // MARK: Connections

    @Test func `without a known path, and on loopback, connections are healthy`() throws {
        var tracker = RouteTracker()
        try expectEqual(health(tracker, at: 1), .healthy)
        #expect(!update(&tracker, path(nil), at: 1))
        try expectEqual(health(tracker, from: "127.0.0.1", to: "127.0.0.1", at: 9_999), .healthy)
    }

    @Test func `a connection is dead when its local address is removed`() throws {
        var tracker = RouteTracker()
        #expect(!update(&tracker, path(try interface(1, "192.0.2.2")), at: 0))
        try expectEqual(health(tracker, at: 1), .healthy)
        #expect(update(&tracker, path(try interface(1, "192.0.2.3")), at: 2))
        try expectEqual(health(tracker, at: 2), .dead("the address 192.0.2.2 is gone"))
        try expectEqual(health(tracker, from: "192.0.2.3", at: 2), .healthy)
        // The kernel would use the address, so it exists.
        try updateRoutes(&tracker, from: "192.0.2.2", at: 3)
        try expectEqual(health(tracker, at: 3), .healthy)
    }

    @Test func `the removal of an interface that is not notable breaks only its own connections`() throws {
        var tracker = RouteTracker()
        let (one, container) = (try interface(1, "192.0.2.2"), try interface(3, "10.88.0.1"))
        _ = update(&tracker, path(one, container), at: 0)
        #expect(!update(&tracker, path(one), at: 1))
        try expectEqual(health(tracker, at: 1), .healthy)
        try expectEqual(health(tracker, from: "10.88.0.1", at: 1), .dead("the address 10.88.0.1 is gone"))
    }

    @Test func `a connection is unreachable for 250 ms after its link goes down, then suspect`() throws {
        var tracker = RouteTracker()
        let down = path(nil, try interface(1, "192.0.2.2", level: .noCarrier))
        _ = update(&tracker, path(try interface(1, "192.0.2.2")), at: 0)
        try updateRoutes(&tracker, from: "192.0.2.2", at: 0)
        #expect(update(&tracker, down, at: 100))
        try expectEqual(health(tracker, at: 100), .unreachable(until: 350_000_000))
        // A repeated report does not restart the outage.
        #expect(!update(&tracker, down, at: 200))
        try expectEqual(health(tracker, at: 349), .unreachable(until: 350_000_000))
        try expectEqual(health(tracker, at: 350), .suspect("if1 is no-carrier"))
        // This machine's own addresses need no link.
        try expectEqual(health(tracker, to: "192.0.2.2", at: 350), .healthy)
        #expect(update(&tracker, path(try interface(1, "192.0.2.2")), at: 400))
        try expectEqual(health(tracker, at: 400), .healthy)
    }

    @Test func `a connection is unreachable when its route is removed, whatever other routes exist`() throws {
        var tracker = RouteTracker()
        _ = update(&tracker, path(try interface(1, "192.0.2.2")), at: 0)
        try updateRoutes(&tracker, from: "192.0.2.2", at: 0)
        try updateRoutes(&tracker, at: 10)
        try expectEqual(health(tracker, at: 10), .unreachable(until: 260_000_000))
        // A repeated answer does not restart the outage.
        try updateRoutes(&tracker, at: 200)
        try expectEqual(health(tracker, at: 260), .suspect("there is no route to 203.0.113.9"))
        // Nothing is known of another address.
        try expectEqual(health(tracker, to: "203.0.113.10", at: 260), .healthy)
        try updateRoutes(&tracker, from: "192.0.2.2", at: 300)
        try expectEqual(health(tracker, at: 9_999), .healthy)
        try updateRoutes(&tracker, at: 10_000)
        try expectEqual(health(tracker, at: 10_000), .unreachable(until: 10_250_000_000))
    }

    @Test func `a connection with its own route does not depend on the default route`() throws {
        var tracker = RouteTracker()
        let one = try interface(1, "192.0.2.2")
        _ = update(&tracker, path(one), at: 0)
        _ = update(&tracker, path(nil, one), at: 10)
        #expect(tracker.hasLostAllRoutes)
        try updateRoutes(&tracker, from: "192.0.2.2", at: 10)
        try expectEqual(health(tracker, at: 9_999), .healthy)
        try expectEqual(health(tracker, ofAttemptSince: 20, to: "203.0.113.9", from: "192.0.2.2", at: 9_999), .healthy)
    }

    @Test func `a connection is suspect when the kernel would send over another interface`() throws {
        var tracker = RouteTracker()
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        _ = update(&tracker, path(one, two), at: 0)
        try updateRoutes(&tracker, from: "198.51.100.2", at: 10)
        try expectEqual(health(tracker, at: 10), .suspect("another interface has taken over from if1"))
        try expectEqual(health(tracker, from: "198.51.100.2", at: 10), .healthy)
        // The kernel never chose the interface by addresses alone.
        try expectEqual(health(tracker, chosen: "198.51.100.2", at: 10), .healthy)
        // Other routes do not matter either.
        try updateRoutes(&tracker, from: "192.0.2.2", at: 20)
        #expect(update(&tracker, path(two, one), at: 30))
        try expectEqual(health(tracker, at: 30), .healthy)
        // The kernel spreads connections over both routes.
        try updateRoutes(&tracker, from: "198.51.100.2", "192.0.2.2", at: 40)
        try expectEqual(health(tracker, at: 40), .healthy)
    }

    @Test func `a route with another address of the same interface, or an unknown one, keeps a connection healthy`() throws {
        var tracker = RouteTracker()
        _ = update(&tracker, path(try interface(1, "192.0.2.2", "192.0.2.77")), at: 0)
        try updateRoutes(&tracker, from: "192.0.2.77", at: 10)
        try expectEqual(health(tracker, at: 10), .healthy)
        try updateRoutes(&tracker, from: "198.51.100.2", at: 20)
        try expectEqual(health(tracker, at: 20), .healthy)
    }

    @Test func `a connection bound to an interface is healthy as long as that interface has a link`() throws {
        var tracker = RouteTracker(isBound: true)
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        _ = update(&tracker, path(one, two), at: 0)
        _ = update(&tracker, path(two, one), at: 10)
        try updateRoutes(&tracker, from: "198.51.100.2", at: 10)
        try expectEqual(health(tracker, at: 10), .healthy)
        expectEqual(tracker.health(of: RouteTracker.Attempt(since: 0), now: 10_000_000), .healthy)
        _ = update(&tracker, path(nil, one), at: 20)
        try updateRoutes(&tracker, at: 20)
        try expectEqual(health(tracker, at: 9_999), .healthy)
        #expect(!tracker.isUnreachable(.none, to: try address("203.0.113.9")))
        _ = update(&tracker, path(two, try interface(1, "192.0.2.2", level: .noCarrier)), at: 10_000)
        try expectEqual(health(tracker, at: 10_250), .suspect("if1 is no-carrier"))
        _ = update(&tracker, path(two), at: 10_300)
        try expectEqual(health(tracker, at: 10_300), .dead("the address 192.0.2.2 is gone"))
        // The kernel knows an address before the path does.
        try updateRoutes(&tracker, from: "192.0.2.2", at: 10_400)
        try expectEqual(health(tracker, at: 10_400), .healthy)
    }

    // MARK: Attempts

    private func health(
        _ tracker: RouteTracker, ofAttemptSince start: Int64, to remote: String? = nil, from chosen: String? = nil, at now: Int64
    ) throws -> RouteTracker.Health {
        var attempt = RouteTracker.Attempt(since: start * 1_000_000)
        if let remote { attempt.connectAttempts = [.init(remote: try address(remote), chosen: try chosen.map(address))] }
        return tracker.health(of: attempt, now: now * 1_000_000)
    }

    @Test func `an attempt that resolves a name is judged by the default routes' changes since its start`() throws {
        var tracker = RouteTracker()
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        try expectEqual(health(tracker, ofAttemptSince: 0, at: 1), .healthy)
        _ = update(&tracker, path(one, two), at: 10)
        try expectEqual(health(tracker, ofAttemptSince: 0, at: 20), .healthy)
        // Short outages are left to TCP, as for connections.
        _ = update(&tracker, path(nil, one), at: 100)
        try expectEqual(health(tracker, ofAttemptSince: 50, at: 100), .unreachable(until: 350_000_000))
        try expectEqual(health(tracker, ofAttemptSince: 50, at: 350), .suspect("there is no route to any network"))
        // An attempt that began without a route gets the tolerated outage from its own start.
        #expect(tracker.hasLostAllRoutes)
        try expectEqual(health(tracker, ofAttemptSince: 150, at: 200), .unreachable(until: 400_000_000))
        try expectEqual(health(tracker, ofAttemptSince: 150, at: 400), .dead("there is no route to any network"))
        _ = update(&tracker, path(two, one), at: 400)
        #expect(!tracker.hasLostAllRoutes)
        try expectEqual(health(tracker, ofAttemptSince: 150, at: 400), .suspect("another interface has taken over"))
        try expectEqual(health(tracker, ofAttemptSince: 500, at: 9_999), .healthy)
        // The route exists, but its link is down.
        let down = try interface(2, "198.51.100.2", level: .noCarrier)
        _ = update(&tracker, path(down), at: 10_000)
        try expectEqual(health(tracker, ofAttemptSince: 9_000, at: 10_100), .unreachable(until: 10_250_000_000))
    }

    @Test func `a machine that never had a default route has lost none unless a link is missing`() throws {
        var tracker = RouteTracker()
        _ = update(&tracker, path(nil, try interface(1, "192.0.2.2")), at: 0)
        #expect(!tracker.hasLostAllRoutes)
        try expectEqual(health(tracker, ofAttemptSince: 0, at: 9_999), .healthy)
        let unplugged = NetworkPath(
            status: .unsatisfied, interface: nil, interfaces: [try interface(1, "192.0.2.2", level: .noCarrier)],
            cause: Cause(.link, .noCarrier, detail: "if1 has no carrier"))
        _ = update(&tracker, unplugged, at: 1)
        #expect(tracker.hasLostAllRoutes)
        try expectEqual(health(tracker, ofAttemptSince: 0, at: 250), .dead("there is no route to any network"))
    }

    @Test func `an attempt with an address is judged by the route to that address`() throws {
        var tracker = RouteTracker()
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        let server = "203.0.113.9"
        func health(since start: Int64, from chosen: String? = "192.0.2.2", at now: Int64) throws -> RouteTracker.Health {
            try self.health(tracker, ofAttemptSince: start, to: server, from: chosen, at: now)
        }
        _ = update(&tracker, path(one, two), at: 0)
        try updateRoutes(&tracker, from: "192.0.2.2", at: 0)
        try expectEqual(health(since: 0, at: 9_999), .healthy)
        // The default route does not matter.
        _ = update(&tracker, path(two, one), at: 10)
        try expectEqual(health(since: 5, at: 10), .healthy)
        try updateRoutes(&tracker, from: "198.51.100.2", at: 20)
        try expectEqual(health(since: 5, at: 20), .suspect("another interface has taken over from if1"))
        try updateRoutes(&tracker, at: 100)
        try expectEqual(health(since: 5, at: 100), .unreachable(until: 350_000_000))
        try expectEqual(health(since: 5, at: 350), .suspect("there is no route to 203.0.113.9"))
        try expectEqual(health(since: 200, from: nil, at: 450), .dead("there is no route to 203.0.113.9"))
        // The route exists, but its link is down.
        _ = update(&tracker, path(two, try interface(1, "192.0.2.2", level: .noCarrier)), at: 1_000)
        try updateRoutes(&tracker, from: "192.0.2.2", at: 1_000)
        try expectEqual(health(since: 900, at: 1_000), .unreachable(until: 1_250_000_000))
        try expectEqual(health(since: 1_100, at: 1_350), .dead("there is no route to 203.0.113.9"))
        #expect(tracker.isUnreachable(.from([try address("192.0.2.2")]), to: try address(server)))
        #expect(!tracker.isUnreachable(.from([try address("192.0.2.2")]), to: try address("192.0.2.2")))
        expectEqual(tracker.recoverableCause(.from([try address("192.0.2.2")]), to: try address(server))?.code, .noCarrier)
        expectEqual(tracker.recoverableCause(.none, to: try address(server))?.code, .noRoute)
        // Waiting does not change a route that refuses.
        #expect(tracker.isUnreachable(.refused, to: try address(server)))
        expectNil(tracker.recoverableCause(.refused, to: try address(server)))
        // The chosen local address now belongs to another interface.
        _ = update(&tracker, path(two), at: 2_000)
        try updateRoutes(&tracker, from: "198.51.100.2", at: 2_000)
        try expectEqual(health(since: 1_900, at: 2_000), .suspect("the address 192.0.2.2 is gone"))
    }

    @Test func `an attempt has the best health of the addresses that it connects to`() throws {
        var tracker = RouteTracker()
        _ = update(&tracker, path(try interface(1, "192.0.2.2", "2001:db8::2"), try interface(2, "198.51.100.2")), at: 0)
        let (old, new) = (try address("203.0.113.9"), try address("2001:db8:9::9"))
        let attempt = RouteTracker.Attempt(
            since: 0,
            connectAttempts: [
                .init(remote: new, chosen: try address("2001:db8::2")), .init(remote: old, chosen: try address("192.0.2.2")),
            ])
        func health(_ one: RouteTracker.Route, _ other: RouteTracker.Route, at now: Int64) -> RouteTracker.Health {
            tracker.updateRoutes([new: one, old: other], now: now * 1_000_000)
            return tracker.health(of: attempt, now: now * 1_000_000)
        }
        let there = RouteTracker.Route.from([try address("192.0.2.2")])
        expectEqual(health(.none, there, at: 10), .healthy)
        expectEqual(health(.none, .none, at: 100), .unreachable(until: 350_000_000))
        expectEqual(health(.none, .unknown, at: 400), .healthy)
        // One address is dead; the other one is suspect or still unreachable.
        let elsewhere = RouteTracker.Route.from([try address("198.51.100.2")])
        expectEqual(health(.none, elsewhere, at: 410), .suspect("there is no route to 2001:db8:9::9"))
        expectEqual(health(.none, .none, at: 500), .unreachable(until: 750_000_000))
        expectEqual(health(.none, .none, at: 750), .suspect("there is no route to 2001:db8:9::9"))
        expectEqual(health(.from([try address("2001:db8::2")]), .none, at: 760), .healthy)
    }
}
