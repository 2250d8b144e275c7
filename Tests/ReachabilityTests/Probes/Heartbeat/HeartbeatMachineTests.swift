import Expectations
import Foundation
import Testing

@testable import Reachability

/// A job that reports in, played by its reports and by the passing of time. Times are in minutes since 2026-12-01T00:00:00Z.
@Suite struct HeartbeatMachineTests {
    private struct Job {
        var machine: HeartbeatMachine
        /// Minutes by which the wall clock is ahead of the times of the test.
        var shift = 0.0
        /// Minutes for which this machine was suspended.
        var asleep = 0.0

        static let epoch = Timestamp.days(year: 2026, month: 12, day: 1) * 86_400_000_000_000

        init(
            remembering memory: HeartbeatMemory? = nil, absentSince absence: Double? = nil, at minutes: Double = 0,
            _ change: (inout HeartbeatSettings) throws -> Void
        ) throws {
            var settings = ProbeSettings()
            settings.heartbeat.grace = .seconds(600)
            try change(&settings.heartbeat)
            machine = HeartbeatMachine(
                try Endpoint("heartbeat:backup"), settings, remembering: memory,
                absentSince: absence.map { Self.moment($0).wallClockNanoseconds }, at: Self.moment(minutes))
        }

        static func moment(_ minutes: Double, shift: Double = 0, asleep: Double = 0) -> Moment {
            let time = Int64(minutes * 60_000_000_000)
            return Moment(
                monotonicNanoseconds: 1_000_000_000_000 + time - Int64(asleep * 60_000_000_000),
                wallClockNanoseconds: epoch + time + Int64(shift * 60_000_000_000))
        }

        func now(_ minutes: Double) -> Moment { Self.moment(minutes, shift: shift, asleep: asleep) }

        /// A report at a time. - Returns: the lines of its effects.
        mutating func at(
            _ minutes: Double, _ kind: HeartbeatReport.Kind, text: String = "", happened time: Double? = nil
        ) -> [String] {
            let report = HeartbeatReport(kind, text: text, time: time.map { Self.moment($0).wallClockNanoseconds })
            return Self.lines(machine.receive(report, at: now(minutes)))
        }

        /// Lets time pass. - Returns: the lines of the effects, each with its minute.
        mutating func until(_ minutes: Double) -> [String] {
            var lines: [String] = []
            // A schedule of cron looks at the clock each minute.
            for _ in 0..<20_000 {
                guard let deadline = machine.deadline, deadline <= now(minutes).monotonicNanoseconds else { break }
                let minute = Double(deadline - now(0).monotonicNanoseconds) / 60_000_000_000
                lines += Self.lines(machine.tick(at: now(minute))).map { "\(Int(minute)): \($0)" }
            }
            return lines
        }

        static func lines(_ effects: [HeartbeatMachine.Effect]) -> [String] {
            effects.map { effect in
                switch effect {
                case .publish(let update):
                    [
                        update.statusName.rawValue, update.cause.map { "\($0.layer)/\($0.code)" },
                        update.job == .running ? "running" : nil,
                    ]
                    .compactMap { $0 }.joined(separator: " ")
                case .report(let report): report.succeeded ? "ok" : "failed"
                }
            }
        }

        var status: String { Self.lines([.publish(machine.initialUpdate(at: now(0)))])[0] }
        var cause: Cause? { machine.initialUpdate(at: now(0)).cause }
    }

    private static func every(_ minutes: Int) -> (inout HeartbeatSettings) -> Void { { $0.every = .seconds(minutes * 60) } }
    private static func cron(_ text: String) -> (inout HeartbeatSettings) throws -> Void { { $0.cron = try CronSchedule(text) } }

    @Test func `a job is up with its report, late without the next one, and up again`() throws {
        var job = try Job(Self.every(60))
        expectEqual(job.status, "unknown")
        expectEqual(job.at(5, .succeeded), ["ok", "up"])
        expectEqual(job.until(74), [])
        expectEqual(job.at(74, .succeeded), ["ok"], "a record is written for changes")
        expectEqual(job.until(400), ["144: failed", "144: down heartbeat/late"])
        expectEqual(
            job.cause?.detail,
            "backup has last reported at 2026-12-01T01:14:00Z; its next report was due at 2026-12-01T02:14:00Z, with 10 min of grace"
        )
        expectEqual(
            job.cause?.evidence, ["expected": .text("2026-12-01T02:14:00Z"), "last_report": .text("2026-12-01T01:14:00Z")])
        expectEqual(job.at(401, .succeeded), ["ok", "up"])
        expectEqual(job.until(500), ["471: failed", "471: down heartbeat/late"])
    }

