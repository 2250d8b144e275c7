internal import Pacing

/// The open incidents of a monitor, at most one for each component at fault and kind.
///
/// ```
///           a target fails           the failure has lasted `openAfter`
///   (none) ───────────────▶ pending ───────────────────────────────────▶ open ◀──┐ a target fails again
///              ▲               │                                          │      │ within `closeAfter`
///              │  no target is │            the last target is up         ▼      │
///              └───────────────┴─────────────────────────────────────── ended ───┘
/// ```
///
/// - Each failing target is a member of one incident: that of the nearest component that is at fault (``IncidentSuspects``). A component
///   whose fault no cause proves is at fault by what several targets show: a host if two of its targets are silent and none has answered
///   since they are (a target that is up by a probe from before says nothing), a resolver if names of two domains fail since it last
///   resolved one, a router if it cannot reach two hosts, and a gateway if the cause of any target proves it.
/// - When a component becomes at fault, its members leave the incidents of components that are farther away. An incident that loses its
///   last member so is merged: it ends, and names the other one. When a component is no longer at fault, members that still fail belong
///   to the next one, from the time of their own first failure. It opens after another `openAfter`, and not before a probe of theirs
///   that began since then has failed: most of them recover with it.
/// - A component at fault stays so if a target that shows it is removed or receives other settings: nothing has refuted it.
/// - A target that is down in an open incident of its own, or of its host, stays there if its name is no longer resolved: the resolver
///   does not explain an earlier failure.
/// - A flapping target is a member of an incident of the kind `flapping`, whether it fails now or not: that of the component which its
///   last failure proves to be at fault, else its own. It leaves it for a nearer component only, so that one flapping gateway is one
///   incident. ``outageLength`` failures in a row are no flapping: they are an outage.
/// - Incidents of an earlier process continue (``restore(_:at:)``): their targets are presumed to fail until their first result.
/// - ``takeChanges(at:)`` returns what is to be published. An incident that ends before it has opened is not published.
///
/// Each event takes constant or logarithmic time, and a step for each member that moves because a component is at fault now, or no longer.
struct IncidentBook: Sendable {
    /// The minimum time between two publications of an open incident, in nanoseconds.
    static let publicationGap: Int64 = 1_000_000_000

    /// The number of failed probes in a row that end the flapping of a target. A target that begins to flap has fewer: more than 30 % of its
    /// results differ from those before them (``FlapDetector``).
    static let outageLength = 6

    /// The times of a target's incidents, in nanoseconds.
    struct Timing: Sendable {
        /// The time that a failure lasts before its incident opens.
        var openAfter: Int64 = 0
        /// The time within which a further failure continues an incident.
        var closeAfter: Int64 = 0
    }

    private struct Key: Hashable, Sendable {
        let subject: Incident.Subject
        let kind: Incident.Kind
    }

    /// What a publication shows of a cause.
    private struct CauseKey: Hashable, Sendable {
        let layer: Cause.Layer
        let code: Cause.Code
        let scope: Incident.Scope
    }

    private enum End: Sendable {
        case over(Moment)
        /// The last member has moved to another incident.
        case merged(TargetID, Moment)
        case removed(Moment)
    }

    private struct Entry: Sendable {
        var key: Key
        var began: Moment
        /// `nil` before the incident opens.
        var id: String?
        var targets: [Endpoint] = []
        /// All targets that have failed; empty without members.
        var members = TargetSet()
        /// The number of members now, and their largest number at the same time.
        var failing = 0
        var count = 0
        /// The causes of the members, each with the first one's cause and their number.
        var causes: [(key: CauseKey, cause: Cause, count: Int)] = []
        /// The cause of most members; of the last ones that recover, the cause that most had before.
        var present: (key: CauseKey, cause: Cause)
        var closeAfter: Int64 = 0
        /// `nil` while there are members.
        var end: End?
        var published: (count: Int, members: Int, cause: CauseKey, subject: Incident.Subject)?
        var isChanged = false
        /// Whether the next publication must wait until the entry's place in `throttled` is due, and whether there is something to publish.
        var isThrottled = false
        var isDeferred = false

        /// Whether this machine alone determines the failures.
        var isOfThisMachine: Bool { present.key.scope == .local || key.subject.kind == .interface }

        var hasNews: Bool {
            published.map {
                count > $0.count || members.count > $0.members || present.key != $0.cause || key.subject != $0.subject
            } ?? true
        }

        mutating func removeCause(_ count: Int, _ key: CauseKey) {
            guard let index = causes.firstIndex(where: { $0.key == key }) else { return }
            causes[index].count -= count
            if causes[index].count <= 0 { causes.remove(at: index) }
        }

        /// Chooses the cause of most members, among those that explain the component. An earlier choice stays until another cause has more members.
        mutating func choosePresent() {
            func rank(_ key: CauseKey, _ count: Int) -> (Int, Int, Int) {
                (explains(key) ? 1 : 0, count, key == present.key ? 1 : 0)
            }
            guard let best = causes.max(by: { rank($0.key, $0.count) < rank($1.key, $1.count) }),
                explains(best.key) || !explains(present.key)
            else { return }
            present = (best.key, best.cause)
        }

        /// Whether a cause explains the fault of the component. Names that are not resolved behind a silent gateway do not.
        private func explains(_ cause: CauseKey) -> Bool { cause.layer != .dns || key.subject.kind != .gateway }
    }

