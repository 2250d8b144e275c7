import Expectations
import Pacing
import Testing

@testable import Reachability

/// A fleet with a kernel that routes everything over eth0, and servers that answer after a time or never. Time passes from one deadline to
/// the next.
private struct Site {
    var fleet = Fleet()
    var snapshot = KernelSnapshot()
    var host = Transcript.Host()
    /// The answer to the route queries for which `answered` is true.
    var answer = RouteAnswer.route(
        ChosenRoute(
            interface: 2, gateway: IPAddress(v4: 0x0a00_0001), source: IPAddress(v4: 0x0a00_0002)))
    var answered: (IPAddress) -> Bool = { _ in true }
    private let open = RouteAnswer.route(
        ChosenRoute(
            interface: 2, gateway: IPAddress(v4: 0x0a00_0001), source: IPAddress(v4: 0x0a00_0002)))
    private(set) var now: Int64 = 0
    private(set) var starts: [TargetID: [Int64]] = [:]
    private(set) var states: [TargetID: StatusName] = [:]
    private(set) var paused: [TargetID: Bool] = [:]
    private(set) var routeQueries = 0
    private(set) var largestTurn = 0
    private(set) var mostRunning = 0

    /// The time until a server answers, by its address; `nil` if it never answers.
    var delay: (IPAddress) -> Int64? = { _ in 1_000_000 }
    /// The result of the levels of each connection; `nil` if there are none.
    var levels: LevelResult?
    /// Whether the levels of a connection get no answer, by the address of the server.
    var stalls: (IPAddress) -> Bool = { _ in false }
    /// The ends of the connections without an answer.
    private var stallEnds: [UInt64: Int64] = [:]
    private var running: [UInt64: (target: TargetID, due: Int64?)] = [:]
    private var pending: [(due: Int64, id: UInt64)] = []

    private var moment: Moment { Moment(monotonicNanoseconds: now, wallClockNanoseconds: now) }

    init(limit: Int = 10_000) {
        snapshot.apply(.routeAdded(Route(Route.Key(destination: IPPrefix(IPAddress(v4: 0), length: 0)))))
        fleet.setProbeLimit(limit)
        fleet.setLocalState(host.localState, at: moment)
    }

    mutating func add(
        _ numbers: Range<Int>, interval: Duration = .seconds(10), initial: Duration? = nil,
        metered: MeteredLimits = MeteredLimits(),
        scheme: String = "tcp"
    ) throws {
        var settings = ProbeSettings(interval: interval, metered: metered)
        settings.initialInterval = initial
        for number in numbers {
            let endpoint = try Endpoint("\(scheme)://192.0.\(number / 250).\(number % 250 + 1):443")
            fleet.add(TargetID(number), endpoint, settings)
        }
    }

    /// Lets time pass.
    mutating func run(for duration: Int64) {
        let end = now + duration
        while true {
            turn()
            let next = min(fleet.deadline ?? .max, pending.first?.due ?? .max)
            guard next <= end else { break }
            now = max(now + 1, next)
            while let first = pending.first, first.due <= now {
                pending.removeFirst()
                guard running[first.id] != nil else { continue }
                var result = ProbeResult(id: first.id, roundTripNanoseconds: 1_000_000)
                if let end = stallEnds.removeValue(forKey: first.id) {
                    if end > now {
                        perform(fleet.probed(result, snapshot, at: moment))
                        stallEnds[first.id] = end
                        insert(first.id, due: end)
                        continue
                    }
                    running[first.id] = nil
                    result.levels = LevelResult()
                    result.levels?.isAtDeadline = true
                    result.levels?.http = HTTPProbeFacts(response: HTTPResponseFacts())
                    result.levels?.httpEnding = .deadline
                    perform(fleet.probed(result, snapshot, at: moment))
                    continue
                }
                running[first.id] = nil
                perform(fleet.probed(result, snapshot, at: moment))
                guard let levels else { continue }
                result.levels = levels
                perform(fleet.probed(result, snapshot, at: moment))
            }
        }
        now = end
    }

