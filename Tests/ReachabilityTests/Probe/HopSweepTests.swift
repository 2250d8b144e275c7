import Expectations
import Testing

@testable import Reachability

/// The hops that follow from the answers of a sweep.
@Suite struct HopSweepTests {
    private let server = IPAddress(v4: 0xc000_0209)

    private func router(_ number: UInt32) -> IPAddress { IPAddress(v4: 0x0a00_0000 + number) }

    private func answer(_ limit: Int, _ kind: HopSweep.Answer.Kind, _ sender: IPAddress) -> HopSweep.Answer {
        HopSweep.Answer(limit: limit, kind: kind, sender: sender, roundTrip: .milliseconds(limit))
    }

    private func lines(_ answers: [HopSweep.Answer]) -> [String] {
        HopSweep.hops(from: answers, to: server).map { "\($0.distance) \($0.address)\($0.isServer ? " server" : "")" }
    }

    @Test func `routers are listed by their distance, and silent ones are missing`() {
        let answers = [answer(5, .exceeded, router(5)), answer(1, .exceeded, router(1)), answer(3, .exceeded, router(3))]
        expectEqual(lines(answers), ["1 10.0.0.1", "3 10.0.0.3", "5 10.0.0.5"])
        expectEqual(HopSweep.hops(from: answers, to: server).last?.roundTrip, .milliseconds(5))
    }

    @Test func `a router that refuses the SYNs is one link nearer than the lowest of them`() {
        let answers = [
            answer(1, .exceeded, router(1)), answer(2, .exceeded, router(2)), answer(3, .refused, router(2)),
            answer(4, .refused, router(2)),
        ]
        expectEqual(lines(answers), ["1 10.0.0.1", "2 10.0.0.2"])
        expectEqual(lines([answer(3, .refused, router(2)), answer(4, .refused, router(2))]), ["2 10.0.0.2"])
        expectEqual(lines([answer(1, .refused, router(1))]), ["1 10.0.0.1"])
    }

    @Test func `the server is a hop of its own`() {
        expectEqual(
            lines([answer(1, .exceeded, router(1)), answer(3, .server, server), answer(2, .server, server)]),
            ["1 10.0.0.1", "2 192.0.2.9 server"])
        // ICMP from the server's own packet filter.
        expectEqual(lines([answer(2, .refused, server), answer(3, .refused, server)]), ["2 192.0.2.9 server"])
    }

    @Test func `a loop of routers shows each limit`() {
        let answers = (1...4).map { answer($0, .exceeded, router(UInt32($0 % 2))) }
        expectEqual(lines(answers), ["1 10.0.0.1", "2 10.0.0.0", "3 10.0.0.1", "4 10.0.0.0"])
    }
}