    private struct Member: Sendable {
        var id: TargetID
        /// `nil` for a target that an earlier process has seen.
        var endpoint: Endpoint?
        /// The last cause. A flapping target that is up has the cause of its last failure.
        var cause: Cause
        /// The components that the present failure accuses; `nil` for a flapping target that is up.
        var suspects: IncidentSuspects?
        var first: Moment
        /// The time from which its suspects explain its failure: that of an earlier one of the server is no other component's.
        var explained: Moment
        /// The status by the last update.
        var status = StatusName.unknown
        /// The time from which its incident is open, in nanoseconds.
        var opening: Int64
        /// The time that its failure lasts before its incident opens, in nanoseconds.
        var openAfter: Int64 = 0
        var closeAfter: Int64
        var isFlapping: Bool
        /// The number of its last probes in a row that have failed.
        var failures = 0
        /// Whether only an earlier process, or the target's predecessor, has seen the failure.
        var isPresumed = false
        /// The time since which its component is no longer at fault, and no probe of it has failed, in nanoseconds; `nil` if none has ended, or
        /// one has failed.
        var recovery: Int64?
        /// The round in which its voice was counted (``Accused/round``); `nil` if it was not.
        var round: Int?
        /// Its incident; -1 for none yet.
        var slot = -1
        /// The cause under which its incident counts it.
        var counted: CauseKey?
    }

    /// What the failures of several targets show of a component.
    private struct Accused: Sendable {
        var isAtFault = false
        /// Whether it was at fault when a target was removed, or by an earlier process, and nothing has refuted it since.
        var isHeld = false
        /// The members whose causes prove the fault, and those whose causes allow it.
        var proofs = 0
        var supporters: Set<TargetID> = []
        /// The different names under which supporters count against the component. A success begins a new round without voices.
        var voices: [String: Int] = [:]
        var round = 0
        /// The address of a host, and the supporters that are silent since its last answer.
        var address: IPAddress?
        var unanswered: Set<TargetID> = []
    }

    /// The targets that answer at an address.
    private struct Answers: Sendable {
        var count = 0
        /// The time of the last answer, in nanoseconds.
        var last: Int64
    }

    private struct Throttle: Sendable {
        let slot: Int
        let id: String
        let due: Int64
    }

    private let hasMembers: Bool
    private var entries: [Entry?] = []
    private var freeEntries: [Int] = []
    private var current: [Key: Int] = [:]
    private var members: [Member?] = []
    private var freeMembers: [Int] = []
    private var places: [TargetID: Int] = [:]
    private var accused: [Incident.Subject: Accused] = [:]
    /// The targets that answer, and what is known of them by address.
    private var answering: [TargetID: IPAddress] = [:]
    private var answers: [IPAddress: Answers] = [:]
    /// The times at which name servers have last resolved a name, in nanoseconds, and the resolvers that are accused.
    private var resolved: [ResolverConfiguration.Nameserver: Int64] = [:]
    /// The causes of the last failures. Most failures of a flapping target do not change its status.
    private var lastFailures: [TargetID: Cause] = [:]
    /// The flapping targets whose failures were an outage, with whether their last probe has failed, and the number of changes since.
    private var settled: [TargetID: (isFailing: Bool, changes: Int)] = [:]
    private var resolvers: Set<Incident.Subject> = []
    /// The members of pending incidents, by the time at which they open, and ended incidents, by the time at which they may be published.
    private var openings = DueHeap()
    private var closings = DueHeap()
    // Slots in the order of their changes.
    private var changed: [Int] = []
    // In the order of their times, because each is added at its publication.
    private var throttled: [Throttle] = []
    private var firstThrottled = 0
    private var deferredCount = 0
    private var nextNumber = 1
    /// The incident of the limit of open files, the number of targets that wait, and its cause.
    private var shortage: (slot: Int, count: Int, cause: CauseKey)?

    /// Creates a book. - Parameter hasMembers: whether incidents have the numbers of all their targets.
    init(hasMembers: Bool = false) { self.hasMembers = hasMembers }

    /// The number of incidents that have opened and whose end is not published.
    var openCount: Int { entries.count { $0?.id != nil } }
    /// The number of failing and flapping targets.
    var memberCount: Int { places.count }

    /// The time at which ``takeChanges(at:)`` has something to return, in nanoseconds; `.min` for now, `nil` for never.
    var deadline: Int64? {
        if !changed.isEmpty { return .min }
        let growth = deferredCount > 0 ? throttled[firstThrottled].due : nil
        return [openings.next, closings.next, growth].compactMap { $0 }.min()
    }

    /// Returns the subject, the kind and the identifier of a target's incident; `nil` if the target is no member. For tests. A pending
    /// incident has no identifier.
    func subject(of id: TargetID) -> (subject: Incident.Subject, kind: Incident.Kind, id: String?)? {
        places[id].flatMap { members[$0] }.flatMap { entries[$0.slot] }.map { ($0.key.subject, $0.key.kind, $0.id) }
    }

    // MARK: Failures