    mutating func change(_ changes: [KernelChange]) {
        snapshot.apply(changes)
        fleet.apply(changes, snapshot)
        fleet.setLocalState(host.localState, at: moment)
    }

    /// The kernel reports that a neighbor is reachable.
    mutating func findNeighbor() { fleet.hurryEagerTargets(at: moment) }

    private mutating func turn() {
        let effects = fleet.turn(snapshot, at: moment)
        largestTurn = max(largestTurn, effects.count)
        perform(effects)
    }

    private mutating func insert(_ id: UInt64, due: Int64) {
        let place = pending.firstIndex { $0.due > due } ?? pending.count
        pending.insert((due, id), at: place)
    }

    private mutating func perform(_ effects: [Fleet.Effect]) {
        for effect in effects {
            switch effect {
            case .askRoute(let query):
                routeQueries += 1
                let found = answered(query.destination) ? answer : open
                perform(fleet.routeAnswered(query, found, snapshot, at: moment))
            case .askNeighbor(let key): perform(fleet.neighborAnswered(key, .unknown, snapshot, at: moment))
            case .connect(let attempt):
                let id = TargetID(owning: attempt.id)
                starts[id, default: []].append(now)
                let due = delay(attempt.address).map { now + $0 }
                running[attempt.id] = (id, due)
                mostRunning = max(mostRunning, running.count)
                if stalls(attempt.address) { stallEnds[attempt.id] = attempt.deadline }
                guard let due else { continue }
                insert(attempt.id, due: due)
            case .cancel(let attempt): running[attempt] = nil
            case .emit(.server(let id, let update)):
                states[id] = update.statusName
                paused[id] = update.isPaused
            default: break
            }
        }
    }
}

private let second: Int64 = 1_000_000_000

@Suite struct FleetTests {
    @Test func `targets begin in pieces, ask for a shared route once, and are all up`() throws {
        var site = Site()
        try site.add(0..<2_000)
        site.run(for: second)
        #expect(site.states.count == 2_000 && site.states.values.allSatisfy { $0 == .up })
        // Before the routes are shared, each of the first destinations asks for its own.
        #expect(site.routeQueries <= RouteBook.defaultGroupingLimit + 2)
        #expect(site.largestTurn <= 3 * Fleet.turnBudget)
    }

    @Test func `probes of many targets are spread over the interval, and no slot is missed`() throws {
        var site = Site()
        try site.add(0..<1_000)
        site.run(for: 40 * second)
        for number in 0..<1_000 {
            let starts = try #require(site.starts[TargetID(number)])
            #expect((4...5).contains(starts.count))
            for (earlier, later) in zip(starts.dropFirst(), starts.dropFirst(2)) {
                #expect(abs(later - earlier - 10 * second) < 20_000)
            }
        }
        let fourthSecond = site.starts.values.joined().count { (24 * second..<25 * second).contains($0) }
        #expect((95...105).contains(fourthSecond))
    }

    @Test func `1,000 silent targets leave the schedule of 1,000 good ones unchanged`() throws {
        func starts(withSilent: Bool) throws -> [TargetID: [Int64]] {
            var site = Site(limit: 400)
            try site.add(0..<1_000)
            // The silent targets have other addresses, and are added later, when the good ones have their schedule.
            site.delay = { address in address.low & 0xffff < 4 << 8 ? 1_000_000 : nil }
            site.run(for: 20 * second)
            if withSilent { try site.add(1_000..<2_000) }
            site.run(for: 60 * second)
            #expect(site.mostRunning <= 400)
            return site.starts.filter { $0.key.number < 1_000 }
        }
        let (alone, beside) = (try starts(withSilent: false), try starts(withSilent: true))
        for (id, times) in alone {
            let others = try #require(beside[id])
            expectEqual(times.count, others.count)
            #expect(zip(times, others).allSatisfy { abs($0 - $1) < 100_000 })
        }
    }

