/// The budgets of all metered interfaces.
///
/// The bytes of the levels above TCP are estimated when an attempt begins, so that many attempts at the same time keep to the budget.
/// When the levels have ended, the difference to the used bytes is settled.
struct MeteredBudgets: Sendable {
    /// A budget, which targets with equal limits share.
    struct Key: Hashable, Sendable {
        let interface: UInt32
        let bytesPerDay: Int
    }

    /// The levels of an attempt, whose bytes are estimated.
    private struct OpenLevels: Hashable, Sendable {
        let key: Key
        let family: IPAddress.Family
        let estimate: Int
        var isConnected = false
    }

    private var budgets: [Key: ByteBudget] = [:]
    // By the numbers of the attempts.
    private var openLevels: [UInt64: OpenLevels] = [:]

    /// The probes of a budget that have the same estimate.
    private struct Class: Hashable, Sendable {
        let key: Key
        let estimate: Int
    }

    // The mean of the bytes that levels have used, by which waiting probes are spread.
    private var means: [Class: Int] = [:]

    // The mean cannot overflow.
    private static let largestMean = 1 << 30

    /// The number of attempts whose levels are estimated.
    var openCount: Int { openLevels.count }

    /// Returns the time at which a probe that is due may begin; `nil` for now. `hasWaited` is whether now is the time that an earlier
    /// call has returned. The probe is one of an endpoint with this scheme.
    mutating func turn(_ key: Key, _ scheme: Endpoint.Scheme, hasWaited: Bool, at now: Int64) -> Int64? {
        var budget = budgets[key] ?? ByteBudget(bytesPerDay: key.bytesPerDay)
        if hasWaited ? budget.allowsWaiting(at: now) : budget.allows(at: now) { return nil }
        defer { budgets[key] = budget }
        let estimate = ProbeBytes.levels(scheme)
        return budget.reserve(ProbeBytes.connection(.v4) + (means[Class(key: key, estimate: estimate)] ?? estimate))
    }

    /// Counts the bytes of the packets that a target sends, and the estimate for the levels of its attempts.
    mutating func count(_ effects: [TargetMachine.Effect], _ key: Key, at now: Int64) {
        var bytes = 0
        for effect in effects {
            bytes += Self.bytes(of: effect)
            guard case .connect(let attempt) = effect, let plan = attempt.plan?.plan else { continue }
            let estimate = ProbeBytes.levels(plan.scheme)
            openLevels[attempt.id] = OpenLevels(key: key, family: attempt.address.family, estimate: estimate)
            bytes += estimate
        }
        if bytes > 0 { spend(bytes, key, at: now) }
    }

    /// Counts bytes.
    mutating func spend(_ bytes: Int, _ key: Key, at now: Int64) {
        budgets[key, default: ByteBudget(bytesPerDay: key.bytesPerDay)].spend(bytes, at: now)
    }

    /// Settles the estimate for an attempt's levels if its result ends them. An attempt without a connection has used nothing of it.
    mutating func settle(_ result: ProbeResult, at now: Int64) {
        guard !openLevels.isEmpty, let open = openLevels[result.id] else { return }
        guard let levels = result.levels else {
            if result.errno == 0 { openLevels[result.id]?.isConnected = true } else { cancel([result.id]) }
            return
        }
        openLevels[result.id] = nil
        let used = ProbeBytes.levels(levels, open.family)
        let kind = Class(key: open.key, estimate: open.estimate)
        let mean = means[kind] ?? open.estimate
        means[kind] = mean + (min(used, Self.largestMean) - mean) / 8
        if used > open.estimate { spend(used - open.estimate, open.key, at: now) } else { refund(open.estimate - used, open.key) }
    }

    /// Settles the estimates for attempts that have no result. The bytes of a connection that was established remain counted.
    mutating func cancel(_ attempts: [UInt64]) {
        guard !openLevels.isEmpty else { return }
        for attempt in attempts {
            guard let open = openLevels.removeValue(forKey: attempt), !open.isConnected else { continue }
            refund(open.estimate, open.key)
        }
    }

    /// Forgets the budgets of an interface that was removed.
    mutating func remove(_ interface: UInt32) {
        if !budgets.isEmpty { budgets = budgets.filter { $0.key.interface != interface } }
        if !means.isEmpty { means = means.filter { $0.key.key.interface != interface } }
        if !openLevels.isEmpty { openLevels = openLevels.filter { $0.value.key.interface != interface } }
    }

    private mutating func refund(_ bytes: Int, _ key: Key) { budgets[key]?.refund(bytes) }

    private static func bytes(of effect: TargetMachine.Effect) -> Int {
        switch effect {
        case .connect(let attempt): ProbeBytes.connection(attempt.address.family)
        // An attempt without an answer, whose SYN the kernel has sent again.
        case .cancel: ProbeBytes.retransmission(.v6)
        case .resolve(let request): ProbeBytes.question(request.name) * request.families.count
        case .askHost: ProbeBytes.hostQuery
        default: 0
        }
    }
}