    @Test func `a job that never reports is late a first time`() throws {
        var job = try Job(Self.every(60))
        expectEqual(job.until(1_000), ["70: failed", "70: down heartbeat/late"])
        expectEqual(
            job.cause?.detail,
            "backup has not reported since netwatch waits for it; a report was due at 2026-12-01T01:00:00Z, with 10 min of grace")
    }

    @Test func `a failure is down at once, with its code and its text, and a missing report after it is late`() throws {
        var job = try Job(Self.every(60))
        expectEqual(job.at(1, .failed(code: 3), text: "disk full"), ["failed", "down heartbeat/failed"])
        expectEqual(job.cause?.detail, "backup has reported that it failed, with the exit code 3")
        expectEqual(job.cause?.evidence, ["exit_code": .number(3), "output": .text("disk full")])
        expectEqual(job.until(100), ["71: failed", "71: down heartbeat/late"])
        expectEqual(job.at(101, .failed(code: nil)), ["failed", "down heartbeat/failed"])
        expectEqual(job.cause?.detail, "backup has reported that it failed")
    }

    @Test func `a job that runs is not late, and its next report is expected after its end`() throws {
        var job = try Job(Self.every(60))
        expectEqual(job.at(5, .started), ["unknown running"])
        expectEqual(job.at(45, .succeeded), ["ok", "up"])
        expectEqual(job.at(110, .started), ["up running"])
        expectEqual(job.until(170), [])
        expectEqual(job.at(170, .succeeded), ["ok", "up"])
        expectEqual(job.until(300), ["240: failed", "240: down heartbeat/late"])
    }

    @Test func `a run whose end was never reported has overrun when the next one begins, and a repeated start is the same run`()
        throws
    {
        var job = try Job(Self.every(60))
        expectEqual(job.at(0, .succeeded), ["ok", "up"])
        expectEqual(job.at(50, .started), ["up running"])
        expectEqual(job.at(50.5, .started), [])
        expectEqual(job.at(100, .started), ["failed", "down heartbeat/overrun running"])
        expectEqual(
            job.cause?.detail,
            "backup has begun at 2026-12-01T00:50:00Z, and has not ended after 50 min; it has begun again")
        expectEqual(job.at(130, .succeeded), ["ok", "up"])
    }

    @Test func `a second failure shows its own text`() throws {
        var job = try Job(Self.every(60))
        expectEqual(job.at(1, .failed(code: 1), text: "first"), ["failed", "down heartbeat/failed"])
        expectEqual(job.at(2, .failed(code: 1), text: "first"), ["failed"])
        expectEqual(job.at(3, .failed(code: 9), text: "second"), ["failed", "down heartbeat/failed"])
        expectEqual(job.cause?.evidence, ["exit_code": .number(9), "output": .text("second")])
    }

    @Test(arguments: [(nil, 75.0), (20, 25.0), (600, 605.0)] as [(Int64?, Double)])
    func `a run that does not end in its time has overrun, once`(limit: Int64?, due: Double) throws {
        var job = try Job { settings in
            settings.every = .seconds(3_600)
            settings.maxDuration = limit.map { .seconds($0 * 60) }
        }
        _ = job.at(5, .started)
        expectEqual(job.until(2_000), ["\(Int(due)): failed", "\(Int(due)): down heartbeat/overrun running"])
        expectEqual(job.at(2_001, .succeeded), ["ok", "up"])
        expectEqual(job.until(2_060), [])
        _ = job.at(2_061, .started)
        _ = job.until(2_061 + due - 5)
        expectEqual(job.status, "down heartbeat/overrun running")
        expectEqual(job.at(4_000, .started), [])
        expectEqual(job.until(4_000 + due - 5).first, "\(Int(4_000 + due - 5)): failed")
    }