    @Test func `the loss of the route of all targets is published in the same turn, without a probe`() throws {
        var site = Site()
        try site.add(0..<500)
        site.run(for: 5 * second)
        let probes = site.starts.values.joined().count
        let queries = site.routeQueries
        site.answer = .refused(errno: SystemErrorNumber.networkUnreachable.rawValue)
        site.change([.routeRemoved(Route(Route.Key(destination: IPPrefix(IPAddress(v4: 0), length: 0))))])
        site.run(for: 0)
        #expect(site.states.values.allSatisfy { $0 == .unreachable })
        expectEqual(site.routeQueries, queries + 1)
        site.run(for: 30 * second)
        expectEqual(site.starts.values.joined().count, probes)
    }

    @Test func `when the route returns, targets are probed at a growing rate`() throws {
        var site = Site()
        try site.add(0..<1_000)
        let route = Route(Route.Key(destination: IPPrefix(IPAddress(v4: 0), length: 0)))
        let open = site.answer
        site.run(for: 5 * second)
        site.answer = .refused(errno: SystemErrorNumber.networkUnreachable.rawValue)
        site.change([.routeRemoved(route)])
        site.run(for: 60 * second)
        site.answer = open
        let back = site.now
        site.change([.routeAdded(route)])
        site.run(for: 2 * second)
        #expect(site.states.values.allSatisfy { $0 == .up })
        let probed = { (time: Int64) in site.starts.values.joined().count { (back...back + time).contains($0) } }
        expectEqual(probed(0), NoticeRamp.first + 1)
        #expect((120...140).contains(probed(NoticeRamp.doubling)))
        #expect((500...545).contains(probed(3 * NoticeRamp.doubling)))
    }

    @Test func `a change that leaves the answers unchanged notifies no target and costs at most one query a group`() throws {
        var site = Site()
        try site.add(0..<1_000)
        site.run(for: 5 * second)
        let (queries, probes) = (site.routeQueries, site.starts.values.joined().count)
        for number in 0..<40 as Range<UInt8> {
            let prefix = IPPrefix(IPAddress(v4: 0x0a09_0000 | UInt32(number)), length: 32)
            site.change([.routeAdded(Route(Route.Key(table: 255, destination: prefix)))])
            site.run(for: 25_000_000)
        }
        #expect(site.routeQueries - queries <= 41)
        #expect(site.starts.values.joined().count - probes <= 110)
    }

    @Test(arguments: [Duration?.none, .milliseconds(250)])
    func `a reachable neighbor and a change of the path hurry the probe of a target whose interval grows`(initial: Duration?)
        throws
    {
        var site = Site()
        try site.add(0..<1, interval: .seconds(1), initial: initial)
        site.run(for: 30 * second)
        for change in 0..<2 {
            let starts = site.starts[TargetID(0)] ?? []
            let last = try #require(starts.last)
            site.run(for: last + second * 2 / 5 - site.now)
            if change == 0 {
                site.findNeighbor()
            } else {
                site.change([
                    .routeAdded(Route(Route.Key(table: 255, destination: IPPrefix(IPAddress(v4: 0x0a09_0000), length: 32))))
                ])
            }
            site.run(for: 1_000_000)
            expectEqual((site.starts[TargetID(0)]?.count ?? 0) - starts.count, initial == nil ? 0 : 1)
            site.run(for: 5 * second)
        }
    }

    @Test func `the second probes of targets whose interval grows are spread`() throws {
        var site = Site()
        try site.add(0..<200, interval: .seconds(1), initial: .milliseconds(250))
        site.run(for: second)
        let seconds = site.starts.values.compactMap { $0.dropFirst().first }
        #expect(seconds.count == 200 && seconds.allSatisfy { (second / 4...second / 2 + 10_000_000).contains($0) })
        #expect((90...110).contains(seconds.count { $0 < second * 3 / 8 }))
    }

