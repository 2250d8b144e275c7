/// The budgets of all metered interfaces.
struct MeteredBudgets: Sendable {
    /// A budget, which targets with equal limits share.
    struct Key: Hashable, Sendable {
        let interface: UInt32
        let bytesPerDay: Int
    }

    private var budgets: [Key: ByteBudget] = [:]

    /// Returns the time at which a probe that is due may begin; `nil` for now. `hasWaited` is whether now is the time that an earlier
    /// call has returned.
    mutating func turn(_ key: Key, hasWaited: Bool, at now: Int64) -> Int64? {
        var budget = budgets[key] ?? ByteBudget(bytesPerDay: key.bytesPerDay)
        if hasWaited ? budget.allowsWaiting(at: now) : budget.allows(at: now) { return nil }
        defer { budgets[key] = budget }
        return budget.reserve(ProbeBytes.connection(.v4))
    }

    /// Counts the bytes of the packets that a target sends.
    mutating func count(_ effects: [TargetMachine.Effect], _ key: Key, at now: Int64) {
        let bytes = effects.reduce(0) { $0 + Self.bytes(of: $1) }
        if bytes > 0 { spend(bytes, key, at: now) }
    }

    /// Counts bytes.
    mutating func spend(_ bytes: Int, _ key: Key, at now: Int64) {
        budgets[key, default: ByteBudget(bytesPerDay: key.bytesPerDay)].spend(bytes, at: now)
    }

    /// Forgets the budgets of an interface that was removed.
    mutating func remove(_ interface: UInt32) {
        if !budgets.isEmpty { budgets = budgets.filter { $0.key.interface != interface } }
    }

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
