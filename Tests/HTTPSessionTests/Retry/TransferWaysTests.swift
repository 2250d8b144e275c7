import Reachability
import Testing

@testable import HTTPSession

/// Times are milliseconds; a way that is lost is given 250 of them.
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
            interfaces: (selected.map { [$0] } ?? []) + others)
    }

    private func fate(_ ways: TransferWays, from local: String = "192.0.2.2", to remote: String = "203.0.113.9", at now: Int64)
        throws -> TransferWays.Fate
    {
        let connection = TransferWays.Connection(local: try address(local), remote: try address(remote), since: 0)
        return ways.fate(of: connection, now: now * 1_000_000)
    }

    private func update(_ ways: inout TransferWays, _ path: NetworkPath, at now: Int64) -> Bool {
        ways.update(path, now: now * 1_000_000)
    }

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
    }

    @Test func `a link that is down is waited for, and not for long`() throws {
        var ways = TransferWays()
        let down = path(nil, try interface(1, "192.0.2.2", level: .noCarrier))
        _ = update(&ways, path(try interface(1, "192.0.2.2")), at: 0)
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

    @Test func `without a route only neighbours are reached`() throws {
        var ways = TransferWays()
        _ = update(&ways, path(try interface(1, "192.0.2.2")), at: 0)
        _ = update(&ways, path(nil, try interface(1, "192.0.2.2")), at: 10)
        #expect(try fate(ways, to: "192.0.2.77", at: 9_999) == .fine)
        #expect(try fate(ways, at: 10) == .lost(until: 260_000_000))
        #expect(try fate(ways, at: 260) == .doubtful("there is no route"))
    }

    @Test func `who never had a default route does not miss it`() throws {
        var ways = TransferWays()
        for now in [0, 1_000, 2_000] as [Int64] { _ = update(&ways, path(nil, try interface(1, "192.0.2.2")), at: now) }
        #expect(try fate(ways, at: 9_999) == .fine)
    }

    @Test func `what goes over an interface that is no longer used goes no further`() throws {
        var ways = TransferWays()
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        _ = update(&ways, path(one, two), at: 0)
        #expect(update(&ways, path(two, one), at: 10))
        #expect(try fate(ways, at: 10) == .doubtful("another interface has taken over from if1"))
        #expect(try fate(ways, to: "192.0.2.77", at: 10) == .fine)
        #expect(try fate(ways, from: "198.51.100.2", at: 10) == .fine)
        // What was begun there later was meant so.
        let later = TransferWays.Connection(
            local: try address("192.0.2.2"), remote: try address("203.0.113.9"), since: 20_000_000)
        #expect(ways.fate(of: later, now: 30_000_000) == .fine)
    }

    @Test func `what is bound to an interface stays there while that carries something`() throws {
        var ways = TransferWays(isBound: true)
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        _ = update(&ways, path(one, two), at: 0)
        _ = update(&ways, path(two, one), at: 10)
        #expect(try fate(ways, at: 10) == .fine)
        #expect(ways.fate(ofAttemptSince: 0, now: 10_000_000) == .fine)
        _ = update(&ways, path(nil, one), at: 20)
        #expect(try fate(ways, at: 9_999) == .fine)
        _ = update(&ways, path(two, try interface(1, "192.0.2.2", level: .noCarrier)), at: 10_000)
        #expect(try fate(ways, at: 10_250) == .doubtful("if1 is no-carrier"))
        _ = update(&ways, path(two), at: 10_300)
        #expect(try fate(ways, at: 10_300) == .gone("the address 192.0.2.2 is gone"))
    }

    @Test func `an attempt without a connection is judged by what has changed since it began`() throws {
        func fate(_ ways: TransferWays, since start: Int64, at now: Int64) -> TransferWays.Fate {
            ways.fate(ofAttemptSince: start * 1_000_000, now: now * 1_000_000)
        }
        var ways = TransferWays()
        let (one, two) = (try interface(1, "192.0.2.2"), try interface(2, "198.51.100.2"))
        #expect(fate(ways, since: 0, at: 1) == .fine)
        _ = update(&ways, path(one, two), at: 10)
        #expect(fate(ways, since: 0, at: 20) == .fine)
        // Short losses are left to TCP, as those of connections are.
        _ = update(&ways, path(nil, one), at: 100)
        #expect(fate(ways, since: 50, at: 100) == .lost(until: 350_000_000))
        #expect(fate(ways, since: 50, at: 350) == .doubtful("the way is lost"))
        // One that began without a way has as long to show that there is one.
        #expect(ways.areLost)
        #expect(fate(ways, since: 150, at: 200) == .lost(until: 400_000_000))
        #expect(fate(ways, since: 150, at: 400) == .gone("there is no way to any network"))
        _ = update(&ways, path(two, one), at: 400)
        #expect(!ways.areLost)
        #expect(fate(ways, since: 150, at: 400) == .doubtful("another interface has taken over"))
        #expect(fate(ways, since: 500, at: 9_999) == .fine)
        // A link that is down, though its route is there.
        let down = try interface(2, "198.51.100.2", level: .noCarrier)
        _ = update(&ways, path(down), at: 10_000)
        #expect(fate(ways, since: 9_000, at: 10_100) == .lost(until: 10_250_000_000))
    }

    @Test func `who never had a way misses none, unless it is the link that is missing`() throws {
        var ways = TransferWays()
        _ = update(&ways, path(nil, try interface(1, "192.0.2.2")), at: 0)
        #expect(!ways.areLost)
        #expect(ways.fate(ofAttemptSince: 0, now: 9_999_000_000) == .fine)
        let unplugged = NetworkPath(
            status: .unsatisfied, interface: nil, interfaces: [try interface(1, "192.0.2.2", level: .noCarrier)],
            cause: Cause(.link, .noCarrier, detail: "if1 has no carrier"))
        _ = update(&ways, unplugged, at: 1)
        #expect(ways.areLost)
        #expect(ways.fate(ofAttemptSince: 0, now: 250_000_000) == .gone("there is no way to any network"))
    }
}