    /// Records a target's status.
    ///
    /// - Parameters:
    ///   - id: the target.
    ///   - update: its status.
    ///   - timing: the times of its incidents.
    ///   - isFault: whether its failure belongs to an incident.
    ///   - moment: the time of the record; `nil` for that of the update. A failure that begins to belong to an incident begins then.
    mutating func record(
        _ id: TargetID, _ update: ServerUpdate, _ timing: Timing, isFault: Bool = true, at moment: Moment? = nil
    ) {
        let now = moment ?? update.moment
        var turned: [Incident.Subject] = []
        // Without a result, what is known of the target, or of the one that it replaces, holds.
        if update.statusName != .unknown { setAnswer(isFault ? update.answeringAddress : nil, of: id, at: now, &turned) }
        let place = places[id]
        if let place, update.statusName == .unknown, members[place]?.isPresumed == true { return }
        if let cause = update.pending ?? (update.statusName.isFailing ? update.cause : nil) { lastFailures[id] = cause }
        if !update.isFlapping { settled[id] = nil }
        let isFlapping = isFault && update.isFlapping && settled[id] == nil
        let failure = isFault && update.statusName != .up && update.statusName != .unknown ? update.cause : nil
        if failure != nil || isFlapping {
            if let place, let failure, !isFlapping, isHidden(place, behind: failure) { return settle(turned, at: now) }
            fail(place ?? addMember(id, update, moment), update, failure, isFlapping, timing, at: now, &turned)
        } else if let place {
            remove(place, .over(now), &turned)
        }
        settle(turned, at: now)
    }

    /// Removes a target that is no longer monitored.
    mutating func remove(_ id: TargetID, at now: Moment) {
        var turned: [Incident.Subject] = []
        setAnswer(nil, of: id, at: now, &turned)
        (lastFailures[id], settled[id]) = (nil, nil)
        if let place = places[id] { remove(place, .removed(now), &turned) }
        settle(turned, at: now)
    }

    /// Notes a probe of a target.
    mutating func record(_ id: TargetID, _ report: ProbeReport) {
        noteLookup(report)
        noteAnswer(id, report)
        if !settled.isEmpty, let (isFailing, changes) = settled[id], isFailing == report.succeeded {
            settled[id] = changes + 1 < Self.outageLength ? (!isFailing, changes + 1) : nil
        }
        guard !places.isEmpty, let place = places[id] else { return }
        guard !report.succeeded else {
            members[place]?.failures = 0
            return
        }
        guard !report.isProvisional, var member = members[place] else { return }
        member.failures += 1
        let isLasting = member.recovery.map { report.began >= $0 } ?? false
        if isLasting { member.recovery = nil }
        let isOutage = member.isFlapping && member.failures >= Self.outageLength && member.status.isFailing
        if isOutage {
            settled[id] = (true, 0)
            (member.isFlapping, member.first) = (false, member.explained)
            member.opening = member.first.monotonicNanoseconds.addingSaturated(member.openAfter)
        }
        members[place] = member
        if isOutage { assign(place, at: report.moment) } else if isLasting { schedule(place) }
    }

    /// Notes the name that a server may have resolved.
    private mutating func noteLookup(_ report: ProbeReport) {
        guard let lookup = report.lookup, let server = lookup.server, lookup.ageNanoseconds ?? 0 == 0, !lookup.addresses.isEmpty
        else { return }
        resolved[server] = report.moment.monotonicNanoseconds
        guard !resolvers.isEmpty else { return }
        let name = "\(server)"
        var turned: [Incident.Subject] = []
        for subject in resolvers where subject.name == nil || subject.name == name {
            guard accused[subject]?.voices.isEmpty == false || accused[subject]?.isHeld == true else { continue }
            accused[subject]?.isHeld = false
            accused[subject]?.voices = [:]
            accused[subject]?.round += 1
            judge(subject, &turned)
        }
        settle(turned.sorted { ($0.name ?? "") < ($1.name ?? "") }, at: report.moment)
    }

    private mutating func addMember(_ id: TargetID, _ update: ServerUpdate, _ first: Moment?) -> Int {
        let first = first ?? (update.cause == nil ? update.moment : update.failureMoment)
        let member = Member(
            id: id, endpoint: update.endpoint, cause: update.cause ?? lastFailures[id] ?? .flapping(update.endpoint),
            suspects: nil, first: first, explained: first, opening: .max, closeAfter: 0, isFlapping: false)
        let place: Int
        if let reused = freeMembers.popLast() {
            place = reused
            members[place] = member
        } else {
            place = members.count
            members.append(member)
        }
        places[id] = place
        return place
    }

    private mutating func fail(
        _ place: Int, _ update: ServerUpdate, _ cause: Cause?, _ isFlapping: Bool, _ timing: Timing, at now: Moment,
        _ turned: inout [Incident.Subject]
    ) {
        guard var member = members[place] else { return }
        let (former, wasPresumed, wasFlapping) = (member.suspects, member.isPresumed, member.isFlapping)
        let presumed = former == nil && wasPresumed && member.slot >= 0 ? entries[member.slot] : nil
        (member.isFlapping, member.closeAfter, member.isPresumed) = (isFlapping, timing.closeAfter, false)
        (member.endpoint, member.status) = (update.endpoint, update.statusName)
        // The status of a flapping target does not show most of its failures.
        let failure = update.statusName.isFailing ? cause : isFlapping ? update.pending : cause
        if let cause = failure ?? (isFlapping ? lastFailures[member.id] : nil) ?? cause { member.cause = cause }
        let isSeen = update.statusName.isFailing || failure == nil || !isFlapping
        let state = isSeen ? update.statusName : failure?.isAnswer == true ? .down : .unreachable
        member.suspects = (failure ?? cause).map { _ in
            IncidentSuspects(member.cause, of: update.endpoint, at: update.address, state)
        }
        if let suspects = member.suspects {
            // A fault of this machine does not begin with the server's, nor the other way round.
            let wasCertain = former?.isCertain ?? presumed?.isOfThisMachine
            let isOther = presumed.map { $0.key.subject.kind != .target && !suspects.names($0.key.subject) } ?? false
            if isOther || wasFlapping && !isFlapping || wasCertain.map({ $0 != suspects.isCertain }) ?? false {
                (member.first, member.explained) = (update.failureMoment, update.failureMoment)
            } else if isFlapping {
                member.explained = update.failureMoment
            } else if former?.isAnswered ?? presumed?.present.cause.isAnswer ?? false, !suspects.isAnswered {
                member.explained = now
            }
        }
        let delay = timing.openAfter
        member.openAfter = delay
        let isImmediate = member.isFlapping || member.suspects?.isCertain == true
        member.opening = member.first.monotonicNanoseconds.addingSaturated(isImmediate ? 0 : delay)
        if isImmediate { member.recovery = nil }
        members[place] = member
        rename(place, wasPresumed: wasPresumed)
        accuse(
            member.suspects, insteadOf: former, presumed: presumed?.key.subject, place, isRemoval: former != nil && wasPresumed,
            &turned)
        assign(place, at: now)
    }

