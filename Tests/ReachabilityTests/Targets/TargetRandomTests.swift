import Expectations
import Testing

@testable import Reachability

/// A kernel, a resolver and servers that act at random, and complain if the machine breaks a rule.
private struct Model {
    var dice: Dice
    var machine: TargetMachine
    var host = Transcript.Host()
    var now: Int64 = 0

    private var attempts: [UInt64: ProbeAttempt] = [:]
    private var used: Set<UInt64> = []
    private var lookup: UInt64?
    private var questions: [RouteQuery] = []
    private var neighbors: [Neighbor.Key] = []
    private var hosts: [HopBook.Request] = []
    private var searches: [WitnessBook.Request] = []
    /// The interface over which a packet to each address leaves, by the last answer that the machine received. 0 if there is
    /// none.
    private var exits: [IPAddress: UInt32] = [:]
    private(set) var published: ServerUpdate?
    private var lastReport: ProbeReport?
    private var attemptsSinceSuccess = 0
    /// Whether the local state has changed since the routes were asked.
    private var hasUncheckedChange = false
    private(set) var complaints: [String] = []
    private(set) var states: [StatusName: Int] = [:]

    init(seed: UInt64) throws {
        dice = Dice(state: seed)
        let isNamed = dice.chance(50)
        var settings = ProbeSettings(
            interval: .milliseconds(Int64(dice.below(3000)) + 100), timeout: .milliseconds(Int64(dice.below(3000)) + 100),
            failAfter: dice.below(3) + 1, recoverAfter: dice.below(3) + 1, interface: dice.chance(20) ? "eth0" : nil)
        settings.countsConfirmations = dice.chance(50)
        if dice.chance(30) { settings.addresses = .each }
        machine = TargetMachine(
            id: TargetID(0), endpoint: try Endpoint(isNamed ? "server.example:443" : "192.0.2.1:443"), settings: settings,
            firstNumber: 1)
        play(.begin)
    }

    mutating func step() {
        switch dice.below(100) {
        case 0..<12:
            if let due = machine.deadline { now = max(now, due) }
            play(.tick)
        case 12..<45:
            // The kernel answers most queries at once.
            repeat {
                guard !questions.isEmpty else { return }
                answer(questions.remove(at: dice.below(questions.count)))
            } while dice.chance(80)
        case 45..<70:
            guard let id = attempts.keys.sorted().first(where: { _ in dice.chance(70) }) else { return }
            attempts[id] = nil
            now += Int64(dice.below(40_000_000))
            play(.probe(result(of: id)))
        case 70..<88:
            guard let id = lookup else { return }
            lookup = nil
            now += Int64(dice.below(dice.chance(90) ? 60_000_000 : 1_500_000_000))
            play(.lookup(found(id)))
        case 88..<91:
            guard let key = neighbors.popLast() else { return }
            let states: [Neighbor.State] = [.failed, .incomplete, .reachable, .stale]
            let answers = [.unknown, .absent] + states.map { NeighborAnswer.state($0) }
            play(.neighbor(key, answers[dice.below(answers.count)]))
        case 91 where !searches.isEmpty:
            let request = searches.removeFirst()
            let router = WitnessBook.Witness(kind: .router, address: IPAddress(v4: 0x0a00_0101), distance: 2, time: now)
            play(
                .searched(
                    request.hop, WitnessBook.State(witness: dice.chance(50) ? router : nil, emptySearches: dice.below(5))))
        case 91..<94:
            guard let request = hosts.popLast() else { return }
            let outcomes: [HostReply.Outcome] = [.answered, .silent, .silent, .reported, .refused]
            let reply = HostReply(outcomes[dice.below(outcomes.count)], errno: dice.chance(50) ? 1 : 111)
            let state = HopBook.State(isAlive: reply.outcome == .answered, reply: reply, hasAnswered: dice.chance(50))
            play(.host(request.query.host, state))
        case 94:
            changeHost()
            play(.localStateChanged)
        case 95:
            play(.resumed)
        case 96:
            now += Int64(dice.below(2_000_000_000))
        case 97:
            // An answer for another machine, or a very late one.
            let id = UInt64(dice.below(50))
            guard attempts[id] == nil, lookup != id else { return }
            play(dice.chance(50) ? .probe(result(of: id)) : .lookup(found(id)))
        default:
            play(.tick)
        }
    }

    private mutating func changeHost() {
        let levels: [LinkLevel] = [.off, .noCarrier, .dormant, .carrier] + [LinkLevel](repeating: .routable, count: 12)
        for index in [2, 3] as [UInt32] { host.levels[index] = levels[dice.below(levels.count)] }
        host.names[2] = dice.chance(97) ? "eth0" : nil
        host.pathCause = dice.chance(70) ? nil : Cause(dice.chance(50) ? .link : .route, .noCarrier, detail: "")
        host.hasResolver = dice.chance(90)
    }

