import Expectations
import Testing

@testable import Reachability

/// Rules that the kernel has twice. The snapshot holds one of them and must not lose the other.
@Suite struct DuplicateRulesTests {
    private let rule = Rule(family: .v4, priority: 32_766)

    private func dump(_ rules: [Rule], _ keeper: inout SnapshotKeeper) -> SnapshotKeeper.Outcome {
        keeper.beginDump(.rulesV4)
        for rule in rules { keeper.addDumped(.rule(rule)) }
        return keeper.endDump()
    }

    @Test func `removing one of two duplicate rules of a dump makes the rules stale and leaves the rule`() {
        var keeper = SnapshotKeeper()
        _ = dump([rule, rule], &keeper)
        let outcome = keeper.apply(.ruleRemoved(rule))
        #expect(outcome.staleTables == [.rulesV4] && outcome.changes.isEmpty)
        expectEmpty(dump([rule], &keeper).changes)
        // One rule is left: the snapshot removes it at once.
        expectEqual(keeper.apply(.ruleRemoved(rule)).changes, [.ruleRemoved(rule)])
    }

    @Test func `a rule's removal that a dump has already shown makes the rules stale: the dumped rule may be its duplicate`() {
        var keeper = SnapshotKeeper()
        _ = dump([rule], &keeper)
        expectEqual(keeper.apply(.ruleRemoved(rule)).staleTables, [.rulesV4])
        expectEqual(dump([rule], &keeper).changes, [.ruleAdded(rule)])
    }

    @Test func `a rule announced again is known as a duplicate`() {
        var keeper = SnapshotKeeper()
        expectEqual(keeper.apply(.rule(rule)).changes, [.ruleAdded(rule)])
        expectEmpty(keeper.apply(.rule(rule)).changes)
        expectEqual(keeper.apply(.ruleRemoved(rule)).staleTables, [.rulesV4])
        expectEqual(dump([], &keeper).changes, [.ruleRemoved(rule)])
    }

    @Test func `a duplicate rule that is removed while a dump runs makes the rules stale`() {
        var keeper = SnapshotKeeper()
        keeper.beginDump(.rulesV4)
        for _ in 0..<2 { keeper.addDumped(.rule(rule)) }
        _ = keeper.apply(.ruleRemoved(rule))
        expectEqual(keeper.endDump().staleTables, [.rulesV4])
        expectEqual(keeper.live.rules, [rule])
    }

    @Test func `a dump of the other family's rules keeps the duplicates known`() {
        var keeper = SnapshotKeeper()
        _ = dump([rule, rule], &keeper)
        keeper.beginDump(.rulesV6)
        _ = keeper.endDump()
        expectEqual(keeper.apply(.ruleRemoved(rule)).staleTables, [.rulesV4])
    }
}
