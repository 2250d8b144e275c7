import Reachability
import Testing

@testable import HTTPSession

/// Times are milliseconds; a way that is lost is given 250 of them. The server is at 203.0.113.9.
struct TransferWaysTests {
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

    /// The kernel would send to the server from these addresses; none: it has no route.
    private func learn(_ ways: inout TransferWays, from sources: String..., to remote: String = "203.0.113.9", at now: Int64)
        throws
    {
        let way: TransferWays.Way = sources.isEmpty ? .none : .from(Set(try sources.map(address)))
        ways.learn([try address(remote): way], now: now * 1_000_000)
    }

    private func fate(
        _ ways: TransferWays, from local: String = "192.0.2.2", to remote: String = "203.0.113.9", chosen: String? = nil,
        at now: Int64
    ) throws -> TransferWays.Fate {
        let connection = TransferWays.Connection(
            local: try address(local), remote: try address(remote), chosen: try chosen.map(address))
        return ways.fate(of: connection, now: now * 1_000_000)
    }

    private func update(_ ways: inout TransferWays, _ path: NetworkPath, at now: Int64) -> Bool {
        ways.update(path, now: now * 1_000_000)
    }

    // MARK: Connections

    @Test func `while nothing is known, and on loopback, all is well`() throws {
        var ways = TransferWays()
        #expect(try fate(ways, at: 1) == .fine)
        #expect(!update(&ways, path(nil), at: 1))
        #expect(try fate(ways, from: "127.0.0.1", to: "127.0.0.1", at: 9_999) == .fine)
    }

    @Test func `an address that is gone takes its connections with it`() throws {
        var ways = TransferWays()
        #expect(!update(&ways, path(try interface(1, "192.0.2.2")), at: 0))
        #expect(try fate(ways, at: 1) == .fine)
        #expect(update(&ways, path(try interface(1, "192.0.2.3")), at: 2))
        #expect(try fate(ways, at: 2) == .gone("the address 192.0.2.2 is gone"))
        #expect(try fate(ways, from: "192.0.2.3", at: 2) == .fine)
        // One that the kernel would use is there.
        try learn(&ways, from: "192.0.2.2", at: 3)
        #expect(try fate(ways, at: 3) == .fine)
    }

    @Test func `interfaces that are not worth telling of come and go without harm to others`() throws {
        var ways = TransferWays()
        let (one, container) = (try interface(1, "192.0.2.2"), try interface(3, "10.88.0.1"))
        _ = update(&ways, path(one, container), at: 0)
        #expect(!update(&ways, path(one), at: 1))
        #expect(try fate(ways, at: 1) == .fine)
        #expect(try fate(ways, from: "10.88.0.1", at: 1) == .gone("the address 10.88.0.1 is gone"))
    }

    @Test func `a link that is down is waited for, and not for long`() throws {
        var ways = TransferWays()
        let down = path(nil, try interface(1, "192.0.2.2", level: .noCarrier))
        _ = update(&ways, path(try interface(1, "192.0.2.2")), at: 0)
        try learn(&ways, from: "192.0.2.2", at: 0)
        #expect(update(&ways, down, at: 100))
        #expect(try fate(ways, at: 100) == .lost(until: 350_000_000))
        // Told once more, it is not down anew.
        #expect(!update(&ways, down, at: 200))
        #expect(try fate(ways, at: 349) == .lost(until: 350_000_000))
        #expect(try fate(ways, at: 350) == .doubtful("if1 is no-carrier"))
        // What is this machine's own is reached without it.
        #expect(try fate(ways, to: "192.0.2.2", at: 350) == .fine)
        #expect(update(&ways, path(try interface(1, "192.0.2.2")), at: 400))
        #expect(try fate(ways, at: 400) == .fine)
    }

    @Test func `what has no route any more is lost, whatever other routes there are`() throws {
        var ways = TransferWays()
        _ = update(&ways, path(try interface(1, "192.0.2.2")), at: 0)
        try learn(&ways, from: "192.0.2.2", at: 0)
        try learn(&ways, at: 10)
        #expect(try fate(ways, at: 10) == .lost(until: 260_000_000))
        // Asked again, it is not lost anew.
        try learn(&ways, at: 200)
        #expect(try fate(ways, at: 260) == .doubtful("there is no route to 203.0.113.9"))
        // Nothing is known of another.
        #expect(try fate(ways, to: "203.0.113.10", at: 260) == .fine)
        try learn(&ways, from: "192.0.2.2", at: 300)
        #expect(try fate(ways, at: 9_999) == .fine)
        try learn(&ways, at: 10_000)
        #expect(try fate(ways, at: 10_000) == .lost(until: 10_250_000_000))
    }

    @Test func `what has a route of its own does not miss the default route`() throws {
        var ways = TransferWays()
        let one = try interface(1, "192.0.2.2")
        _ = update(&ways, path(one), at: 0)
        _ = update(&ways, path(nil, one), at: 10)
        #expect(ways.areLost)
        try learn(&ways, from: "192.0.2.2", at: 10)
        #expect(try fate(ways, at: 9_999) == .fine)
        #expect(try fate(ways, ofAttemptSince: 20, to: "203.0.113.9", from: "192.0.2.2", at: 9_999) == .fine)
    }