    private mutating func answer(_ query: RouteQuery) {
        let refusals: [SystemErrorNumber] = [.networkUnreachable, .hostUnreachable, .accessDenied, .invalid]
        let interface: UInt32 = query.interface != 0 ? query.interface : dice.chance(90) ? 2 : 3
        if dice.chance(4) { return play(.route(query, .unanswered)) }
        guard dice.chance(93) else {
            exits[query.destination] = 0
            return play(.route(query, .refused(errno: refusals[dice.below(refusals.count)].rawValue)))
        }
        exits[query.destination] = interface
        let gateway = dice.chance(70) ? IPAddress(v4: 0x0a00_0001) : nil
        play(.route(query, .route(ChosenRoute(interface: interface, gateway: gateway, source: IPAddress(v4: 0x0a00_0002)))))
    }

    private mutating func result(of id: UInt64) -> ProbeResult {
        if dice.chance(80) { return ProbeResult(id: id, roundTripNanoseconds: Int64(dice.below(9_000_000))) }
        let number = SystemErrorNumber.allCases[dice.below(SystemErrorNumber.allCases.count)].rawValue
        let offenders = [IPAddress(v4: 0x0a00_0002), IPAddress(v4: 0xcb00_7109), nil]
        let reporter = ProbeResult.Reporter(
            origin: UInt8(dice.below(4)), type: UInt8(dice.below(14)), code: UInt8(dice.below(16)),
            offender: offenders[dice.below(3)])
        let calls = ["socket", "setsockopt", "connect", "handshake", "handshake"]
        return ProbeResult(
            id: id, errno: number, call: calls[dice.below(calls.count)], reporter: dice.chance(50) ? reporter : nil)
    }

    private mutating func found(_ id: UInt64) -> LookupAnswer {
        let codes: [Int32] = [-2, -3, -4, -5, -9, -10, -11, 1]
        if dice.chance(15) {
            return LookupAnswer(
                id: id, code: codes[dice.below(codes.count)], elapsedNanoseconds: Int64(dice.below(2_000_000_000)))
        }
        let addresses = (0..<dice.below(7)).map { _ in
            dice.chance(50)
                ? IPAddress(v4: 0xc000_0200 + UInt32(dice.below(5))) : IPAddress(v6: 0x2001_0db8_0000_0000, UInt64(dice.below(5)))
        }
        return LookupAnswer(id: id, addresses: addresses)
    }

    // MARK: Rules

    private mutating func play(_ event: TargetMachine.Event) {
        if event == .localStateChanged { hasUncheckedChange = true }
        let effects = machine.handle(
            event, in: host.localState, at: Moment(monotonicNanoseconds: now, wallClockNanoseconds: now))
        for effect in effects { take(effect) }
        expect(attempts.count <= 23, "at most 20 attempts of a probe and three of a survey are under way")
        expect(Set(machine.runningAttempts) == Set(attempts.keys), "the machine knows its attempts")
        expect(machine.deadline != nil, "the machine always has a deadline")
        if case .tick = event, effects.isEmpty, let due = machine.deadline {
            expect(due > now, "a tick without effect is not due again at once")
        }
    }

    private mutating func take(_ effect: TargetMachine.Effect) {
        switch effect {
        case .resolve(let request):
            expect(used.insert(request.id).inserted, "numbers are not used twice")
            let others = machine.surveyAttempts
            expect(Set(attempts.keys).isSubset(of: others), "nothing is resolved while a probe's attempts are under way")
            lookup = request.id
        case .askRoute(let query):
            hasUncheckedChange = false
            if !questions.contains(query) { questions.append(query) }
        case .connect(let attempt):
            expect(used.insert(attempt.id).inserted, "numbers are not used twice")
            let exit = exits[attempt.address, default: 0]
            let isDead = exit == 0 || (host.names[exit] != nil && (host.levels[exit] ?? .off) <= .dormant)
            // A change of a moment ago is about to be checked.
            expect(!isDead || hasUncheckedChange || !questions.isEmpty, "nothing is sent where there is no path")
            attempts[attempt.id] = attempt
            attemptsSinceSuccess += 1
        case .cancel(let id):
            expect(attempts.removeValue(forKey: id) != nil, "only attempts under way are canceled")
        case .askNeighbor(let key):
            neighbors.append(key)
            if neighbors.count > 8 { neighbors.removeFirst() }
        case .askHost(let request):
            hosts.append(request)
            if hosts.count > 8 { hosts.removeFirst() }
        case .search(let request):
            searches.append(request)
            if searches.count > 8 { searches.removeFirst() }
        case .readCounters, .noteAlive, .note: break
        case .report(let report):
            expect((report.roundTrip != nil) == (report.cause == nil), "a round trip or a cause")
            lastReport = report
            if report.succeeded { attemptsSinceSuccess = 0 }
        case .publish(let update):
            judge(update)
            states[update.statusName, default: 0] += 1
            published = update
        }
    }