    private mutating func remove(_ place: Int, _ end: End, _ turned: inout [Incident.Subject]) {
        guard let member = members[place] else { return }
        let presumed =
            member.suspects == nil && member.isPresumed && member.slot >= 0 ? entries[member.slot]?.key.subject : nil
        let isRemoved = if case .removed = end { true } else { false }
        accuse(
            nil, insteadOf: member.suspects, presumed: presumed, place,
            isRemoval: isRemoved || presumed == nil && member.isPresumed, &turned)
        leave(place, end)
        places[member.id] = nil
        members[place] = nil
        freeMembers.append(place)
    }

    /// Whether a target whose name is not resolved still belongs to its incident: it was down while the name was resolved, and the incident is open.
    private func isHidden(_ place: Int, behind cause: Cause) -> Bool {
        guard cause.isOfResolver, let member = members[place], member.slot >= 0, member.cause.layer != .dns,
            let entry = entries[member.slot], entry.id != nil, entry.key.kind == .fault
        else { return false }
        guard entry.key.subject.kind == .target || entry.key.subject.kind == .host else { return false }
        return member.suspects == nil ? entry.present.key.scope == .server : member.status == .down
    }

    /// Gives the incident of a target the text that the target has now. Other targets can have the former text too.
    private mutating func rename(_ place: Int, wasPresumed: Bool) {
        guard wasPresumed, let member = members[place], member.slot >= 0, let endpoint = member.endpoint,
            let entry = entries[member.slot], entry.key.subject.kind == .target, entry.failing == 1
        else { return }
        let key = Key(subject: .init(.target, endpoint.text), kind: entry.key.kind)
        guard key != entry.key, current[key] == nil else { return }
        if current[entry.key] == member.slot { current[entry.key] = nil }
        current[key] = member.slot
        entries[member.slot]?.key = key
        entries[member.slot]?.targets = [endpoint]
        touch(member.slot)
    }

    // MARK: Components

    /// Replaces the components that a member accuses, and decides again whether they are at fault.
    ///
    /// - Parameters:
    ///   - next: the components that it accuses now.
    ///   - former: the components that it has accused.
    ///   - presumed: the component that was at fault when an earlier process has seen it fail.
    ///   - place: the member.
    ///   - isRemoval: whether the target was removed or changed, so that nothing is refuted.
    ///   - turned: receives the components that are at fault now, or no longer.
    private mutating func accuse(
        _ next: IncidentSuspects?, insteadOf former: IncidentSuspects?, presumed: Incident.Subject? = nil, _ place: Int,
        isRemoval: Bool, _ turned: inout [Incident.Subject]
    ) {
        guard former != next || presumed != nil else { return }
        var subjects: [Incident.Subject] = []
        for suspect in former?.shared ?? [] {
            withdraw(suspect, place, isRemoval: isRemoval)
            subjects.append(suspect.subject)
        }
        if let presumed, let id = members[place]?.id {
            accused[presumed]?.supporters.remove(id)
            accused[presumed]?.unanswered.remove(id)
            subjects.append(presumed)
        }
        if !isRemoval {
            for subject in subjects where next?.shared.contains(where: { $0.subject == subject }) != true {
                accused[subject]?.isHeld = false
            }
        }
        for suspect in next?.shared ?? [] {
            accuse(suspect, place)
            if !subjects.contains(suspect.subject) { subjects.append(suspect.subject) }
        }
        for subject in subjects { judge(subject, &turned) }
    }

    private mutating func accuse(_ suspect: IncidentSuspects.Suspect, _ place: Int) {
        guard let member = members[place] else { return }
        let subject = suspect.subject
        guard !suspect.isProved else {
            accused[subject, default: Accused()].proofs += 1
            return
        }
        accused[subject, default: Accused()].supporters.insert(member.id)
        if let address = suspect.address {
            accused[subject]?.address = address
            if answers[address].map({ $0.last < member.first.monotonicNanoseconds }) ?? true {
                accused[subject]?.unanswered.insert(member.id)
            }
        }
        if subject.kind == .resolver { resolvers.insert(subject) }
        if let voice = suspect.voice, subject.kind != .resolver || isUnrefuted(subject, since: member.first) {
            accused[subject]?.voices[voice, default: 0] += 1
            members[place]?.round = accused[subject]?.round
        }
    }

    private mutating func withdraw(_ suspect: IncidentSuspects.Suspect, _ place: Int, isRemoval: Bool) {
        guard let member = members[place] else { return }
        let subject = suspect.subject
        if isRemoval, accused[subject]?.isAtFault == true { accused[subject]?.isHeld = true }
        guard !suspect.isProved else {
            accused[subject]?.proofs -= 1
            return
        }
        accused[subject]?.supporters.remove(member.id)
        accused[subject]?.unanswered.remove(member.id)
        guard let voice = suspect.voice else { return }
        if member.round == accused[subject]?.round, let count = accused[subject]?.voices[voice] {
            accused[subject]?.voices[voice] = count > 1 ? count - 1 : nil
        }
        members[place]?.round = nil
    }

