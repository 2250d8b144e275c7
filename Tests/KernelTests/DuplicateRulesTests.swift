import Expectations
import NetworkLab
import Reachability
import Testing

/// Rules that the kernel has twice. It accepts a second equal rule unless the request has NLM_F_EXCL, and one removal leaves the
/// other.
@Suite(.requiresNamespaces)
struct DuplicateRulesTests {
    @Test(arguments: [false, true])
    func `a rule that the kernel has twice stays in the snapshot when one of the two is removed`(isObservedBefore: Bool) throws {
        let network = try Network()
        let host = network.host
        try network.uplink("v0", "10.1.0.1/24")
        try host.ip("route add default via 10.1.0.254 dev v0")
        var observer: LibraryObserver?
        func observe() throws -> LibraryObserver {
            let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(host.path)))
            _ = try observer.nextPath()
            return observer
        }
        if isObservedBefore { observer = try observe() }
        try host.run("sh", "-c", "ip rule save | ip rule restore")
        let watching = try observer ?? observe()
        func expectFresh(mainRules: Int, _ sourceLocation: SourceLocation = #_sourceLocation) throws {
            let end = ContinuousClock.now + patience
            var difference: [KernelChange] = []
            repeat {
                difference = try FreshDump.take(of: host).changes(since: watching.settledState().snapshot)
            } while !difference.isEmpty && ContinuousClock.now < end
            #expect(difference.isEmpty, sourceLocation: sourceLocation)
            let rules = try watching.settledState().snapshot.rules.filter { $0.family == .v4 && $0.table == 254 }
            #expect(rules.count == mainRules, sourceLocation: sourceLocation)
        }

        try expectFresh(mainRules: 1)
        try host.ip("rule del pref 32766")
        try expectFresh(mainRules: 1)
        try host.ip("rule del pref 32766")
        try expectFresh(mainRules: 0)
    }
}
