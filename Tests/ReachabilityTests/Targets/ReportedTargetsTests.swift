import Expectations
import Testing

@testable import Reachability

/// The jobs of a monitor together: their first states, their reports, and what is known of them when one takes the place of another.
@Suite struct ReportedTargetsTests {
    private static func moment(_ seconds: Int64) -> Moment {
        Moment(monotonicNanoseconds: seconds * 1_000_000_000, wallClockNanoseconds: (1_785_672_000 + seconds) * 1_000_000_000)
    }

    private static func settings(every seconds: Int64) -> ProbeSettings {
        var settings = ProbeSettings()
        (settings.heartbeat.every, settings.heartbeat.grace) = (.seconds(seconds), .zero)
        return settings
    }

    private static func lines(_ effects: [MonitorMachine.Effect]) -> [String] {
        effects.compactMap { effect in
            guard case .emit(.server(let id, let update)) = effect else { return nil }
            return "\(id.number) \(update.endpoint) \(update.statusName.rawValue)" + (update.isInitial ? " first" : "")
        }
    }

    private static let (one, two) = (TargetID(1), TargetID(2))

    private static func endpoint(_ name: String) throws -> Endpoint { try Endpoint("heartbeat:\(name)") }

    @Test func `jobs begin in the next turn, and each has its own reports and times`() throws {
        var jobs = ReportedTargets(remembering: HeartbeatMemories())
        try jobs.add(Self.one, Self.endpoint("a"), Self.settings(every: 10), at: Self.moment(0))
        try jobs.add(Self.two, Self.endpoint("b"), Self.settings(every: 20), at: Self.moment(0))
        try jobs.add(Self.two, Self.endpoint("c"), Self.settings(every: 20), at: Self.moment(0))
        expectEqual(jobs.deadline, .min)
        expectEqual(Self.lines(jobs.turn(at: Self.moment(0))), ["1 heartbeat:a unknown first", "2 heartbeat:b unknown first"])
        expectEqual(jobs.deadline, Self.moment(10).monotonicNanoseconds)
        expectEqual(
            Self.lines(jobs.receive(HeartbeatReport(.succeeded), for: Self.two, at: Self.moment(5))), ["2 heartbeat:b up"])
        expectEqual(Self.lines(jobs.turn(at: Self.moment(10))), ["1 heartbeat:a down"])
        expectEqual(Self.lines(jobs.turn(at: Self.moment(25))), ["2 heartbeat:b down"])
        expectNil(jobs.deadline)
        expectEqual(jobs.receive(HeartbeatReport(.succeeded), for: TargetID(9), at: Self.moment(26)), [])
        expectEqual(jobs.settings(of: Self.two)?.heartbeat.every, .seconds(20))
        #expect(jobs.count == 2 && jobs.settings(of: TargetID(9)) == nil)
    }

    @Test func `a report before the first turn follows the first state`() throws {
        var jobs = ReportedTargets(remembering: HeartbeatMemories())
        try jobs.add(Self.one, Self.endpoint("a"), Self.settings(every: 10), at: Self.moment(0))
        let lines = Self.lines(jobs.receive(HeartbeatReport(.succeeded), for: Self.one, at: Self.moment(0)))
        expectEqual(lines, ["1 heartbeat:a unknown first", "1 heartbeat:a up"])
        expectEqual(Self.lines(jobs.turn(at: Self.moment(0))), [])
    }

    @Test func `a job with other settings continues, one that was removed does not, and its number may be used again`() throws {
        var jobs = ReportedTargets(remembering: HeartbeatMemories())
        try jobs.add(Self.one, Self.endpoint("a"), Self.settings(every: 100), at: Self.moment(0))
        _ = jobs.receive(HeartbeatReport(.failed(code: 1)), for: Self.one, at: Self.moment(1))
        jobs.replace(Self.one, by: Self.two, at: Self.moment(2))
        jobs.remove(Self.one)
        try jobs.add(Self.two, Self.endpoint("A"), Self.settings(every: 10), at: Self.moment(2))
        expectEqual(Self.lines(jobs.turn(at: Self.moment(2))), ["2 heartbeat:A down first"])
        // The web server has the former number for some milliseconds.
        expectEqual(
            Self.lines(jobs.receive(HeartbeatReport(.succeeded), for: Self.one, at: Self.moment(3))), ["2 heartbeat:A up"])
        expectEqual(Self.lines(jobs.turn(at: Self.moment(13))), ["2 heartbeat:A down"])
        jobs.remove(Self.two)
        try jobs.add(TargetID(3), Self.endpoint("a"), Self.settings(every: 10), at: Self.moment(14))
        expectEqual(Self.lines(jobs.turn(at: Self.moment(14))), ["3 heartbeat:a unknown first"])
    }

    @Test func `a job with another name is another job`() throws {
        var jobs = ReportedTargets(remembering: HeartbeatMemories())
        try jobs.add(Self.one, Self.endpoint("a"), Self.settings(every: 10), at: Self.moment(0))
        _ = jobs.receive(HeartbeatReport(.succeeded), for: Self.one, at: Self.moment(1))
        jobs.replace(Self.one, by: Self.two, at: Self.moment(2))
        jobs.remove(Self.one)
        try jobs.add(Self.two, Self.endpoint("b"), Self.settings(every: 10), at: Self.moment(2))
        expectEqual(Self.lines(jobs.turn(at: Self.moment(2))), ["2 heartbeat:b unknown first"])
    }

    @Test func `each of two targets of a name has its own memory, and what is known is returned once`() throws {
        func settings(_ byte: UInt8) -> ProbeSettings {
            var settings = Self.settings(every: 1_000)
            settings.heartbeat.tokenDigest = [byte]
            return settings
        }
        var jobs = ReportedTargets(remembering: HeartbeatMemories())
        try jobs.add(Self.one, Self.endpoint("a"), settings(1), at: Self.moment(0))
        try jobs.add(Self.two, Self.endpoint("a"), settings(0xab), at: Self.moment(0))
        _ = jobs.receive(HeartbeatReport(.failed(code: 1)), for: Self.one, at: Self.moment(1))
        let known = jobs.takeChanges(at: Self.moment(2))
        expectEqual(Set(known.keys.map(\.token)), ["01", "ab"])
        expectEqual(jobs.takeChanges(at: Self.moment(2)), [:])
        let absence = Self.moment(3).wallClockNanoseconds
        var next = ReportedTargets(remembering: HeartbeatMemories(known, absentSince: absence))
        try next.add(Self.one, Self.endpoint("a"), settings(0xab), at: Self.moment(4))
        try next.add(Self.two, Self.endpoint("a"), settings(1), at: Self.moment(4))
        expectEqual(Self.lines(next.turn(at: Self.moment(4))), ["1 heartbeat:a unknown first", "2 heartbeat:a down first"])
        // With another token, only a name that one job has is enough.
        try next.add(TargetID(3), Self.endpoint("a"), settings(7), at: Self.moment(4))
        expectEqual(Self.lines(next.turn(at: Self.moment(4))), ["3 heartbeat:a unknown first"])
    }

    @Test func `the monitor publishes the path before the first states of jobs, and incidents name jobs`() throws {
        var machine = MonitorMachine(MonitorConfiguration())
        _ = machine.handle(.targetAdded(Self.one, try Self.endpoint("a"), Self.settings(every: 10)), at: Self.moment(0))
        expectEqual(Self.lines(machine.handle(.turnEnded, at: Self.moment(0))), [])
        #expect(machine.targetCount == 1 && machine.deadline != .min)
    }
}