    /// Returns whether a resolver has resolved no name since a time.
    private func isUnrefuted(_ resolver: Incident.Subject, since first: Moment) -> Bool {
        resolved.allSatisfy { server, time in
            time < first.monotonicNanoseconds || resolver.name != nil && resolver.name != "\(server)"
        }
    }

    /// Decides whether a component is at fault, and appends it to `turned` if that has changed.
    private mutating func judge(_ subject: Incident.Subject, _ turned: inout [Incident.Subject]) {
        guard let found = accused[subject] else { return }
        let silent = found.address.map { answers[$0] == nil ? found.supporters.count : found.unanswered.count } ?? 0
        let isAtFault = found.isHeld || found.proofs > 0 || silent > 1 || found.voices.count > 1
        if found.isAtFault != isAtFault {
            accused[subject]?.isAtFault = isAtFault
            turned.append(subject)
        }
        guard found.proofs == 0, found.supporters.isEmpty else { return }
        accused[subject] = nil
        if subject.kind == .resolver { resolvers.remove(subject) }
    }

    /// Notes the address at which a target answers; `nil` for none.
    private mutating func setAnswer(_ address: IPAddress?, of id: TargetID, at now: Moment, _ turned: inout [Incident.Subject]) {
        let former = answering[id]
        guard former != address else { return }
        answering[id] = address
        if let former, var found = answers[former] {
            found.count -= 1
            answers[former] = found.count > 0 ? found : nil
            if found.count == 0, !accused.isEmpty { judge(.init(.host, "\(former)"), &turned) }
        }
        if let address {
            answers[address, default: Answers(last: .min)].count += 1
            noteAnswer(at: address, now, &turned)
        }
    }

    /// Notes a further answer of a target that answers.
    private mutating func noteAnswer(_ id: TargetID, _ report: ProbeReport) {
        guard report.succeeded || report.cause?.isAnswer == true, let address = answering[id] else { return }
        var turned: [Incident.Subject] = []
        noteAnswer(at: address, report.moment, &turned)
        settle(turned, at: report.moment)
    }

    private mutating func noteAnswer(at address: IPAddress, _ moment: Moment, _ turned: inout [Incident.Subject]) {
        answers[address]?.last = moment.monotonicNanoseconds
        guard !accused.isEmpty else { return }
        let host = Incident.Subject(.host, "\(address)")
        guard accused[host] != nil else { return }
        accused[host]?.isHeld = false
        accused[host]?.unanswered = []
        judge(host, &turned)
    }

    /// Moves the members that components accuse which are at fault now, or no longer.
    private mutating func settle(_ turned: [Incident.Subject], at now: Moment) {
        for subject in turned {
            guard let found = accused[subject] else { continue }
            // In an order that a replay repeats.
            for id in found.supporters.sorted() {
                if let place = places[id] { assign(place, isAtFault: found.isAtFault, at: now) }
            }
        }
    }

    // MARK: Membership

    /// Moves a member to the incident of the nearest component at fault.
    ///
    /// - Parameters:
    ///   - place: the member.
    ///   - isAtFault: whether a component is at fault now, or no longer; `nil` if the member has another cause.
    ///   - now: the present time.
    private mutating func assign(_ place: Int, isAtFault: Bool? = nil, at now: Moment) {
        guard let member = members[place], !member.isPresumed || member.suspects != nil else { return }
        let former = member.slot < 0 ? nil : entries[member.slot]?.key
        let suspect =
            member.suspects.map { suspects in
                suspects.shared.first { $0.isProved || accused[$0.subject]?.isAtFault == true } ?? suspects.last
            } ?? flappingComponent(of: member)
        let subject = suspect?.subject ?? .init(.target, member.endpoint?.text)
        let key = Key(subject: subject, kind: member.isFlapping ? .flapping : .fault)
        if let former, key.kind == .flapping, former.kind == .flapping, former.subject != subject,
            former.subject.distance <= subject.distance
        {
            // The incident keeps the cause that explains its subject.
            return
        }
        let cause = CauseKey(layer: member.cause.layer, code: member.cause.code, scope: suspect?.scope ?? .server)
        if former == key { return recount(place, as: suspect == nil ? member.counted ?? cause : cause) }
        let slot = enter(key, place, cause)
        guard let former else { return }
        // A probe that began before a component has recovered can still fail, and show that the component is no longer at fault.
        let isFarther =
            isAtFault == nil && former.kind == .fault && key.kind == .fault && former.subject.distance < subject.distance
            && member.suspects?.isCertain != true
        if isAtFault == false || isFarther {
            let time = now.monotonicNanoseconds
            members[place]?.opening = max(member.opening, time.addingSaturated(member.openAfter))
            members[place]?.recovery = time
        }
        // A component that is no longer at fault has recovered, also if the next suspect is nearer.
        let isNearer =
            isAtFault != false
            && (subject.distance < former.subject.distance || former.kind == .fault && key.kind == .flapping)
        if isAtFault == true || isNearer { members[place]?.recovery = nil }
        // The outage of a target that has flapped begins at the end of the flapping.
        let began = former.kind == .flapping && key.kind == .fault ? entries[member.slot]?.began : nil
        let end = began.map { max($0, member.first) } ?? now
        leave(place, isAtFault == true || isNearer ? .merged(member.id, now) : .over(end))
        members[place]?.slot = slot
        members[place]?.counted = cause
        schedule(place)
    }

