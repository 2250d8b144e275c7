import Expectations
import Testing

@testable import Reachability

private let first = "192.0.2.1"
private let second = "192.0.2.2"
private let v6 = "2001:db8::1"

/// A name all of whose addresses are probed, and shown each with its status.
@Suite struct EachAddressTests {
    private static func settings(failAfter: Int = 2) -> ProbeSettings {
        var settings = Transcript.unscheduled()
        settings.failAfter = failAfter
        settings.addresses = .each
        return settings
    }

    /// A target whose lookup has found these addresses, while attempt 2 tries the first one.
    private func target(_ addresses: String..., failAfter: Int = 2) throws -> Transcript {
        var target = try Transcript("server.example:443", Self.settings(failAfter: failAfter))
        target.allowsSurvey = true
        _ = target.at(0, .begin)
        _ = target.at(0, .lookup(LookupAnswer(id: 1, addresses: addresses.compactMap { IPAddress($0) })))
        for address in addresses { _ = target.at(0, .route(to: address)) }
        return target
    }

    /// The rows of the last update.
    private func rows(_ target: Transcript) -> [String] {
        (target.published?.addresses ?? []).map { address in
            "\(address.address) \(address.statusName.rawValue)" + (address.cause.map { " \($0.name)" } ?? "")
        }
    }

    @Test func `after a success all other addresses are tried, one after another, and each has a row`() throws {
        var target = try target(first, second, v6)
        expectEqual(target.at(1, .connected(2)), ["report ok", "up \(first) eth0", "connect 3 \(v6)"])
        expectEqual(rows(target), ["\(first) up", "\(second) unknown", "\(v6) unknown"])
        expectEqual(target.at(2, .connected(3)), ["up \(first) eth0", "connect 4 \(second)"])
        expectEqual(rows(target), ["\(first) up", "\(second) unknown", "\(v6) up"])
        expectEqual(target.at(3, .failed(4, .connectionRefused)), ["connect 5 \(second)"])
        expectEqual(target.at(4, .failed(5, .connectionRefused)), ["degraded tcp/refused \(first) eth0"])
        expectEqual(rows(target), ["\(first) up", "\(second) down tcp/refused", "\(v6) up"])
        expectEqual(target.published?.addresses.map { $0.since.monotonicNanoseconds / 1_000_000 }, [1, 4, 2])
        expectEqual(target.published?.addresses.map(\.answers), [true, false, true])
    }

    @Test func `the next probe tries them again, and the end of a failure is published`() throws {
        var target = try target(first, second)
        _ = target.at(1, .connected(2))
        _ = target.at(2, .failed(3, .connectionRefused))
        expectEqual(target.at(3, .failed(4, .connectionRefused)), ["degraded tcp/refused \(first) eth0"])
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .found(5, first, second))
        _ = target.at(10_000, .route(to: first))
        _ = target.at(10_000, .route(to: second))
        expectEqual(target.at(10_001, .connected(6)), ["report ok", "connect 7 \(second)"])
        expectEqual(target.at(10_002, .connected(7)), ["up \(first) eth0"])
        expectEqual(rows(target), ["\(first) up", "\(second) up"])
    }

    @Test func `if no address answers, each has its own cause, and none of them after the recovery`() throws {
        var target = try target(first, second, failAfter: 1)
        expectEqual(target.at(1, .failed(2, .connectionRefused)), ["connect 3 \(second)"])
        _ = target.at(2, .failed(3, .hostUnreachable, icmp: (3, 1), from: "198.51.100.1"))
        for key in target.effects.compactMap({ if case .askNeighbor(let key) = $0 { key } else { nil } }) {
            _ = target.at(2, .neighbor(key, .state(.reachable, confirmedAgo: 0)))
        }
        expectEqual(target.state, .down)
        expectEqual(rows(target), ["\(first) down tcp/refused", "\(second) down network/host-unreachable"])
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .found(4, first, second))
        _ = target.at(10_000, .route(to: first))
        _ = target.at(10_000, .route(to: second))
        let attempt = try #require(target.attempts.first)
        _ = target.at(10_001, .connected(attempt.id))
        expectEqual(target.state, .up)
        expectEqual(rows(target), ["\(first) up", "\(second) unknown"])
    }

    @Test func `an address without a route is unreachable, and does not degrade the target`() throws {
        var target = try Transcript("server.example:443", Self.settings())
        target.allowsSurvey = true
        _ = target.at(0, .begin)
        _ = target.at(0, .found(1, first, v6))
        _ = target.at(0, .route(to: first))
        _ = target.at(0, .noRoute(to: v6))
        expectEqual(target.at(1, .connected(2)), ["report ok", "up \(first) eth0"])
        expectEqual(rows(target), ["\(first) up", "\(v6) unreachable"])
        expectEqual(target.published?.addresses.map(\.answers), [true, nil])
    }

    @Test func `the loopback addresses of one service are tried, and one that refuses degrades nothing`() throws {
        var target = try target("127.0.0.1", "::1")
        _ = target.at(1, .connected(2))
        _ = target.at(2, .failed(3, .connectionRefused))
        _ = target.at(3, .failed(4, .connectionRefused))
        expectEqual(target.state, .up)
        expectEqual(rows(target), ["127.0.0.1 up", "::1 down tcp/refused"])
    }

    @Test func `a target that is an address has no rows`() throws {
        var target = try Transcript("\(first):443", Self.settings())
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: first))
        _ = target.at(1, .connected(1))
        expectEqual(target.state, .up)
        expectEqual(rows(target), [])
    }

    @Test func `addresses that are silent end the round at their deadlines, and a probe meanwhile begins no other`() throws {
        var target = try target(first, second, "192.0.2.3")
        _ = target.at(1, .connected(2))
        var begun = 0
        while let due = target.tickDue, due <= 9_000 {
            for line in target.at(due, .tick) where line.hasPrefix("connect") { begun += 1 }
            for key in target.effects.compactMap({ if case .askNeighbor(let key) = $0 { key } else { nil } }) {
                _ = target.at(due, .neighbor(key, .state(.reachable, confirmedAgo: 0)))
            }
        }
        // Each attempt is repeated twice, and each of the two addresses is tried until its failure is confirmed.
        #expect(begun >= 3, "\(begun)")
        expectEqual(rows(target).first, "\(first) up")
        #expect(rows(target)[1].hasPrefix("\(second) down"), "\(rows(target))")
    }
}
