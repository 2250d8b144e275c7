// The fleet reads these values around each event. The functions are mutating, because a computed property of a machine in the slab
// copies the machine, and a mutating function does not.
extension TargetMachine {
    struct Routing {
        let queries: [RouteQuery]
        let interfaces: InterfaceSet
    }

    struct Timing {
        let deadline: Int64?
        let socketCount: Int
        let budgetKey: MeteredBudgets.Key?
        let lane: ProbeAdmission.Lane
        let isProbing: Bool
        let isSurveying: Bool
        let followsEveryChange: Bool
    }

    /// Handles an event, and returns the values around it. One access to the slab is cheaper than one for each value.
    mutating func handleOnce(
        _ event: Event, in localState: LocalState, at now: Moment, allowing allowances: Allowances, fresh: FreshAnswer?
    ) -> (before: Routing, effects: [Effect], after: Routing, timing: Timing) {
        let before = routing()
        let effects = handle(event, in: localState, at: now, allowing: allowances, fresh: fresh)
        return (before, effects, routing(), timing())
    }

    mutating func takeOnlyQuery() -> RouteQuery? { onlyQuery }

    private mutating func routing() -> Routing { Routing(queries: queries, interfaces: usedInterfaces) }

    private mutating func timing() -> Timing {
        Timing(
            deadline: deadline, socketCount: socketCount, budgetKey: budgetKey(), lane: lane, isProbing: isProbing,
            isSurveying: survey?.running != nil, followsEveryChange: followsEveryChange)
    }

    mutating func dueBesideProbe() -> Int64? { dueBeside == .max ? nil : dueBeside }

    /// The budget from which the target's probes take their bytes; `nil` for none.
    mutating func budgetKey() -> MeteredBudgets.Key? {
        guard meteredInterface != 0, let bytes = settings.metered.bytesPerDay else { return nil }
        return MeteredBudgets.Key(interface: meteredInterface, bytesPerDay: bytes)
    }

    /// The budget of ``budgetKey()``, and the scheme by which the bytes of a probe are estimated.
    mutating func budgetUse() -> (MeteredBudgets.Key, Endpoint.Scheme)? { budgetKey().map { ($0, endpoint.scheme) } }

    /// The target's number, and whether a tick at this time starts a probe.
    mutating func tick(at time: Int64) -> (id: TargetID, startsProbe: Bool) { (id, wouldStartProbe(at: time)) }

    /// The numbers of the running attempts.
    var runningAttempts: [UInt64] {
        let others = survey?.running?.race.running.map(\.id) ?? []
        switch phase {
        case .connecting(_, let race): return race.running.map(\.id) + others
        case .following(_, let redirected): return redirected.machine.runningAttempts + others
        default: return others
        }
    }
}