    @Test func `a removed target is neither probed nor published again`() throws {
        var site = Site()
        try site.add(0..<200)
        site.run(for: 5 * second)
        for number in 0..<200 { _ = site.fleet.remove(TargetID(number), site.snapshot) }
        let probes = site.starts.values.joined().count
        site.run(for: 30 * second)
        expectEqual(site.starts.values.joined().count, probes)
        #expect(site.fleet.count == 0 && site.fleet.deadline == nil && site.fleet.admission.total == 0)
        expectEqual(site.fleet.takeUsedInterfaces(), [])
    }

    @Test func `targets that are removed before they begin leave no work behind`() throws {
        var site = Site(limit: 16)
        try site.add(0..<600)
        site.run(for: 0)
        for number in 0..<600 { _ = site.fleet.remove(TargetID(number), site.snapshot) }
        #expect(site.fleet.count == 0 && site.fleet.deadline == nil)
    }

    @Test func `a new route that refuses some of many targets is published at once`() throws {
        var site = Site()
        try site.add(0..<500)
        site.run(for: 5 * second)
        let refused = IPPrefix(IPAddress(v4: 0xc000_0000), length: 24)
        site.answer = .refused(errno: SystemErrorNumber.hostUnreachable.rawValue)
        site.answered = { refused.contains($0) }
        site.change([.routeAdded(Route(Route.Key(destination: refused), kind: .unreachable))])
        site.run(for: 0)
        expectEqual(site.states.count { $0.value == .unreachable }, 250)
        expectEqual(site.states.count { $0.value == .up }, 250)
    }

    @Test func `with few sockets, every target has a record at once, and good ones are not delayed by silent ones`() throws {
        var site = Site(limit: 32)
        try site.add(0..<200)
        // The odd ones are silent.
        site.delay = { address in address.low % 2 == 0 ? 1_000_000 : nil }
        site.run(for: 0)
        expectEqual(site.states.count, 200)
        site.run(for: 30 * second)
        expectEqual(site.starts.count, 200)
        expectEqual(site.states.values.count { $0 == .up }, 100)
        #expect(site.mostRunning <= 32)
        let shortage = site.fleet.takeShortage()
        #expect(shortage?.isReported == true && (shortage?.waiting.count ?? 0) > 10)
        site.run(for: 90 * second)
        expectEqual(site.states.values.count { $0 == .up }, 100)
        #expect(site.states.values.allSatisfy { $0 != .unknown })
        let further = site.fleet.takeShortage()
        expectNil(further)
    }

    @Test func `with few sockets, a server that answers is up within seconds, although silent ones began before it`() throws {
        var site = Site(limit: 32)
        try site.add(0..<141)
        site.delay = { address in address.low & 255 == 141 ? 1_000_000 : nil }
        // Twenty of them at a time, for half a second each.
        site.run(for: 4 * second)
        expectEqual(site.states[TargetID(140)], .up)
        #expect(site.mostRunning <= 32)
        // Nothing is said about the silent ones before a probe has waited for its deadline.
        expectEqual(site.states.values.count { $0 == .unknown }, 140)
        site.run(for: 200 * second)
        #expect(site.states.values.allSatisfy { $0 != .unknown })
    }

    @Test func `silent TLS servers wait for handshakes, have a verdict within a minute, and are no shortage of files`() throws {
        var site = Site(limit: 8_120)
        try site.add(0..<1_000, scheme: "https")
        // Every fifth server answers. The others accept connections, and say nothing.
        site.stalls = { $0.low & 255 % 5 != 0 }
        var levels = LevelResult()
        levels.http = HTTPProbeFacts(response: HTTPResponseFacts(status: 200, version: "1.1"))
        levels.httpEnding = .exchange
        site.levels = levels
        site.run(for: 4 * second)
        expectEqual(site.states.values.count { $0 == .up }, 200)
        site.run(for: 56 * second)
        #expect(site.states.values.allSatisfy { $0 != .unknown })
        expectNil(site.fleet.takeShortage())
        #expect(site.mostRunning <= ProbeAdmission.handshakeLimit)
        // The good ones keep their schedule.
        let good = site.starts.filter { $0.key.number % 5 == 4 }.values
        #expect(good.count == 200 && good.allSatisfy { (6...7).contains($0.count) })
    }

