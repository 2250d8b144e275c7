internal import Pacing

/// The kernel's answers to the targets' route queries, shared by targets whose destinations have the same routes.
///
/// The kernel is asked once for each group of destinations: those with the same covering prefixes (``CoveringPrefixes``), interface, source
/// address, mark and, if a rule compares it, port. After a change of links, addresses, routes or rules, each group is asked once again, and only
/// the targets of groups whose answer has changed are notified. With few targets, each destination is a group of its own.
struct RouteBook: Sendable {
    /// The number of queries above which destinations are grouped by prefixes. With fewer queries, to count the prefixes costs more
    /// than the groups save.
    static let defaultGroupingLimit = 64
    /// The maximum age of an answer that is used without a query, in nanoseconds. It bounds the effect of a change that the kernel
    /// does not announce.
    static let freshness: Int64 = 1_000_000_000

    /// The destinations that share an answer.
    struct Group: Hashable, Sendable {
        let prefix: IPPrefix
        let port: UInt16
        let interface: UInt32
        let selector: RouteSelector?
    }

    /// The parts of an answer whose change concerns a target.
    struct View: Hashable, Sendable {
        let route: CandidateRoute?
        let interfaceName: String?
        let interfaceType: InterfaceType?
    }

    private struct Page: Sendable {
        /// The query that represents the group.
        var query: RouteQuery
        /// The number of members.
        var count = 0
        var answer: RouteAnswer?
        var view: View?
        var askedAt: Int64 = 0
        var generation: UInt64 = 0
    }

    private struct Member: Hashable, Comparable, Sendable {
        let query: RouteQuery
        let target: TargetID

        static func < (left: Member, right: Member) -> Bool {
            left.query == right.query ? left.target < right.target : RouteQuery.areInOrder(left.query, right.query)
        }
    }

    private let groupingLimit: Int
    private var pages: [Group: Page] = [:]
    private var prefixes: CoveringPrefixes?
    // The members of all groups by destination; sorted when it is needed. The members of one group are those within its prefix that
    // belong to it: a list for each group would take as much memory again.
    private var members: [Member] = []
    private var isSorted = true
    // Targets that have come to a group whose answer has another meaning than that of their former group.
    private var moved: [TargetID] = []
    private var removed: Set<Member> = []
    private var generation: UInt64 = 1
    // Whether groups must be asked again, because of a change since the last check, or because the kernel did not answer.
    private var needsCheck = false
    private var lastCheck: Int64?
    /// A check of all groups that takes several turns.
    private struct Check: Sendable {
        /// The last member that was considered.
        var last: Member?
        /// The time of the last turn.
        var time: Int64
    }

    // `nil` if no check runs.
    private var check: Check?
    /// The maximum numbers of queries and of considered members in one turn of a check. Each takes a few milliseconds.
    static let (queryBudget, memberBudget) = (1_024, 16_384)

    /// Creates a book without queries.
    init(groupingLimit: Int = RouteBook.defaultGroupingLimit) { self.groupingLimit = groupingLimit }

    /// The number of groups.
    var groupCount: Int { pages.count }

    /// The group of a query.
    private func group(of query: RouteQuery) -> Group {
        let isV4 = query.destination.family == .v4
        guard let prefixes else {
            return Group(
                prefix: IPPrefix(query.destination, length: isV4 ? 32 : 128), port: query.port, interface: query.interface,
                selector: query.selector)
        }
        let (prefix, isSpread) = prefixes.longest(covering: query.destination)
        return Group(
            prefix: isSpread ? IPPrefix(query.destination, length: isV4 ? 32 : 128) : prefix,
            port: prefixes.usesPorts || isSpread ? query.port : 0, interface: query.interface, selector: query.selector)
    }

    // MARK: Answers

    /// Returns the answer for a query if it is fresh: no change was reported since, and its age is at most ``freshness``.
    func answer(to query: RouteQuery, at now: Int64) -> RouteAnswer? {
        guard let page = pages[group(of: query)], page.generation == generation, now - page.askedAt <= Self.freshness else {
            return nil
        }
        return page.answer
    }

    /// Returns the last answer for a query; `nil` if there is none.
    func lastAnswer(to query: RouteQuery) -> RouteAnswer? { pages[group(of: query)]?.answer }

    /// Returns the query that is sent to the kernel for a query of a target.
    func representative(of query: RouteQuery) -> RouteQuery { pages[group(of: query)]?.query ?? query }

