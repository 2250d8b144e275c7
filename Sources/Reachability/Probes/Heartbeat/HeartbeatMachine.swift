internal import Pacing

/// The state machine of a job that reports in.
///
/// ```
///                     success                      the report of the next run is missing
///   unknown, down ──────────────▶ up ────────────────────────────────────────────────────▶ down (late)
///        │                        │
///        │ failure                │ failure: down (failed)
///        │                        │
///        └── start ──▶ running ◀──┘ ──── no end in its time, or another start ──▶ down (overrun)
/// ```
///
/// - The status is that of the last run that has ended; a start changes only the phase. While a job runs, no report of it is late.
/// - The next report is expected `every` after the last one; with `cron`, at the next time of the schedule, for which a report counts that comes up to a
///   minute early.
/// - What this process could not hear is no fault of the job. An *absence* is a time in which a report may have been missed: this process did not run, the
///   machine was suspended, or its clock was set forward. If one falls into the time in which a report is expected, the status is unknown when the report
///   would be late, and the run after the absence is awaited.
/// - Times of `cron` are those of the wall clock. Those of `every` are measured by a clock that nobody sets.
package struct HeartbeatMachine: Sendable {
    /// A request of the machine to its owner.
    enum Effect: Hashable, Sendable {
        case publish(ServerUpdate)
        case report(ProbeReport)
    }

    /// The time by which a report may be early, and by which the clock of the job's machine may be behind, in nanoseconds.
    private static let earliness: Int64 = 60_000_000_000
    /// The time for which the end of a run is awaited whose start was delivered late, in nanoseconds: its end may follow at once.
    private static let deliveryTime: Int64 = 60_000_000_000
    /// The time between two looks at the wall clock, which may be set, in nanoseconds.
    private static let clockInterval: Int64 = 60_000_000_000
    /// The change of the wall clock beside the monotonic one from which it was set, in nanoseconds.
    private static let clockStep: Int64 = 1_000_000_000
    /// The time by which a tick is late from which this process did not run, and reports may wait in its sockets, in nanoseconds.
    private static let pause: Int64 = 1_000_000_000
    /// The step of a clock that is set back from which jobs run again, as with Debian's cron, in nanoseconds.
    private static let repeatedStep: Int64 = 10_800_000_000_000

    let endpoint: Endpoint
    let settings: ProbeSettings
    private let times: HeartbeatSettings

    /// What is added to the monotonic clock for the scale of `every`: the wall clock at the start, and the time of suspends since then.
    private var origin: Int64
    /// The difference of the wall clock and the monotonic one, as last seen.
    private var clock: Int64

    // The following times are on the scale of `time(_:)`, in nanoseconds.
    /// The last report, and the end of the last run; `nil` before the first one.
    private var sign: Int64?
    private var ended: Int64?
    private var started: Int64?
    /// When the next report is expected if nothing runs, and when the present run has to end.
    private var expected: Int64
    private var end: Int64
    /// The end of an absence in the time in which the report is expected; `nil` for none.
    private var missedUntil: Int64?
    private var hasOverrun = false
    private var last: HeartbeatReport?

    private var status = StatusName.unknown
    private var cause: Cause?
    private var since: Moment
    private var failingSince: Moment?
    private var published: Published

    private struct Published: Hashable {
        var status: StatusName
        var cause: Cause?
        var isRunning: Bool
    }

    /// The time at which ``tick(at:)`` is due, on the monotonic clock in nanoseconds; `nil` for never.
    private(set) var deadline: Int64?
    private var isPostponed = false

    /// Creates a machine.
    ///
    /// - Parameters:
    ///   - endpoint: the target.
    ///   - settings: its settings, with `every` or `cron`.
    ///   - memory: what is remembered of the job; `nil` for nothing.
    ///   - absence: the time since which reports may have been missed, in nanoseconds since 1970; `nil` if none were.
    ///   - now: the present time.
    init(
        _ endpoint: Endpoint, _ settings: ProbeSettings, remembering memory: HeartbeatMemory?, absentSince absence: Int64?,
        at now: Moment
    ) {
        (self.endpoint, self.settings, times) = (endpoint, settings, settings.heartbeat)
        clock = now.wallClockNanoseconds.addingSaturated(-now.monotonicNanoseconds)
        (origin, since) = (clock, now)
        published = Published(status: .unknown, cause: nil, isRunning: false)
        (expected, end) = (0, 0)
        let present = now.wallClockNanoseconds
        expected = following(present)
        if let memory { restore(memory, absentSince: absence, at: now) }
        published = Published(status: status, cause: cause, isRunning: started != nil)
        schedule(at: now)
    }

    /// The present status, as an initial update.
    func initialUpdate(at now: Moment) -> ServerUpdate { update(isInitial: true, at: now) }

    // MARK: Memory

    /// What is to be remembered of the job.
    func memory(at now: Moment) -> HeartbeatMemory {
        let shift = now.wallClockNanoseconds.addingSaturated(-time(now))
        func wall(_ time: Int64) -> Int64 { time.addingSaturated(shift) }
        return HeartbeatMemory(
            schedule: times.schedule, status: status.rawValue, code: cause?.code.rawValue, sign: sign.map(wall),
            ended: ended.map(wall),
            started: started.map(wall), expected: wall(expected), missedUntil: missedUntil.map(wall), hasOverrun: hasOverrun,
            last: last?.remembered)
    }

    private mutating func restore(_ memory: HeartbeatMemory, absentSince absence: Int64?, at now: Moment) {
        // A clock that was set back since must not put a report into the future.
        let present = time(now)
        sign = memory.sign.map { min($0, present) }
        ended = memory.ended.map { min($0, present) }
        started = memory.started.map { min($0, present) }
        end = started.map { limit(of: $0) } ?? 0
        (last, hasOverrun) = (memory.last, memory.hasOverrun && started != nil)
        // Another schedule has other times, from now on.
        let isSame = memory.schedule == times.schedule
        if isSame { (expected, missedUntil) = (memory.expected, memory.missedUntil) }
        switch memory.code {
        case Cause.Code.late.rawValue where isSame: (status, cause) = (.down, late(at: now))
        case Cause.Code.overrun.rawValue where hasOverrun: (status, cause) = (.down, started.map { overrun($0, at: now) })
        default: if memory.status != StatusName.unknown.rawValue || !isSame { recall() }
        }
        if status == .down { failingSince = now }
        guard let absence else { return }
        note(absence: min(absence, sign ?? absence, present), present)
        // Nobody has seen another status since then.
        if missedUntil != nil, due.map({ $0 <= present }) ?? false { expire(at: present) }
    }

    /// Continues with the status of the last run that has ended.
    private mutating func recall() {
        guard let last else { return }
        if case .failed(let code) = last.kind {
            (status, cause) = (.down, failure(last, code))
        } else {
            status = .up
        }
    }

    // MARK: Events

    /// Handles a report, and returns the effects. One that was delivered after a later one has none.
    mutating func receive(_ report: HeartbeatReport, at now: Moment) -> [Effect] {
        noteClock(at: now)
        let present = time(now)
        let delay = report.time.map { max(0, now.wallClockNanoseconds.addingSaturated(-$0)) } ?? 0
        var time = present.addingSaturated(-delay)
        // The clock of the job's machine may be behind.
        if report.kind != .started, let started, time < started, started - time <= Self.earliness { time = started }
        if delay > 0, time < max(sign ?? .min, ended ?? .min) { return [] }
        defer { schedule(at: now) }
        sign = time
        switch report.kind {
        case .started: return begin(time, isDelayed: delay > 0, at: now)
        case .succeeded: return end(report, nil, .success, time, at: now)
        case .failed(let code): return end(report, failure(report, code), .failure, time, at: now)
        }
    }

    private mutating func begin(_ time: Int64, isDelayed: Bool, at now: Moment) -> [Effect] {
        let former = started
        // A client repeats a report whose answer was lost.
        if let former, time.addingSaturated(-former) <= tolerance(of: former) { return [] }
        let hadEnd = hasOverrun || missedUntil != nil
        (started, hasOverrun, missedUntil) = (time, false, nil)
        end = max(limit(of: time), isDelayed ? self.time(now).addingSaturated(Self.deliveryTime) : 0)
        guard let former, !hadEnd else { return publish(at: now) }
        // The end of the former run was never reported.
        return change(to: .down, overrun(former, at: now), HeartbeatFacts(.overrun), at: now)
    }

    private mutating func end(
        _ report: HeartbeatReport, _ cause: Cause?, _ outcome: HeartbeatFacts.Outcome, _ time: Int64, at now: Moment
    ) -> [Effect] {
        let duration = started.map { max(0, time.addingSaturated(-$0)) }
        expected = next(after: times.cron == nil ? time : started ?? time)
        // A run may be longer than the time between two.
        if expected <= time { expected = following(time) }
        (ended, started, hasOverrun, missedUntil) = (time, nil, false, nil)
        let shift = now.wallClockNanoseconds.addingSaturated(-self.time(now))
        last = HeartbeatReport(report.kind, text: report.text, time: time.addingSaturated(shift))
        var code: Int32?
        if case .failed(let number) = report.kind { code = number }
        var facts = HeartbeatFacts(outcome, code: code, text: report.text, nanoseconds: duration)
        facts.next = expected.addingSaturated(shift)
        return change(to: cause == nil ? .up : .down, cause, facts, at: now)
    }

    /// Notes that the machine was suspended for a time in nanoseconds, and heard nothing.
    mutating func resumed(after asleep: Int64, at now: Moment) -> [Effect] {
        let asleep = max(0, asleep)
        (origin, clock) = (origin.addingSaturated(asleep), clock.addingSaturated(asleep))
        noteClock(at: now)
        let present = time(now)
        note(absence: present.addingSaturated(-asleep), present)
        schedule(at: now)
        return []
    }

    /// Handles the time of ``deadline``.
    mutating func tick(at now: Moment) -> [Effect] {
        noteClock(at: now)
        if let deadline, now.monotonicNanoseconds.addingSaturated(-deadline) > Self.pause, !isPostponed {
            // The process did not run. Reports that wait in its sockets are read first.
            (self.deadline, isPostponed) = (now.monotonicNanoseconds.addingSaturated(Self.pause), true)
            return []
        }
        defer { schedule(at: now) }
        let present = time(now)
        guard let due, present >= due else { return [] }
        if missedUntil != nil {
            expire(at: present)
            (status, cause, since, failingSince) = (.unknown, nil, now, nil)
            return publish(at: now)
        }
        if let started {
            hasOverrun = true
            return change(to: .down, overrun(started, at: now), HeartbeatFacts(.overrun), at: now)
        }
        return change(to: .down, late(at: now), HeartbeatFacts(.late), at: now)
    }

    /// Ends the wait for a report that may have been missed.
    private mutating func expire(at present: Int64) {
        let heard = started == nil ? missedUntil ?? present : present
        // The run that is excused is over.
        expected = following(times.cron == nil ? heard : max(heard, expected))
        (status, cause, started, missedUntil, hasOverrun) = (.unknown, nil, nil, nil, false)
    }

    // MARK: Times

    /// The time on the scale of the schedule, in nanoseconds.
    private func time(_ now: Moment) -> Int64 {
        times.cron == nil ? now.monotonicNanoseconds.addingSaturated(origin) : now.wallClockNanoseconds
    }

    /// Notes a time in which reports may have been missed.
    private mutating func note(absence begin: Int64, _ end: Int64) {
        guard !isLate, !hasOverrun else { return }
        let isExpected =
            if started != nil {
                true
            } else if times.cron == nil {
                // The job may report earlier than it has to.
                true
            } else {
                begin <= lateness(of: expected) && end >= expected.addingSaturated(-Self.earliness)
            }
        if isExpected, due.map({ begin <= $0 }) ?? false { missedUntil = max(missedUntil ?? .min, end) }
    }

    /// Looks whether the wall clock was set.
    private mutating func noteClock(at now: Moment) {
        let present = now.wallClockNanoseconds.addingSaturated(-now.monotonicNanoseconds)
        let step = present.addingSaturated(-clock)
        clock = present
        guard times.cron != nil, abs(max(step, -.max)) > Self.clockStep else { return }
        let time = now.wallClockNanoseconds
        if step > 0 {
            note(absence: time.addingSaturated(-step), time)
        } else {
            (sign, ended, started) = (sign.map { min($0, time) }, ended.map { min($0, time) }, started.map { min($0, time) })
            if let started { end = min(end, limit(of: started)) }
            if !isLate, -max(step, -.max) > Self.repeatedStep { expected = min(expected, next(after: time)) }
            missedUntil = missedUntil.map { min($0, time) }
        }
    }

    /// Returns the first time after another one at which a report is expected; `.max` for never.
    private func following(_ time: Int64) -> Int64 {
        guard let cron = times.cron else { return time.addingSaturated(times.every?.saturatingNanoseconds ?? .max) }
        let seconds = time.floorDivided(by: 1_000_000_000).quotient
        return cron.next(after: seconds, in: times.zoneRules)?.multipliedSaturated(by: 1_000_000_000) ?? .max
    }

    /// Returns the time at which the report after one is expected, which may be early itself.
    private func next(after time: Int64) -> Int64 {
        let first = following(time)
        guard times.cron != nil, first.addingSaturated(-time) <= tolerance(of: time) else { return first }
        return following(first)
    }

    /// Returns the time by which a report at a time may be early: at most a minute, and a quarter of the time between two reports.
    private func tolerance(of time: Int64) -> Int64 {
        let first = following(time)
        let distance = times.cron == nil ? first.addingSaturated(-time) : following(first).addingSaturated(-first)
        return min(Self.earliness, distance / 4)
    }

    /// Returns the time at which a run has to end.
    private func limit(of start: Int64) -> Int64 {
        times.maxDuration.map { start.addingSaturated($0.saturatingNanoseconds) } ?? lateness(of: next(after: start))
    }

    private func lateness(of expected: Int64) -> Int64 { expected.addingSaturated(times.grace.saturatingNanoseconds) }

    /// The time of the next change without a report; `nil` for none.
    private var due: Int64? {
        if started != nil { return hasOverrun ? nil : end }
        return isLate ? nil : lateness(of: expected)
    }

    private var isLate: Bool { cause?.code == .late }

    private mutating func schedule(at now: Moment) {
        isPostponed = false
        var wait = due.map { max(0, $0.addingSaturated(-time(now))) } ?? .max
        if times.cron != nil { wait = min(wait, Self.clockInterval) }
        deadline = wait == .max ? nil : now.monotonicNanoseconds.addingSaturated(wait)
    }

    // MARK: Results

    private mutating func change(to status: StatusName, _ cause: Cause?, _ facts: HeartbeatFacts, at now: Moment) -> [Effect] {
        if self.status != status { since = now }
        failingSince = status == .down ? failingSince ?? now : nil
        (self.status, self.cause) = (status, cause)
        var report = ProbeReport(endpoint: endpoint, cause: cause, moment: now)
        var levels = LevelResult()
        levels.facts[HeartbeatFacts.self] = facts
        report.levels = levels
        return [.report(report)] + publish(at: now)
    }

    /// Publishes the state if its status, its cause or its phase has changed: a job may report each minute.
    private mutating func publish(at now: Moment) -> [Effect] {
        let state = Published(status: status, cause: cause, isRunning: started != nil)
        guard state != published else { return [] }
        published = state
        return [.publish(update(at: now))]
    }

    private func update(isInitial: Bool = false, at now: Moment) -> ServerUpdate {
        ServerUpdate(
            endpoint: endpoint, statusName: status, cause: cause, failingSince: failingSince, since: since, address: nil,
            interface: nil, roundTrip: nil, job: started == nil ? .idle : .running, isInitial: isInitial, moment: now)
    }

    private var name: String { endpoint.hostText }

    private func failure(_ report: HeartbeatReport, _ code: Int32?) -> Cause {
        let facts = HeartbeatFacts(.failure, code: code, text: report.remembered.text)
        let detail = "\(name) has reported that it failed" + (code.map { ", with the exit code \($0)" } ?? "")
        return Cause(.heartbeat, .failed, detail: detail, evidence: facts.evidence)
    }

    private func late(at now: Moment) -> Cause {
        let shift = now.wallClockNanoseconds.addingSaturated(-time(now))
        let due = HeartbeatText.time(expected.addingSaturated(shift))
        let grace = times.grace == .zero ? "" : ", with \(HeartbeatText.duration(times.grace.saturatingNanoseconds)) of grace"
        var evidence: [String: Cause.Evidence] = ["expected": .text(due)]
        guard let sign else {
            let detail = "\(name) has not reported since netwatch waits for it; a report was due at \(due)\(grace)"
            return Cause(.heartbeat, .late, detail: detail, evidence: evidence)
        }
        let latest = HeartbeatText.time(sign.addingSaturated(shift))
        evidence["last_report"] = .text(latest)
        let detail = "\(name) has last reported at \(latest); its next report was due at \(due)\(grace)"
        return Cause(.heartbeat, .late, detail: detail, evidence: evidence)
    }

    private func overrun(_ begun: Int64, at now: Moment) -> Cause {
        let present = time(now)
        let begin = HeartbeatText.time(begun.addingSaturated(now.wallClockNanoseconds.addingSaturated(-present)))
        let time = HeartbeatText.duration(present.addingSaturated(-begun))
        let reason =
            started != begun
            ? "; it has begun again" : times.maxDuration == nil ? "; its next report would be late by now" : ""
        return Cause(
            .heartbeat, .overrun, detail: "\(name) has begun at \(begin), and has not ended after \(time)\(reason)",
            evidence: ["started": .text(begin)])
    }
}