    /// Returns the component that the last failure of a flapping target that is up has proved to be at fault; `nil` if there is none.
    private func flappingComponent(of member: Member) -> IncidentSuspects.Suspect? {
        guard member.isFlapping, let endpoint = member.endpoint else { return nil }
        return IncidentSuspects(member.cause, of: endpoint, .unreachable).shared.first { $0.isProved }
    }

    private mutating func enter(_ key: Key, _ place: Int, _ cause: CauseKey) -> Int {
        guard let member = members[place] else { return -1 }
        let began = key.kind == .flapping || key.subject.kind == .target ? member.first : max(member.first, member.explained)
        let slot = current[key] ?? addEntry(key, cause, member.cause, at: began)
        add(1, cause, member.cause, to: slot)
        if let entry = entries[slot] {
            if entry.id == nil { entries[slot]?.began = min(entry.began, began) }
            entries[slot]?.closeAfter = max(entry.closeAfter, member.closeAfter)
        }
        if hasMembers { entries[slot]?.members.insert(member.id.number) }
        if let endpoint = member.endpoint { list([endpoint], in: slot) }
        if member.slot < 0 {
            members[place]?.counted = cause
            members[place]?.slot = slot
            schedule(place)
        }
        touch(slot)
        return slot
    }

    /// Sets the time at which a member opens its pending incident.
    private mutating func schedule(_ place: Int) {
        guard let member = members[place], member.slot >= 0 else { return }
        openings.set(place, due: entries[member.slot]?.id == nil && member.recovery == nil ? member.opening : nil)
    }

    private mutating func list(_ targets: [Endpoint], in slot: Int) {
        guard let known = entries[slot]?.targets, known.count < Incident.listedTargets else { return }
        entries[slot]?.targets += targets.filter { !known.contains($0) }.prefix(Incident.listedTargets - known.count)
    }

    private mutating func add(_ count: Int, _ key: CauseKey, _ cause: Cause, to slot: Int) {
        guard var entry = entries[slot] else { return }
        // Otherwise its arrays were copied.
        entries[slot] = nil
        if entry.failing == 0 {
            entry.end = nil
            closings.set(slot, due: nil)
        }
        entry.failing += count
        entry.count = max(entry.count, entry.failing)
        if let index = entry.causes.firstIndex(where: { $0.key == key }) {
            entry.causes[index].count += count
        } else {
            entry.causes.append((key, cause, count))
        }
        entry.choosePresent()
        entries[slot] = entry
    }

    /// Counts a member under its present cause.
    private mutating func recount(_ place: Int, as key: CauseKey) {
        guard let member = members[place], var entry = entries[member.slot] else { return }
        entries[member.slot] = nil
        if let counted = member.counted, counted != key {
            entry.removeCause(1, counted)
            if let index = entry.causes.firstIndex(where: { $0.key == key }) {
                entry.causes[index].count += 1
            } else {
                entry.causes.append((key, member.cause, 1))
            }
        } else if let index = entry.causes.firstIndex(where: { $0.key == key }), entry.causes[index].count == 1 {
            entry.causes[index].cause = member.cause
        }
        entry.choosePresent()
        entry.closeAfter = max(entry.closeAfter, member.closeAfter)
        entries[member.slot] = entry
        members[place]?.counted = key
        schedule(place)
        touch(member.slot)
    }

    private mutating func leave(_ place: Int, _ end: End) {
        guard let member = members[place], member.slot >= 0, let counted = member.counted else { return }
        openings.set(place, due: nil)
        release(1, counted, from: member.slot, end)
    }

    private mutating func release(_ count: Int, _ cause: CauseKey, from slot: Int, _ end: End) {
        entries[slot]?.failing -= count
        entries[slot]?.removeCause(count, cause)
        // The last targets that recover do not rename what most of them had.
        if let entry = entries[slot], entry.failing * 2 > entry.count { entries[slot]?.choosePresent() }
        if entries[slot]?.failing == 0 {
            guard entries[slot]?.id != nil else { return discard(slot) }
            entries[slot]?.end = end
        }
        touch(slot)
    }

    // MARK: Continuity

    /// The time for which an incident of an earlier process stays open while there are no targets, in nanoseconds.
    static let patience: Int64 = 86_400_000_000_000

    /// Continues incidents of an earlier process. One whose targets are gone ends, or waits for others for ``patience``.
    mutating func restore(_ open: [OpenIncident], at now: Moment) {
        for restored in open {
            let incident = restored.incident
            let key = Key(subject: incident.subject, kind: incident.kind)
            let cause = CauseKey(layer: incident.cause.layer, code: incident.cause.code, scope: incident.scope)
            let age = now.wallClockNanoseconds.subtractingReportingOverflow(incident.began.wallClockNanoseconds).partialValue
            var entry = Entry(key: key, began: now.advanced(by: .nanoseconds(-max(0, age))), present: (cause, incident.cause))
            (entry.id, entry.targets, entry.count) = (incident.id, incident.targets, incident.targetCount)
            // Earlier versions had several incidents of one component.
            let known = current[key] == nil ? restored.targets.map { TargetID($0) } : []
            let targets = known.filter { places[$0] == nil }
            if hasMembers { entry.members = TargetSet(targets.map(\.number)) }
            entry.published = (entry.count, entry.members.count, cause, key.subject)
            let waits = targets.isEmpty && restored.waits && current[key] == nil
            if targets.isEmpty { entry.end = current[key] == nil ? .removed(now) : .over(now) }
            let slot = store(entry)
            if current[key] == nil { current[key] = slot }
            for id in targets { presume(id, in: slot, cause) }
            hold(key, by: targets)
            if waits {
                closings.set(slot, due: now.monotonicNanoseconds.addingSaturated(Self.patience))
            } else {
                touch(slot)
            }
        }
    }