    /// Stores the kernel's answer to a representative query.
    ///
    /// - Returns: the targets for which the meaning of the answer has changed, in order, and whether their route is open.
    mutating func receive(
        _ query: RouteQuery, _ answer: RouteAnswer, in localState: LocalState, at now: Int64
    ) -> (targets: [TargetID], isOpen: Bool) {
        let group = group(of: query)
        guard let page = pages[group] else { return ([], false) }
        guard answer != .unanswered else {
            needsCheck = true
            return ([], false)
        }
        let view = view(of: query, answer, in: localState)
        let isChanged = page.view.map { $0 != view } ?? false
        pages[group]?.answer = answer
        pages[group]?.view = view
        pages[group]?.askedAt = now
        pages[group]?.generation = generation
        return (isChanged ? targets(of: group) : [], view.route?.route != nil)
    }

    private mutating func targets(of group: Group) -> [TargetID] {
        sort()
        let targets = members(within: group.prefix).filter { self.group(of: $0.query) == group }.map(\.target)
        return Array(Set(targets)).sorted()
    }

    private func view(of query: RouteQuery, _ answer: RouteAnswer, in localState: LocalState) -> View {
        let candidate = Candidate(
            address: query.destination, port: query.port, zone: 0, boundTo: query.interface, selector: query.selector)
        let route = candidateRoute(of: candidate, by: answer, in: localState)
        let interface = route?.route.flatMap { localState.interfaces[$0.interface] }
        return View(route: route, interfaceName: interface?.name, interfaceType: interface?.type)
    }

    // MARK: Members

    /// Replaces the queries of a target.
    mutating func move(_ target: TargetID, from old: [RouteQuery], to new: [RouteQuery], in snapshot: KernelSnapshot) {
        for query in old where !new.contains(query) { leave(target, query) }
        for query in new where !old.contains(query) {
            let member = Member(query: query, target: target)
            if removed.remove(member) == nil {
                isSorted = isSorted && members.last.map { $0 < member } ?? true
                members.append(member)
            }
            join(member)
        }
        if prefixes == nil, members.count - removed.count > groupingLimit {
            moved += regroup { $0 = CoveringPrefixes(snapshot) }
            needsCheck = true
        }
    }

    private mutating func leave(_ target: TargetID, _ query: RouteQuery) {
        let member = Member(query: query, target: target)
        removed.insert(member)
        part(member, from: group(of: query))
        // Removed members are dropped when the list is sorted, or when they are half of it.
        if removed.count > 64, removed.count * 2 > members.count { compact() }
    }

    /// Adds a member to its group. A new group begins with the answer of the member's former group, which is asked again.
    ///
    /// - Returns: whether the group already has an answer with another meaning than that of the former group.
    @discardableResult
    private mutating func join(_ member: Member, from former: Page? = nil) -> Bool {
        let group = group(of: member.query)
        var isOther = false
        if let page = pages[group] {
            isOther = former?.view != nil && page.view != former?.view
        } else {
            var page = Page(query: member.query)
            (page.answer, page.view) = (former?.answer, former?.view)
            pages[group] = page
        }
        pages[group]?.count += 1
        return isOther
    }

    private mutating func part(_ member: Member, from group: Group) {
        guard let page = pages[group] else { return }
        guard page.count > 1 else { return pages[group] = nil }
        pages[group]?.count -= 1
        // A query represents its group only as long as a member has it: a later change may move its destination elsewhere.
        guard page.query == member.query else { return }
        // Removed members stay in the list: to drop them here would cost the complete list for each removed target.
        if !isSorted { members.sort() }
        isSorted = true
        if let next = self.member(after: member, in: group) { pages[group]?.query = next.query }
    }

    /// Returns the member of a group that follows a former member, in order; after the last one, the first.
    private func member(after former: Member, in group: Group) -> Member? {
        let range = members(within: group.prefix).indices
        let start = place(in: range) { $0 < former }
        let isMember = { (place: Int) in !removed.contains(members[place]) && self.group(of: members[place].query) == group }
        let next = (start..<range.upperBound).first(where: isMember) ?? (range.lowerBound..<start).first(where: isMember)
        return next.map { members[$0] }
    }

    private mutating func compact() {
        guard !removed.isEmpty else { return }
        members.removeAll { removed.contains($0) }
        removed = []
    }

    /// Groups all members again.
    ///
    /// - Parameter update: updates the prefixes.
    /// - Returns: the targets that must be notified.
    private mutating func regroup(_ update: (inout CoveringPrefixes?) -> Void) -> [TargetID] {
        compact()
        let formerGroups = members.map { group(of: $0.query) }
        let formerPages = pages
        update(&prefixes)
        pages = [:]
        return zip(members, formerGroups).compactMap { join($0, from: formerPages[$1]) ? $0.target : nil }
    }