    @Test func `cron has the times of the schedule, and a report up to a minute early counts for the next one`() throws {
        var job = try Job(Self.cron("0 3 * * *"))
        expectEqual(job.at(180.2, .succeeded), ["ok", "up"])
        expectEqual(job.at(1_440 + 179.5, .succeeded), ["ok"])
        expectEqual(job.until(1_440 * 2 + 189), [])
        expectEqual(job.until(1_440 * 3), ["3070: failed", "3070: down heartbeat/late"])
        // A run that begins at its time and ends much later.
        _ = job.at(1_440 * 3 + 180, .started)
        expectEqual(job.at(1_440 * 3 + 400, .succeeded), ["ok", "up"])
        expectEqual(job.until(1_440 * 4 + 189), [])
        expectEqual(job.until(1_440 * 5), ["5950: failed", "5950: down heartbeat/late"])
    }

    @Test func `a schedule of each minute is exact to a quarter of a minute`() throws {
        var job = try Job { settings in
            settings.cron = try CronSchedule("* * * * *")
            settings.grace = .seconds(30)
        }
        _ = job.at(1.02, .succeeded)
        expectEqual(job.until(5), ["2: failed", "2: down heartbeat/late"])
    }

    @Test func `a start of this process and the end of a long run are no early reports`() throws {
        let exact: (inout HeartbeatSettings) throws -> Void = { settings in
            settings.cron = try CronSchedule("0 * * * *")
            settings.grace = .zero
        }
        var started = try Job(at: 59.5, exact)
        expectEqual(started.until(70), ["60: failed", "60: down heartbeat/late"])
        var long = try Job(exact)
        _ = long.at(10, .started)
        _ = long.at(59.5, .succeeded)
        expectEqual(long.until(70), ["60: failed", "60: down heartbeat/late"])
        var early = try Job(exact)
        _ = early.at(59.5, .started)
        _ = early.at(80, .succeeded)
        expectEqual(early.until(130), ["120: failed", "120: down heartbeat/late"])
    }

    // MARK: What this process could not hear

    /// What is remembered of a job after these reports.
    private static func memory(
        of change: (inout HeartbeatSettings) throws -> Void, at minutes: Double, _ reports: [(Double, HeartbeatReport.Kind)]
    ) throws -> HeartbeatMemory {
        var job = try Job(change)
        for (time, kind) in reports { _ = job.at(time, kind, text: "no route") }
        _ = job.until(minutes)
        let memory = job.machine.memory(at: job.now(minutes))
        return try JSONDecoder().decode(HeartbeatMemory.self, from: JSONEncoder().encode(memory))
    }

    @Test(
        arguments: [
            // A report may have come at any time since the last one. It is due at 60, with grace until 70.
            (2.0, 49.0, "up", ["70: unknown", "119: failed", "119: down heartbeat/late"]),
            (68.0, 69.0, "up", ["70: unknown", "139: failed", "139: down heartbeat/late"]),
            (68.0, 500.0, "unknown", ["570: failed", "570: down heartbeat/late"]),
        ] as [(Double, Double, String, [String])])
    func `after an absence a report that may have been missed is not late, and the status is unknown instead`(
        begin: Double, end: Double, status: String, lines: [String]
    ) throws {
        let memory = try Self.memory(of: Self.every(60), at: begin, [(0, .succeeded)])
        var job = try Job(remembering: memory, absentSince: begin, at: end, Self.every(60))
        expectEqual(job.status, status)
        expectEqual(job.until(1_000), lines)
    }

    @Test(
        arguments: [
            // Before the time of the report, at it, and after it.
            (100.0, 170.0, ["190: failed", "190: down heartbeat/late"]),
            (100.0, 179.5, ["190: unknown", "1630: failed", "1630: down heartbeat/late"]),
            (189.0, 200.0, ["1630: failed", "1630: down heartbeat/late"]),
        ] as [(Double, Double, [String])])
    func `only an absence at the time of a schedule excuses a report`(begin: Double, end: Double, lines: [String]) throws {
        let memory = try Self.memory(of: Self.cron("0 3 * * *"), at: begin, [(1, .succeeded)])
        var job = try Job(remembering: memory, absentSince: begin, at: end, Self.cron("0 3 * * *"))
        expectEqual(job.status, end > 190 ? "unknown" : "up")
        expectEqual(job.until(2_000), lines)
    }