    /// Presumes that a component is still at fault.
    private mutating func hold(_ key: Key, by targets: [TargetID]) {
        guard key.kind == .fault, key.subject.kind != .target, !targets.isEmpty else { return }
        var found = accused[key.subject] ?? Accused()
        (found.isHeld, found.isAtFault) = (true, true)
        found.supporters.formUnion(targets)
        if key.subject.kind == .host { found.address = key.subject.name.flatMap { IPAddress($0) } }
        if key.subject.kind == .resolver { resolvers.insert(key.subject) }
        accused[key.subject] = found
    }

    private mutating func presume(_ id: TargetID, in slot: Int, _ cause: CauseKey) {
        guard let entry = entries[slot] else { return }
        var member = Member(
            id: id, endpoint: nil, cause: entry.present.cause, suspects: nil, first: entry.began, explained: entry.began,
            opening: .min, closeAfter: 0, isFlapping: entry.key.kind == .flapping)
        (member.isPresumed, member.slot, member.counted) = (true, slot, cause)
        places[id] = members.count
        members.append(member)
        add(1, cause, entry.present.cause, to: slot)
    }

    /// Gives the place of a target to another one, which replaces it with other settings and is presumed to fail as it did.
    mutating func replace(_ id: TargetID, by other: TargetID) {
        if let address = answering.removeValue(forKey: id) { answering[other] = address }
        if let cause = lastFailures.removeValue(forKey: id) { lastFailures[other] = cause }
        settled[id] = nil
        guard let place = places.removeValue(forKey: id), let member = members[place] else { return }
        places[other] = place
        members[place]?.id = other
        members[place]?.isPresumed = true
        for suspect in member.suspects?.shared ?? [] where accused[suspect.subject]?.supporters.remove(id) != nil {
            accused[suspect.subject]?.supporters.insert(other)
            if accused[suspect.subject]?.unanswered.remove(id) != nil { accused[suspect.subject]?.unanswered.insert(other) }
        }
        if hasMembers { entries[member.slot]?.members.insert(other.number) }
        for slot in changed {
            if case .merged(id, let moment)? = entries[slot]?.end { entries[slot]?.end = .merged(other, moment) }
        }
    }

    // MARK: Limits of this process

    /// Opens an incident of this process's limits, which delay the probes of targets. Their updates do not show it.
    ///
    /// - Parameters:
    ///   - cause: the limit.
    ///   - targets: the first targets that wait.
    ///   - waiting: all targets that wait.
    ///   - now: the time at which they began to wait.
    mutating func beginShortage(_ cause: Cause, of targets: [Endpoint], waiting: [TargetID], at now: Moment) {
        guard shortage == nil else { return }
        let count = max(waiting.count, 1)
        let causeKey = CauseKey(layer: cause.layer, code: cause.code, scope: .local)
        let key = Key(subject: .init(.interface, nil), kind: .fault)
        let slot = current[key] ?? addEntry(key, causeKey, cause, at: now)
        add(count, causeKey, cause, to: slot)
        if hasMembers { entries[slot]?.members.formUnion(TargetSet(waiting.map(\.number))) }
        list(targets, in: slot)
        shortage = (slot, count, causeKey)
        open(slot)
        touch(slot)
    }

    /// Ends the incident of this process's limits.
    mutating func endShortage(at now: Moment) {
        guard let (slot, count, cause) = shortage else { return }
        shortage = nil
        release(count, cause, from: slot, .over(now))
    }

    // MARK: Incidents

    private mutating func addEntry(_ key: Key, _ causeKey: CauseKey, _ cause: Cause, at began: Moment) -> Int {
        let slot = store(Entry(key: key, began: began, present: (causeKey, cause)))
        current[key] = slot
        return slot
    }

    private mutating func store(_ entry: Entry) -> Int {
        let slot: Int
        if let reused = freeEntries.popLast() {
            slot = reused
            entries[slot] = entry
        } else {
            slot = entries.count
            entries.append(entry)
        }
        return slot
    }

    private mutating func discard(_ slot: Int) {
        guard let entry = entries[slot] else { return }
        if entry.isDeferred { deferredCount -= 1 }
        if current[entry.key] == slot { current[entry.key] = nil }
        closings.set(slot, due: nil)
        entries[slot] = nil
        freeEntries.append(slot)
    }

    private mutating func open(_ slot: Int) {
        guard let entry = entries[slot], entry.id == nil else { return }
        // The time makes the identifier unique in a history that several processes write.
        entries[slot]?.id = "\(entry.began.wallClockNanoseconds / 1_000_000)-\(nextNumber)"
        nextNumber += 1
    }

    /// Notes that an incident may have something to publish.
    private mutating func touch(_ slot: Int) {
        guard let entry = entries[slot], entry.id != nil, !entry.isChanged else { return }
        if entry.end == nil, entry.isThrottled {
            guard entry.hasNews, !entry.isDeferred else { return }
            entries[slot]?.isDeferred = true
            deferredCount += 1
        } else if entry.end != nil || entry.hasNews {
            entries[slot]?.isChanged = true
            changed.append(slot)
        }
    }

    // MARK: Publication