    @Test func `what goes over an interface that the kernel would not use for it goes no further`() throws {
        var ways = TransferWays()
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        _ = update(&ways, path(one, two), at: 0)
        try learn(&ways, from: "198.51.100.2", at: 10)
        #expect(try fate(ways, at: 10) == .doubtful("another interface has taken over from if1"))
        #expect(try fate(ways, from: "198.51.100.2", at: 10) == .fine)
        // It never went by what the kernel says of addresses alone.
        #expect(try fate(ways, chosen: "198.51.100.2", at: 10) == .fine)
        // Nor does it matter where other routes lead.
        try learn(&ways, from: "192.0.2.2", at: 20)
        #expect(update(&ways, path(two, one), at: 30))
        #expect(try fate(ways, at: 30) == .fine)
        // Connections are spread over both.
        try learn(&ways, from: "198.51.100.2", "192.0.2.2", at: 40)
        #expect(try fate(ways, at: 40) == .fine)
    }

    @Test func `another address of the same interface is no other way, nor is one that is not known yet`() throws {
        var ways = TransferWays()
        _ = update(&ways, path(try interface(1, "192.0.2.2", "192.0.2.77")), at: 0)
        try learn(&ways, from: "192.0.2.77", at: 10)
        #expect(try fate(ways, at: 10) == .fine)
        try learn(&ways, from: "198.51.100.2", at: 20)
        #expect(try fate(ways, at: 20) == .fine)
    }

    @Test func `what is bound to an interface stays there while that carries something`() throws {
        var ways = TransferWays(isBound: true)
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        _ = update(&ways, path(one, two), at: 0)
        _ = update(&ways, path(two, one), at: 10)
        try learn(&ways, from: "198.51.100.2", at: 10)
        #expect(try fate(ways, at: 10) == .fine)
        #expect(ways.fate(of: TransferWays.Attempt(since: 0), now: 10_000_000) == .fine)
        _ = update(&ways, path(nil, one), at: 20)
        try learn(&ways, at: 20)
        #expect(try fate(ways, at: 9_999) == .fine)
        #expect(!ways.isLost(.none, to: try address("203.0.113.9")))
        _ = update(&ways, path(two, try interface(1, "192.0.2.2", level: .noCarrier)), at: 10_000)
        #expect(try fate(ways, at: 10_250) == .doubtful("if1 is no-carrier"))
        _ = update(&ways, path(two), at: 10_300)
        #expect(try fate(ways, at: 10_300) == .gone("the address 192.0.2.2 is gone"))
        // The kernel knows of an address before the path does.
        try learn(&ways, from: "192.0.2.2", at: 10_400)
        #expect(try fate(ways, at: 10_400) == .fine)
    }

    // MARK: Attempts

    private func fate(
        _ ways: TransferWays, ofAttemptSince start: Int64, to remote: String? = nil, from chosen: String? = nil, at now: Int64
    ) throws -> TransferWays.Fate {
        var attempt = TransferWays.Attempt(since: start * 1_000_000)
        if let remote { attempt.tries = [.init(remote: try address(remote), chosen: try chosen.map(address))] }
        return ways.fate(of: attempt, now: now * 1_000_000)
    }

    @Test func `an attempt that looks for a name is judged by how the default routes have changed since it began`() throws {
        var ways = TransferWays()
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        #expect(try fate(ways, ofAttemptSince: 0, at: 1) == .fine)
        _ = update(&ways, path(one, two), at: 10)
        #expect(try fate(ways, ofAttemptSince: 0, at: 20) == .fine)
        // Short losses are left to TCP, as those of connections are.
        _ = update(&ways, path(nil, one), at: 100)
        #expect(try fate(ways, ofAttemptSince: 50, at: 100) == .lost(until: 350_000_000))
        #expect(try fate(ways, ofAttemptSince: 50, at: 350) == .doubtful("there is no way to any network"))
        // One that began without a way has as long to show that there is one.
        #expect(ways.areLost)
        #expect(try fate(ways, ofAttemptSince: 150, at: 200) == .lost(until: 400_000_000))
        #expect(try fate(ways, ofAttemptSince: 150, at: 400) == .gone("there is no way to any network"))
        _ = update(&ways, path(two, one), at: 400)
        #expect(!ways.areLost)
        #expect(try fate(ways, ofAttemptSince: 150, at: 400) == .doubtful("another interface has taken over"))
        #expect(try fate(ways, ofAttemptSince: 500, at: 9_999) == .fine)
        // A link that is down, though its route is there.
        let down = try interface(2, "198.51.100.2", level: .noCarrier)
        _ = update(&ways, path(down), at: 10_000)
        #expect(try fate(ways, ofAttemptSince: 9_000, at: 10_100) == .lost(until: 10_250_000_000))
    }