    @Test func `a job that has never reported is awaited across restarts, and one that was late stays so`() throws {
        var memory = try Self.memory(of: Self.cron("0 3 * * *"), at: 10, [])
        for minutes in stride(from: 20.0, to: 180, by: 30) {
            let job = try Job(remembering: memory, absentSince: minutes - 1, at: minutes, Self.cron("0 3 * * *"))
            memory = job.machine.memory(at: job.now(minutes))
        }
        var job = try Job(remembering: memory, absentSince: 171, at: 172, Self.cron("0 3 * * *"))
        expectEqual(job.until(200), ["190: failed", "190: down heartbeat/late"])
        let late = try Job(remembering: job.machine.memory(at: job.now(200)), absentSince: 200, at: 5_000, Self.cron("0 3 * * *"))
        expectEqual(late.status, "down heartbeat/late")
        expectEqual(late.cause?.evidence["expected"], .text("2026-12-01T03:00:00Z"))
    }

    @Test func `a failure and an overrun are still there after a restart`() throws {
        let failed = try Self.memory(of: Self.every(60), at: 10, [(5, .failed(code: 2))])
        let job = try Job(remembering: failed, absentSince: 10, at: 11, Self.every(60))
        expectEqual(job.status, "down heartbeat/failed")
        expectEqual(job.cause?.evidence, ["exit_code": .number(2), "output": .text("no route")])
        let overrun = try Self.memory(of: Self.every(60), at: 90, [(1, .succeeded), (5, .started)])
        try expectEqual(
            Job(remembering: overrun, absentSince: 90, at: 91, Self.every(60)).status, "down heartbeat/overrun running")
    }

    @Test func `a run that may have ended in an absence is unknown at its limit, and its next one is awaited`() throws {
        let memory = try Self.memory(of: Self.every(60), at: 30, [(1, .succeeded), (5, .started)])
        var job = try Job(remembering: memory, absentSince: 30, at: 31, Self.every(60))
        expectEqual(job.status, "up running")
        expectEqual(job.until(1_000), ["75: unknown", "145: failed", "145: down heartbeat/late"])
    }

    @Test func `a job with another schedule is awaited from then on, and one with other limits continues`() throws {
        let memory = try Self.memory(of: Self.cron("0 12 * * *"), at: 600, [(1, .succeeded)])
        var moved = try Job(remembering: memory, at: 600, Self.cron("0 3 * * *"))
        expectEqual(moved.status, "up")
        expectEqual(moved.until(2_000), ["1630: failed", "1630: down heartbeat/late"])
        let late = try Self.memory(of: Self.every(60), at: 100, [(0, .succeeded)])
        let other = try Job(remembering: late, at: 100) { settings in
            settings.every = .seconds(3_600)
            settings.grace = .zero
        }
        expectEqual(other.status, "down heartbeat/late")
        try expectEqual(Job(remembering: late, at: 100, Self.every(90)).status, "up")
    }

    @Test(arguments: [
        (20.0, ["70: unknown", "90: failed", "90: down heartbeat/late"]),
        (69.0, ["70: unknown", "139: failed", "139: down heartbeat/late"]),
        (90.0, ["90: unknown", "160: failed", "160: down heartbeat/late"]),
    ])
    func `a suspension is an absence`(woken: Double, lines: [String]) throws {
        var job = try Job(Self.every(60))
        _ = job.at(0, .succeeded)
        // It sleeps from 10 on.
        job.asleep = woken - 10
        expectEqual(job.machine.resumed(after: Int64(job.asleep * 60_000_000_000), at: job.now(woken)), [])
        let found = job.until(1_000).map { $0 }
        expectEqual(found, lines)
    }

    @Test func `a process that was stopped reads its sockets before it judges`() throws {
        var job = try Job(Self.every(60))
        _ = job.at(0, .succeeded)
        expectEqual(Job.lines(job.machine.tick(at: job.now(75))), [])
        expectEqual(job.at(75, .succeeded), ["ok"])
        expectEqual(Job.lines(job.machine.tick(at: job.now(150))), [])
        expectEqual(job.until(151), ["150: failed", "150: down heartbeat/late"])
    }

    // MARK: Clocks that are set

    @Test func `a clock that is set does not move a period`() throws {
        var job = try Job(Self.every(60))
        _ = job.at(0, .succeeded)
        job.shift = 600
        expectEqual(job.until(80), ["70: failed", "70: down heartbeat/late"])
    }

    @Test func `the times of a schedule follow a clock that is set back, within a minute`() throws {
        var job = try Job(Self.cron("0 3 * * *"))
        _ = job.at(1, .succeeded)
        job.shift = -120
        // 190 by the clock is 310 now.
        expectEqual(job.until(400), ["310: failed", "310: down heartbeat/late"])
    }

