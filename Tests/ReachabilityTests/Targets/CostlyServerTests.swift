import Certificates
import Expectations
import Testing

@testable import Reachability

/// A server whose TLS handshake costs this machine too much.
@Suite struct CostlyServerTests {
    private func target(interval: Duration) throws -> Transcript {
        var target = try Transcript("tls://192.0.2.1", ProbeSettings(interval: interval, failAfter: 2))
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: "192.0.2.1"))
        return target
    }

    /// Ends an attempt with the handshake of a costly server, or with a complete one.
    private func end(_ id: UInt64, excess: String?, in target: inout Transcript, at time: Int64) -> [String] {
        _ = target.at(time, .connected(id))
        var facts = TLSHandshakeFacts(serverName: "192.0.2.1")
        (facts.excess, facts.isComplete) = (excess, excess == nil)
        var result = ProbeResult(id: id, roundTripNanoseconds: 5_000_000)
        result.levels = LevelResult()
        result.levels?.tls = facts
        result.levels?.handshakeEnd = excess == nil ? .completed : .protocolError
        return target.at(time, .probe(result))
    }

    @Test func `it is examined a second later, and once down probed once a minute until its handshake costs less`() throws {
        var target = try target(interval: .seconds(5))
        _ = end(1, excess: "sends too much", in: &target, at: 5)
        expectEqual(target.tickDue, 1_000)
        _ = target.at(1_000, .tick)
        _ = target.at(1_000, .route(to: "192.0.2.1"))
        _ = end(2, excess: "sends too much", in: &target, at: 1_005)
        expectEqual(target.tickDue, 5_000)
        _ = target.at(5_000, .tick)
        _ = target.at(5_000, .route(to: "192.0.2.1"))
        expectEqual(end(3, excess: "sends too much", in: &target, at: 5_005).last, "down tls/excessive-cost 192.0.2.1 eth0")
        expectEqual(target.cause?.detail, "192.0.2.1 sends too much")
        expectEqual(target.tickDue, 60_000)
        _ = target.at(60_000, .tick)
        _ = target.at(60_000, .route(to: "192.0.2.1"))
        _ = end(4, excess: "sends too much", in: &target, at: 60_005)
        expectEqual(target.tickDue, 120_000)
        _ = target.at(120_000, .tick)
        _ = target.at(120_000, .route(to: "192.0.2.1"))
        _ = end(5, excess: nil, in: &target, at: 120_005)
        // The recovery is confirmed, and the interval is the target's own again.
        var (time, id): (Int64, UInt64) = (target.tickDue ?? 0, 6)
        while target.state != .up, id < 10 {
            _ = target.at(time, .tick)
            _ = target.at(time, .route(to: "192.0.2.1"))
            _ = end(id, excess: nil, in: &target, at: time + 5)
            (time, id) = (target.tickDue ?? 0, id + 1)
        }
        #expect(target.state == .up && time <= 130_000, "\(time)")
    }

    @Test func `an interval of more than a minute stays as it is`() throws {
        var target = try target(interval: .seconds(90))
        _ = end(1, excess: "sends too much", in: &target, at: 5)
        _ = target.at(1_000, .tick)
        _ = target.at(1_000, .route(to: "192.0.2.1"))
        _ = end(2, excess: "sends too much", in: &target, at: 1_005)
        expectEqual(target.tickDue, 90_000)
    }
}