    @Test func `http targets that are silent wait for no handshakes`() throws {
        var site = Site(limit: 8_000)
        try site.add(0..<1_000, scheme: "http")
        site.delay = { _ in nil }
        // Two probes of three seconds, and up to two intervals.
        site.run(for: 24 * second)
        #expect(site.states.values.allSatisfy { $0 != .unknown })
        #expect(site.mostRunning > 1_000)
    }

    @Test func `enough sockets again end the shortage`() throws {
        var site = Site(limit: 8)
        try site.add(0..<100)
        site.delay = { _ in nil }
        site.run(for: 10 * second)
        let began = site.fleet.takeShortage()
        expectEqual(began?.isReported, true)
        site.fleet.setProbeLimit(1_000)
        site.run(for: 20 * second)
        let ended = site.fleet.takeShortage()
        #expect(ended?.isReported == false && ended?.waiting == [])
    }

    @Test func `a removed route of a target whose probe waits for a socket is published at once`() throws {
        var site = Site(limit: 8)
        try site.add(0..<50)
        site.run(for: second)
        site.delay = { _ in nil }
        site.run(for: 60 * second)
        site.answer = .refused(errno: SystemErrorNumber.networkUnreachable.rawValue)
        site.change([.routeRemoved(Route(Route.Key(destination: IPPrefix(IPAddress(v4: 0), length: 0))))])
        site.run(for: 100_000_000)
        #expect(site.states.values.allSatisfy { $0 == .unreachable })
    }

    @Test func `probes over a metered interface keep to their budget, in turn, and no target is down for it`() throws {
        var site = Site()
        site.host.metered = [2]
        site.fleet.setLocalState(site.host.localState, at: Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 0))
        // 100 probes an hour for 50 targets, which would make 3,000.
        try site.add(0..<50, metered: MeteredLimits(bytesPerDay: 240_000))
        site.run(for: 24 * 3_600 * second)
        let counts = site.starts.values.map(\.count)
        #expect((2_400...2_600).contains(counts.reduce(0, +)))
        #expect(counts.count == 50 && counts.allSatisfy { (45...55).contains($0) })
        #expect(site.states.values.allSatisfy { $0 == .up } && site.paused.values.allSatisfy { $0 })
        expectEqual(site.fleet.admission.total, 0)
    }

    @Test func `probes of http over a metered interface keep to their budget with the bytes that they use`() throws {
        var site = Site()
        site.host.metered = [2]
        site.fleet.setLocalState(site.host.localState, at: Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 0))
        var levels = LevelResult()
        levels.http = HTTPProbeFacts(response: HTTPResponseFacts(status: 200, version: "1.1"))
        levels.httpEnding = .exchange
        (levels.bytesSent, levels.bytesReceived) = (200, 4_000)
        site.levels = levels
        // A probe uses 4,928 bytes, so that 100 probes an hour are possible.
        try site.add(0..<50, metered: MeteredLimits(bytesPerDay: 24 * 100 * 4_928), scheme: "http")
        site.run(for: 24 * 3_600 * second)
        let counts = site.starts.values.map(\.count)
        #expect((2_300...2_600).contains(counts.reduce(0, +)), "\(counts.reduce(0, +))")
        #expect(site.states.values.allSatisfy { $0 == .up } && site.paused.values.allSatisfy { $0 })
        expectEqual(site.fleet.budgets.openCount, 0)
    }

    @Test func `a budget that suffices pauses no probe`() throws {
        var site = Site()
        site.host.metered = [2]
        site.fleet.setLocalState(site.host.localState, at: Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 0))
        try site.add(0..<20)
        site.run(for: 3_600 * second)
        #expect(site.starts.values.allSatisfy { (60...61).contains($0.count) })
        #expect(!site.paused.values.contains(true))
    }
}