    /// Returns the incidents that have opened or ended, or have changed and may be published again. One that is merged follows the other.
    mutating func takeChanges(at now: Moment) -> [Incident] {
        let time = now.monotonicNanoseconds
        endThrottles(at: time)
        while let place = openings.takeDue(at: time) {
            guard let slot = members[place]?.slot else { continue }
            open(slot)
            touch(slot)
        }
        var incidents: [Incident] = []
        while let slot = closings.takeDue(at: time) { finish(slot, at: now, &incidents) }
        guard !changed.isEmpty else { return incidents }
        let slots = changed
        changed.removeAll(keepingCapacity: slots.count <= 1_024)
        var merged: [(slot: Int, heir: TargetID)] = []
        for slot in slots {
            guard let entry = entries[slot], entry.isChanged else { continue }
            entries[slot]?.isChanged = false
            switch entry.end {
            case nil: if entry.hasNews, !entry.isThrottled { publish(slot, at: now, &incidents) }
            case .over(let end)? where entry.closeAfter > 0 && entry.key.kind == .fault:
                closings.set(slot, due: end.monotonicNanoseconds.addingSaturated(entry.closeAfter))
            case .over?, .removed?: finish(slot, at: now, &incidents)
            case .merged(let heir, _)?: merged.append((slot, heir))
            }
        }
        for (slot, heir) in merged {
            let other = places[heir].flatMap { members[$0]?.slot }
            if let other {
                // Readers know the fault already, so that the other incident opens at once.
                open(other)
                if entries[other]?.published == nil {
                    entries[other]?.isChanged = false
                    publish(other, at: now, &incidents)
                }
            }
            finish(slot, into: other.flatMap { entries[$0]?.id }, at: now, &incidents)
        }
        return incidents
    }

    private mutating func publish(_ slot: Int, at now: Moment, _ incidents: inout [Incident]) {
        guard let entry = entries[slot], let id = entry.id else { return }
        incidents.append(incident(entry, id, .open, ended: nil, at: now))
        entries[slot]?.published = (entry.count, entry.members.count, entry.present.key, entry.key.subject)
        entries[slot]?.isThrottled = true
        let due = now.monotonicNanoseconds.addingSaturated(Self.publicationGap)
        throttled.append(Throttle(slot: slot, id: id, due: due))
    }

    /// Publishes the end of an incident. - Parameter into: the incident with which it is merged.
    private mutating func finish(_ slot: Int, into: String? = nil, at now: Moment, _ incidents: inout [Incident]) {
        guard let entry = entries[slot], let id = entry.id, let end = entry.end else { return }
        if entry.published != nil {
            switch end {
            case .over(let moment): incidents.append(incident(entry, id, .over, ended: moment, at: now))
            case .removed(let moment): incidents.append(incident(entry, id, .removed, ended: moment, at: now))
            case .merged(_, let moment):
                let state: Incident.State = into == nil ? .over : .merged
                incidents.append(incident(entry, id, state, into: into, ended: moment, at: now))
            }
        }
        discard(slot)
    }

    /// Permits the publication of incidents that were published ``publicationGap`` ago.
    private mutating func endThrottles(at now: Int64) {
        while firstThrottled < throttled.count, throttled[firstThrottled].due <= now {
            let throttle = throttled[firstThrottled]
            firstThrottled += 1
            guard let entry = entries[throttle.slot], entry.id == throttle.id else { continue }
            entries[throttle.slot]?.isThrottled = false
            guard entry.isDeferred else { continue }
            entries[throttle.slot]?.isDeferred = false
            deferredCount -= 1
            touch(throttle.slot)
        }
        guard firstThrottled > 64, firstThrottled * 2 > throttled.count else { return }
        throttled.removeFirst(firstThrottled)
        firstThrottled = 0
    }

    private func incident(
        _ entry: Entry, _ id: String, _ state: Incident.State, into: String? = nil, ended: Moment?, at now: Moment
    ) -> Incident {
        Incident(
            id: id, kind: entry.key.kind, state: state, into: into, scope: entry.present.key.scope, subject: entry.key.subject,
            cause: entry.present.cause, targetCount: entry.count, targets: entry.targets, members: entry.members,
            began: entry.began, ended: ended, moment: now)
    }
}

extension IncidentBook.Timing {
    /// Creates the times of a target's settings.
    init(_ settings: ProbeSettings?) {
        self.init(
            openAfter: settings?.openAfter.saturatingNanoseconds ?? 0, closeAfter: settings?.closeAfter.saturatingNanoseconds ?? 0
        )
    }
}

extension StatusName {
    /// Whether the server does not answer as it should.
    fileprivate var isFailing: Bool { self == .down || self == .unreachable }
}

extension ProbeReport {
    /// The time at which the probe began, in nanoseconds, or later by the time that a server took for TLS and HTTP.
    var began: Int64 {
        let time = (resolution ?? .zero) + (connection ?? .zero)
        return moment.monotonicNanoseconds.addingSaturated(-time.saturatingNanoseconds)
    }
}

extension Cause {
    /// Whether a name server, or the lack of one, has failed to resolve the name.
    fileprivate var isOfResolver: Bool {
        isOfLookup && [.noResolver, .resolverRefused, .resolverSilent, .serverFailure].contains(code)
    }

    /// The cause of a target whose probes succeed and fail in turn, and whose status has not changed.
    fileprivate static func flapping(_ endpoint: Endpoint) -> Cause {
        Cause(.quality, .loss, detail: "probes of \(endpoint.text) succeed and fail in turn")
    }
}