    @Test func `a clock that is set forward has skipped its times, and is an absence`() throws {
        var job = try Job(Self.cron("0 3 * * *"))
        _ = job.at(1, .succeeded)
        job.shift = 4 * 1_440
        expectEqual(job.until(5).count, 1)
        expectEqual(job.status, "unknown")
        // At 03:00 of the day that the clock shows now.
        expectEqual(job.until(200), ["190: failed", "190: down heartbeat/late"])
    }

    @Test func `a clock that was far ahead and is corrected puts no report into the future`() throws {
        var job = try Job(Self.cron("0 3 * * *"))
        job.shift = 180 * 1_440
        _ = job.at(1, .succeeded)
        job.shift = 0
        expectEqual(job.until(200), ["190: failed", "190: down heartbeat/late"])
        expectEqual(job.at(201, .failed(code: 1), happened: 195), ["failed", "down heartbeat/failed"])
    }

    // MARK: Reports that were delivered late

    @Test func `reports that have waited count for the time at which they happened`() throws {
        var job = try Job(Self.every(60))
        _ = job.at(0, .succeeded)
        expectEqual(job.until(100), ["70: failed", "70: down heartbeat/late"])
        expectEqual(job.at(100, .started, happened: 55), ["down heartbeat/late running"])
        expectEqual(job.at(100, .succeeded, happened: 58), ["ok", "up"])
        expectEqual(job.until(200), ["128: failed", "128: down heartbeat/late"])
        expectEqual(job.at(200, .succeeded), ["ok", "up"])
        expectEqual(job.at(201, .failed(code: 1), happened: 150), [], "an older report changes nothing")
        _ = job.at(210, .started)
        _ = job.at(220, .succeeded)
        expectEqual(job.at(221, .failed(code: 1), happened: 215), [], "also one between the start and the end of the last run")
        expectEqual(job.status, "up")
    }

    @Test func `the clock of a job may be behind by a minute`() throws {
        var job = try Job(Self.every(60))
        _ = job.at(10, .started)
        expectEqual(job.at(10.1, .succeeded, happened: 9.6), ["ok", "up"])
    }

    @Test func `a start that was delivered long after its time is not an overrun before its end can follow`() throws {
        var job = try Job(Self.every(60))
        _ = job.at(500, .started, happened: 100)
        expectEqual(job.until(500.5), [])
        expectEqual(job.at(500.5, .succeeded, happened: 130), ["ok", "up"])
    }

    // MARK: Values

    @Test func `of a long text the end is kept, which is still UTF-8`() {
        let report = HeartbeatReport(.succeeded, text: "\(String(repeating: "ä", count: 10_000))!")
        #expect(report.text.utf8.count == HeartbeatReport.textLimit - 1 && report.text.hasSuffix("ä!"))
        expectEqual(report.text.first, "ä")
    }

    @Test func `a report is recorded and read again`() throws {
        for kind in [HeartbeatReport.Kind.started, .succeeded, .failed(code: nil), .failed(code: 7)] {
            for time in [nil, 5] as [Int64?] {
                let input = RecordedInput(
                    moment: Job.moment(1), input: .heartbeat(TargetID(3), HeartbeatReport(kind, text: "a\n", time: time)))
                expectEqual(try JSONDecoder().decode(RecordedInput.self, from: JSONEncoder().encode(input)), input)
            }
        }
    }

    @Test(arguments: [
        ("heartbeat:nightly-backup_2.db", "nightly-backup_2.db"), ("HEARTBEAT:Backup", "Backup"), ("heartbeat:2nd", "2nd"),
    ])
    func `a name is a target`(text: String, name: String) throws {
        let endpoint = try Endpoint(text)
        #expect(endpoint.scheme == .heartbeat && endpoint.host == .name(name) && endpoint.port == 0 && endpoint.text == text)
        expectEqual(endpoint, try Endpoint(text.lowercased()))
    }

    @Test func `a number is the port of a host with that name, and other texts are no names`() throws {
        let host = try Endpoint("heartbeat:8080")
        #expect(host.scheme == .tcp && host.port == 8_080 && host.host == .name("heartbeat"))
        for text in [
            "heartbeat:", "heartbeat:a b", "heartbeat:a/b", "heartbeat:.a", "heartbeat:\(String(repeating: "a", count: 65))",
            "heartbeat://backup", "heartbeat:ä",
        ] {
            #expect(throws: Endpoint.ParseError.self, "\(text)") { try Endpoint(text) }
        }
    }
}