    private func isEquivalent(_ one: ServerUpdate, _ other: ServerUpdate) -> Bool {
        one.statusName == other.statusName && one.isFlapping == other.isFlapping && one.cause?.layer == other.cause?.layer
            && one.pending?.name == other.pending?.name
            && one.cause?.code == other.cause?.code && one.address == other.address
            && one.interface?.index == other.interface?.index && one.interface?.name == other.interface?.name
            && one.interface?.type == other.interface?.type && one.addresses.count == other.addresses.count
            && zip(one.addresses, other.addresses).allSatisfy { $0.isSame(as: $1) }
    }

    private mutating func judge(_ update: ServerUpdate) {
        expect(update.isInitial == (published == nil), "the first update is the initial one")
        if let published { expect(!isEquivalent(published, update), "an update says something new") }
        expect(update.statusMoment <= update.moment, "a state does not begin in the future")
        for address in update.addresses {
            expect(address.since <= update.moment, "the state of an address does not begin in the future")
            expect((address.statusName == .down) == (address.cause != nil), "an address that is down has a cause")
        }
        let isFailing = update.statusName == .down || update.statusName == .unreachable
        expect(update.pending == nil || !isFailing, "a failing target has no pending failure")
        expect((update.failingSince != nil) == (update.pending != nil || isFailing), "a failure has a beginning")
        switch update.statusName {
        case .unknown:
            expect(
                update.cause == nil && published?.statusName ?? .unknown == .unknown
                    || published?.cause?.isDeterminedHere == true,
                "unknown follows nothing else")
        case .degraded: expect(update.cause != nil && update.roundTrip != nil, "degraded has a cause and a round trip")
        case .up:
            expect(update.cause == nil && update.roundTrip != nil && update.address != nil, "up has a round trip, not a cause")
        case .down:
            let layers: [Cause.Layer] = [.tcp, .network, .dns]
            expect(update.cause.map { layers.contains($0.layer) } ?? false, "down is the server's fault, or that of its name")
            let isName = update.cause?.layer == .dns
            expect(attemptsSinceSuccess > 0 || published?.statusName == .down || isName, "down rests on attempts")
            expect(lastReport?.cause == update.cause || published?.statusName == .down, "down rests on the last probe")
        case .unreachable:
            let isAnswer = [Cause.Code.refused, .reset, .nameNotFound].contains { update.cause?.code == $0 }
            let isNobody = update.cause?.evidence["answered_by"] == nil && update.cause?.code == .nameNotFound
            expect(update.cause != nil && (!isAnswer || isNobody), "unreachable is not the server's fault")
        }
    }

    private mutating func expect(_ holds: Bool, _ rule: String) {
        if !holds { complaints.append("\(rule) (at \(now) ns)") }
    }
}

/// SplitMix64: a seed gives the same numbers on every machine.
private struct Dice {
    var state: UInt64

    mutating func below(_ bound: Int) -> Int {
        state &+= 0x9e37_79b9_7f4a_7c15
        var word = state
        word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
        word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
        return Int((word ^ (word >> 31)) % UInt64(bound))
    }

    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
}

@Suite struct TargetRandomTests {
    @Test(.skippedByThreadSanitizer, arguments: 1...20 as ClosedRange<UInt64>)
    func `random events in any order break no rule of the target`(seed: UInt64) throws {
        var model = try Model(seed: seed)
        for _ in 0..<10_000 {
            model.step()
            guard model.complaints.isEmpty else { break }
        }
        expectEqual(model.complaints, [], "seed \(seed)")
        // The run must have reached these states.
        #expect((model.states[.unreachable] ?? 0) > 3 && (model.states[.up] ?? 0) > 0, "seed \(seed): \(model.states)")
    }

    @Test func `the same seed gives the same run of the target`() throws {
        var (one, other) = (try Model(seed: 99), try Model(seed: 99))
        for _ in 0..<2000 {
            one.step()
            other.step()
        }
        expectEqual(one.now, other.now)
        expectEqual(one.states, other.states)
        expectEqual(one.published, other.published)
    }
}
