import Expectations
import Testing

@testable import netwatch_service

@Suite struct PeerTurnsTests {
    private let second = WebLimits.second

    @Test func `a peer has one question at a time, and other peers do not wait for it`() {
        var turns = PeerTurns<String>()
        expectEqual(turns.arrive(1, of: "a", at: 0), .begin(1))
        expectEqual(turns.arrive(2, of: "a", at: 0), .nothing)
        expectEqual(turns.arrive(3, of: "b", at: 0), .begin(3))
        expectEqual(turns.end(of: "a", work: 0, at: 5), .begin(2))
        expectEqual(turns.end(of: "a", work: 0, at: 6), .nothing)
    }

    @Test func `a peer that never stops has a quarter of the time`() {
        var turns = PeerTurns<String>(limits: .init(price: 4, allowance: 0))
        var (now, work): (Int64, Int64) = (0, 0)
        expectEqual(turns.arrive(0, of: "a", at: now), .begin(0))
        for id in 1...100 {
            expectEqual(turns.arrive(id, of: "a", at: now), .nothing)
            // A question takes a second.
            now += second
            work += second
            guard case .wake(let time) = turns.end(of: "a", work: second, at: now) else {
                Issue.record("no pause")
                return
            }
            // Another client of the peer does not shorten the pause.
            now = time
            expectEqual(turns.wake("a", at: now), .begin(id))
        }
        #expect(work * 4 <= now && now <= work * 5 + second, "\(work) of \(now)")
    }

    @Test func `a single question of a second does not delay the next one`() {
        var turns = PeerTurns<String>()
        expectEqual(turns.arrive(0, of: "a", at: 0), .begin(0))
        expectEqual(turns.end(of: "a", work: second, at: second), .nothing)
        expectEqual(turns.arrive(1, of: "a", at: second), .begin(1))
        // The time of both is paid back first.
        expectEqual(turns.end(of: "a", work: second, at: 2 * second), .nothing)
        expectEqual(turns.arrive(2, of: "a", at: 2 * second), .wake(at: 5 * second))
    }

    @Test func `peers are forgotten when their time is paid back`() {
        var turns = PeerTurns<Int>()
        for peer in 0..<1_000 {
            expectEqual(turns.arrive(peer, of: peer, at: Int64(peer) * second), .begin(peer))
            expectEqual(turns.end(of: peer, work: second / 10, at: Int64(peer) * second), .nothing)
        }
        #expect(turns.peers <= 66)
    }

    @Test func `reloads that wait share one, which begins after the last of them arrived`() {
        var turns = ReloadTurns()
        expectEqual(turns.request(at: 0), .begin)
        for _ in 0..<16 { expectEqual(turns.request(at: 1), .nothing) }
        expectEqual(turns.end(work: 1_000, at: 2), .begin)
        expectEqual(turns.request(at: 3), .nothing)
        expectEqual(turns.end(work: 1_000, at: 4), .begin)
        expectEqual(turns.end(work: 1_000, at: 5), .nothing)
    }

    @Test func `after a load of any length the next one begins within five seconds`() {
        var turns = ReloadTurns()
        var now: Int64 = 0
        expectEqual(turns.request(at: now), .begin)
        for _ in 0..<10 {
            _ = turns.request(at: now)
            now += 30 * second
            guard case .wake(let time) = turns.end(work: 30 * second, at: now) else { continue }
            #expect(time <= now + 5 * second)
            now = time
            expectEqual(turns.wake(at: now), .begin)
        }
    }

    @Test(arguments: [WebLimits.second, WebLimits.second / 1_000])
    func `loading without a pause has a tenth of the time, and at most one load a second`(work: Int64) {
        var turns = ReloadTurns()
        var (now, count): (Int64, Int64) = (0, 0)
        var step = turns.request(at: now)
        while now < 100 * second {
            switch step {
            case .begin:
                count += 1
                _ = turns.request(at: now)
                now += work
                step = turns.end(work: work, at: now)
            case .wake(let time):
                now = time
                step = turns.wake(at: now)
            case .nothing:
                Issue.record("nothing happens at \(now)")
                return
            }
        }
        // The first loads are made at once.
        #expect(count * max(work, second / 10) * 10 <= now + 5 * second + 10 * max(work, second / 10), "\(count) in \(now)")
        #expect(count * work * 12 >= now || count >= 100, "\(count) in \(now)")
    }

    @Test func `a question of a closed connection is not asked`() async throws {
        let turns = HistoryTurns()
        let (client, closed) = (RenderClient(.connection(1), .loopback), RenderClient(.connection(2), .loopback))
        closed.end()
        await #expect(throws: WebProblem.self) { try await turns.run(for: closed) { _ in Issue.record("asked") } }
        try await expectEqual(turns.run(for: client) { meter in meter.measure { 7 } }, 7)
    }
}
