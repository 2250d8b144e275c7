import Expectations
import Testing

@testable import Reachability

private let second: Int64 = 1_000_000_000
private let hour: Int64 = 3_600 * second

/// The bytes of TLS handshakes and HTTP exchanges in the budget of a metered interface.
@Suite struct MeteredLevelsTests {
    /// A budget of 20,000 bytes an hour.
    private let key = MeteredBudgets.Key(interface: 2, bytesPerDay: 480_000)

    private func connect(_ id: UInt64, _ target: String = "https://192.0.2.1/") throws -> TargetMachine.Effect {
        .connect(
            ProbeAttempt(
                id: id, address: IPAddress(v4: 0xc000_0201), port: 443, plan: probePlan(try Endpoint(target), ProbeSettings())))
    }

    private func ended(_ id: UInt64, sent: Int, received: Int) -> ProbeResult {
        var levels = LevelResult()
        (levels.bytesSent, levels.bytesReceived) = (sent, received)
        var result = ProbeResult(id: id)
        result.levels = levels
        return result
    }

    /// The bytes of levels that have ended.
    private func bytes(_ sent: Int, _ received: Int, _ family: IPAddress.Family = .v4) -> Int {
        ProbeBytes.levels(ended(1, sent: sent, received: received).levels ?? LevelResult(), family)
    }

    /// The bytes of the budget that are used at time 0, by the time at which the budget is no longer in debt.
    private func used(_ budgets: MeteredBudgets) -> Int {
        var (low, high): (Int64, Int64) = (-hour, 1_000 * hour)
        while low < high {
            let middle = low + (high - low) / 2
            var copy = budgets
            if copy.turn(key, .tcp, hasWaited: false, at: middle) == nil { high = middle } else { low = middle + 1 }
        }
        return 20_000 + Int((Double(low) * 20_000 / Double(hour)).rounded())
    }

    @Test(arguments: [
        ("tls://192.0.2.1", 8_192), ("http://192.0.2.1/", 8_192), ("https://192.0.2.1/", 16_384), ("192.0.2.1:1", 0),
    ])
    func `the levels of an attempt are estimated by its scheme`(target: String, estimate: Int) throws {
        expectEqual(ProbeBytes.levels(try Endpoint(target).scheme), estimate)
        expectEqual(probePlan(try Endpoint(target), ProbeSettings()).map { ProbeBytes.levels($0.plan.scheme) } ?? 0, estimate)
    }

    @Test func `the bytes of levels have the headers of their segments and acknowledgments`() {
        expectEqual(bytes(0, 0), 208)
        expectEqual(bytes(500, 1_448), 2_364)
        expectEqual(bytes(500, 1_449), 2_469)
        expectEqual(bytes(500, 1_448, .v6), 2_668)
    }

    @Test func `the estimate counts when the attempt begins, and the used bytes when its levels have ended`() throws {
        var budgets = MeteredBudgets()
        budgets.count([try connect(1)], key, at: 0)
        #expect(used(budgets) == 16_484 && budgets.openCount == 1)
        // The connection is established, and its levels run.
        budgets.settle(ProbeResult(id: 1), at: 0)
        #expect(used(budgets) == 16_484 && budgets.openCount == 1)
        budgets.settle(ended(1, sent: 500, received: 4_000), at: 0)
        #expect(used(budgets) == 100 + bytes(500, 4_000) && budgets.openCount == 0)
        // A result of levels counts once.
        budgets.settle(ended(1, sent: 500, received: 4_000), at: 0)
        expectEqual(used(budgets), 100 + bytes(500, 4_000))
    }

    @Test func `levels that use more than their estimate leave a debt`() throws {
        var budgets = MeteredBudgets()
        budgets.count([try connect(1)], key, at: 0)
        budgets.settle(ended(1, sent: 300, received: 1_000_000), at: 0)
        #expect(used(budgets) > 1_000_000)
        #expect(budgets.turn(key, .https, hasWaited: false, at: 40 * hour) != nil)
    }

    @Test func `an attempt that fails or is canceled before its connection uses nothing of the estimate`() throws {
        var budgets = MeteredBudgets()
        budgets.count([try connect(1), try connect(2), try connect(3)], key, at: 0)
        budgets.settle(ProbeResult(id: 1, errno: SystemErrorNumber.connectionRefused.rawValue, call: "handshake"), at: 0)
        budgets.cancel([2])
        expectEqual(used(budgets), 16_684)
        // The bytes of an established connection may have been used.
        budgets.settle(ProbeResult(id: 3), at: 0)
        budgets.cancel([3])
        #expect(used(budgets) == 16_684 && budgets.openCount == 0)
    }

    @Test func `tcp targets have no estimate, and the estimates of a removed interface are forgotten`() throws {
        var budgets = MeteredBudgets()
        budgets.count([try connect(1, "192.0.2.1:443")], key, at: 0)
        #expect(used(budgets) == 100 && budgets.openCount == 0)
        budgets.count([try connect(2)], key, at: 0)
        budgets.remove(2)
        expectEqual(budgets.openCount, 0)
        budgets.settle(ended(2, sent: 1, received: 1), at: 0)
        expectEqual(used(budgets), 0)
    }

    @Test func `waiting probes reserve the estimate for their levels, and later what probes use`() throws {
        func gap(_ budgets: MeteredBudgets) -> Int64 {
            var budgets = budgets
            budgets.spend(20_000, key, at: 0)
            let first = budgets.turn(key, .https, hasWaited: false, at: 0)
            let second = budgets.turn(key, .https, hasWaited: false, at: 0)
            return (second ?? 0) - (first ?? 0)
        }
        func time(_ bytes: Int) -> Int64 { hour / 20_000 * Int64(bytes) }
        var budgets = MeteredBudgets()
        expectEqual(gap(budgets), time(16_484))
        for id in 1...100 as ClosedRange<UInt64> {
            budgets.count([try connect(id)], key, at: 0)
            budgets.settle(ended(id, sent: 500, received: 4_000), at: 0)
        }
        let expected = time(100 + bytes(500, 4_000))
        #expect(gap(budgets) >= expected && gap(budgets) < expected + time(16))
    }
}