    // MARK: Changes

    /// The number of changed prefixes from which all members are grouped again, rather than those within the prefixes.
    private static let regroupingLimit = 1_000

    /// Applies changes of the kernel's state. `snapshot` is the state after them.
    mutating func apply(_ changes: [KernelChange], _ snapshot: KernelSnapshot) {
        expire()
        guard prefixes != nil else { return }
        let hasChangedRules = changes.contains {
            switch $0 {
            case .ruleAdded, .ruleRemoved: true
            default: false
            }
        }
        let changed = Set(changes.compactMap { CoveringPrefixes.prefix(of: $0) })
        if hasChangedRules || changed.count > Self.regroupingLimit {
            moved += regroup { prefixes in
                for change in changes { prefixes?.apply(change) }
                if hasChangedRules { prefixes?.rulesChanged(snapshot) }
            }
            return
        }
        guard !changed.isEmpty else { return }
        sort()
        let affected = Set(changed.flatMap { members(within: $0) }).sorted().map { (member: $0, group: group(of: $0.query)) }
        for change in changes { prefixes?.apply(change) }
        for (member, former) in affected where former != group(of: member.query) {
            let page = pages[former]
            part(member, from: former)
            if join(member, from: page) { moved.append(member.target) }
        }
    }

    /// Whether ``takeMoved()`` returns targets.
    var hasMoved: Bool { !moved.isEmpty }

    /// Returns the targets whose route must be checked because they have come to another group, in order.
    mutating func takeMoved() -> [TargetID] {
        defer { moved = [] }
        return Array(Set(moved)).sorted()
    }

    /// Notes a change that concerns every answer, such as a suspend, other evidence about an interface, or a removed route that the
    /// snapshot already lacked.
    mutating func expire() {
        generation += 1
        needsCheck = true
    }

    private mutating func sort() {
        compact()
        guard !isSorted else { return }
        members.sort()
        isSorted = true
    }

    private func members(within prefix: IPPrefix) -> ArraySlice<Member> {
        let first = prefix.first
        let start = place(in: 0..<members.count) { $0.query.destination < first }
        let end = place(in: start..<members.count) { prefix.contains($0.query.destination) }
        return members[start..<end]
    }

    /// Returns the place after the members that fulfill a condition. These are the first ones of the range.
    private func place(in range: Range<Int>, after isBefore: (Member) -> Bool) -> Int {
        var (low, high) = (range.lowerBound, range.upperBound)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(members[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: Checks

    /// The minimum time between two checks of all groups, in nanoseconds: 50 µs for each group, and at least 20 ms.
    private var checkGap: Int64 { max(TargetMachine.recheckGap, Int64(pages.count) * 50_000) }

    /// The time at which ``takeCheck(at:)`` returns queries; `nil` if no change is unchecked.
    var checkDue: Int64? {
        if check != nil { return .min }
        guard needsCheck, !pages.isEmpty else { return nil }
        return lastCheck.map { $0.addingSaturated(checkGap) } ?? .min
    }

    /// Returns the next queries after a change: one for each group, in order. A large check takes several
    /// turns. Empty if no check is due.
    mutating func takeCheck(at now: Int64) -> [RouteQuery] {
        guard let due = checkDue, due <= now else { return [] }
        if check == nil {
            (lastCheck, needsCheck) = (now, false)
            // Many targets usually have few groups.
            if pages.count <= Self.queryBudget {
                return pages.values.filter { $0.generation != generation }.map(\.query).sorted(by: RouteQuery.areInOrder)
            }
        }
        sort()
        var check = check ?? Check(time: .min)
        guard check.time != now else { return [] }
        check.time = now
        var next = check.last.map { last in place(in: members.indices) { $0 < last || $0 == last } } ?? 0
        let end = min(members.count, next + Self.memberBudget)
        var queries: [RouteQuery] = []
        while next < end, queries.count < Self.queryBudget {
            let query = members[next].query
            // Other members of a group are represented by this query. Some groups have been asked since the change.
            if query != queries.last, let page = pages[group(of: query)], page.query == query, page.generation != generation {
                queries.append(query)
            }
            next += 1
        }
        check.last = next > 0 ? members[next - 1] : nil
        self.check = next < members.count ? check : nil
        return queries
    }
}