    @Test func `who never had a way misses none, unless it is the link that is missing`() throws {
        var ways = TransferWays()
        _ = update(&ways, path(nil, try interface(1, "192.0.2.2")), at: 0)
        #expect(!ways.areLost)
        #expect(try fate(ways, ofAttemptSince: 0, at: 9_999) == .fine)
        let unplugged = NetworkPath(
            status: .unsatisfied, interface: nil, interfaces: [try interface(1, "192.0.2.2", level: .noCarrier)],
            cause: Cause(.link, .noCarrier, detail: "if1 has no carrier"))
        _ = update(&ways, unplugged, at: 1)
        #expect(ways.areLost)
        #expect(try fate(ways, ofAttemptSince: 0, at: 250) == .gone("there is no way to any network"))
    }

    @Test func `an attempt with an address is judged by the way there`() throws {
        var ways = TransferWays()
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        let server = "203.0.113.9"
        func fate(since start: Int64, from chosen: String? = "192.0.2.2", at now: Int64) throws -> TransferWays.Fate {
            try self.fate(ways, ofAttemptSince: start, to: server, from: chosen, at: now)
        }
        _ = update(&ways, path(one, two), at: 0)
        try learn(&ways, from: "192.0.2.2", at: 0)
        #expect(try fate(since: 0, at: 9_999) == .fine)
        // The default route is none of its business.
        _ = update(&ways, path(two, one), at: 10)
        #expect(try fate(since: 5, at: 10) == .fine)
        try learn(&ways, from: "198.51.100.2", at: 20)
        #expect(try fate(since: 5, at: 20) == .doubtful("another interface has taken over from if1"))
        try learn(&ways, at: 100)
        #expect(try fate(since: 5, at: 100) == .lost(until: 350_000_000))
        #expect(try fate(since: 5, at: 350) == .doubtful("there is no way to 203.0.113.9"))
        #expect(try fate(since: 200, from: nil, at: 450) == .gone("there is no way to 203.0.113.9"))
        // A link that is down, though its route is there.
        _ = update(&ways, path(two, try interface(1, "192.0.2.2", level: .noCarrier)), at: 1_000)
        try learn(&ways, from: "192.0.2.2", at: 1_000)
        #expect(try fate(since: 900, at: 1_000) == .lost(until: 1_250_000_000))
        #expect(try fate(since: 1_100, at: 1_350) == .gone("there is no way to 203.0.113.9"))
        #expect(ways.isLost(.from([try address("192.0.2.2")]), to: try address(server)))
        #expect(!ways.isLost(.from([try address("192.0.2.2")]), to: try address("192.0.2.2")))
        #expect(ways.loss(.from([try address("192.0.2.2")]), to: try address(server))?.code == .noCarrier)
        #expect(ways.loss(.none, to: try address(server))?.code == .noRoute)
        // Nobody waits for the end of a route that refuses.
        #expect(ways.isLost(.refused, to: try address(server)))
        #expect(ways.loss(.refused, to: try address(server)) == nil)
        // The address that it asks from is another's now.
        _ = update(&ways, path(two), at: 2_000)
        try learn(&ways, from: "198.51.100.2", at: 2_000)
        #expect(try fate(since: 1_900, at: 2_000) == .doubtful("the address 192.0.2.2 is gone"))
    }

    @Test func `an attempt is as good as the best of the addresses that it tries`() throws {
        var ways = TransferWays()
        _ = update(&ways, path(try interface(1, "192.0.2.2", "2001:db8::2"), try interface(2, "198.51.100.2")), at: 0)
        let (old, new) = (try address("203.0.113.9"), try address("2001:db8:9::9"))
        let attempt = TransferWays.Attempt(
            since: 0,
            tries: [
                .init(remote: new, chosen: try address("2001:db8::2")), .init(remote: old, chosen: try address("192.0.2.2")),
            ])
        func fate(_ one: TransferWays.Way, _ other: TransferWays.Way, at now: Int64) -> TransferWays.Fate {
            ways.learn([new: one, old: other], now: now * 1_000_000)
            return ways.fate(of: attempt, now: now * 1_000_000)
        }
        let there = TransferWays.Way.from([try address("192.0.2.2")])
        #expect(fate(.none, there, at: 10) == .fine)
        #expect(fate(.none, .none, at: 100) == .lost(until: 350_000_000))
        #expect(fate(.none, .unknown, at: 400) == .fine)
        // The one is lost for good, the other begins anew, or has time yet.
        let elsewhere = TransferWays.Way.from([try address("198.51.100.2")])
        #expect(fate(.none, elsewhere, at: 410) == .doubtful("there is no way to 2001:db8:9::9"))
        #expect(fate(.none, .none, at: 500) == .lost(until: 750_000_000))
        #expect(fate(.none, .none, at: 750) == .doubtful("there is no way to 2001:db8:9::9"))
        #expect(fate(.from([try address("2001:db8::2")]), .none, at: 760) == .fine)
    }
}
