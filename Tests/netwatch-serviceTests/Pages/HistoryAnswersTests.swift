import EventLoop
import Expectations
import Foundation
import GRDB
import Reachability
import Testing

@testable import netwatch_service

/// Answers about a history, while the service runs and after it.
@Suite(.timeLimit(.minutes(5))) struct HistoryAnswersTests {
    private let noon = TestHistory.noon
    private let answers = HistoryAnswers(source: TestHistory.source, timeZone: "UTC")

    private func sample(_ time: Int64, _ state: RecordedState = .up, _ target: Int = 0) -> HistoryEvent {
        .sample(target: target, Sample(time: time, state: state, roundTrip: state == .down ? nil : 100))
    }

    private func question(since: String, until now: Int64, _ target: String? = nil) throws -> HistoryAnswers.Question {
        .init(period: try HistoryPeriod(since: since, until: nil, now: now, offset: { _ in 0 }), target: target)
    }

    private func moment(_ time: Int64) -> Moment { Moment(monotonicNanoseconds: 0, wallClockNanoseconds: time * 1_000_000) }

    private func report(_ store: HistoryStore, since: String, at now: Int64, _ target: String? = nil) throws -> ReportDocument {
        let (question, answers, moment) = (try question(since: since, until: now, target), answers, moment(now))
        return try store.query { try answers.report(question, $0, at: moment) }
    }

    private func register(_ store: HistoryStore, _ names: HistoryStore.TargetNames...) {
        store.register(names) { _ in }
        store.settle()
    }

    @Test func `a name of two targets is refused with their ids`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        register(store, .init(id: "x1", text: "db.example:5432", title: "database"))
        register(store, .init(id: "y1", text: "db.example:5432", title: "database"))
        store.record(noon, .begin(target: 0, .up, at: noon), .begin(target: 1, .up, at: noon))
        store.record(noon + 2_000)
        for name in ["database", "db.example:5432"] {
            let error = #expect(throws: StoreError.self) { try report(store, since: "1h", at: noon + 2_000, name) }
            expectEqual(error?.reason, "target '\(name)': 2 targets have this name; give the id of one: x1, y1")
        }
        try expectEqual(report(store, since: "1h", at: noon + 2_000, "y1").targets.map(\.id), ["y1"])
        store.close()
    }

    @Test func `a change of the path has its time in JSON, CSV and text`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        let lost =
            #"{"status":"unsatisfied","interface":null,"reasons":["route-removed"],"cause":{"layer":"local","code":"no-route","detail":"no route"}}"#
        let found =
            #"{"status":"satisfied","interface":"up0","reasons":["interface-changed","addresses-changed","gateways-changed","families-changed","dns-changed"],"cause":null}"#
        store.record(pathEvent: lost, at: noon + 1_000)
        store.record(pathEvent: found, at: noon + 2_500)
        store.record(pathEvent: "{}", at: noon + 3_000)
        store.settle()
        let (question, answers, moment) = (try question(since: "1h", until: noon + 4_000), answers, moment(noon + 4_000))
        let document = try store.query { try answers.history(question, $0, at: moment) }
        let (first, second) = ("2026-11-25T12:00:01.000Z", "2026-11-25T12:00:02.500Z")
        func text(_ format: HistoryFormat) -> String { String(decoding: format.bytes(document), as: UTF8.self) }
        let json = text(.json)
        #expect(json.contains(#""path_events":[{"ts":"\#(first)","status":"unsatisfied","#), "\(json)")
        #expect(
            json.contains(#"{"ts":"\#(second)","status":"satisfied","#) && json.contains(#"{"ts":"2026-11-25T12:00:03.000Z"}"#),
            "\(json)")
        expectEqual(
            text(.csv).split(separator: "\r\n").dropFirst().map(String.init),
            [
                "path,\(first),,,,,local/no-route,unsatisfied route-removed,,",
                "path,\(second),,,,up0,,satisfied interface-changed addresses-changed gateways-changed families-changed dns-changed,,",
            ])
        expectEqual(
            text(.text).split(separator: "\n").map(String.init),
            [
                "service edge-07, state /var/lib/netwatch",
                "\(second)  the path is satisfied over up0  (interface-changed, addresses-changed, gateways-changed and 2 more)",
                "\(first)  the path is not satisfied: local: no route  (route-removed)",
            ])
        store.close()
    }

    @Test func `a period ends at the present time at the latest`() throws {
        func range(_ since: String?, _ until: String?) throws -> Range<Int64> {
            try HistoryPeriod(since: since, until: until, now: noon, offset: { _ in 0 }).range
        }
        try expectEqual(range("2026-11-01", "2026-12-01").upperBound, noon)
        try expectEqual(range(nil, "2026-12-01"), noon - HistoryPeriod.standard..<noon)
        try expectEqual(range("2h", "1h"), noon - 2 * TestHistory.hour..<noon - TestHistory.hour)
        #expect(throws: HistoryPeriod.Invalid.self) { try range("2026-12-01", "2026-12-02") }
    }

    @Test func `the report of a running service has every turn, before any checkpoint`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        register(store, .init(id: nil, text: "db.example:5432", title: "database"))
        store.record(noon, .begin(target: 0, .unknown, at: noon))
        var target: ReportDocument.Target?
        for second in 1...30 as ClosedRange<Int64> {
            let time = noon + second * 1_000
            store.record(time, sample(time, second == 20 ? .down : .up))
            store.settle()
            target = try report(store, since: "10s", at: time).targets.first
            expectEqual(target?.summary.probes, Int(min(second - 1, 10)))
            expectEqual(target?.summary.times.total, 10_000)
        }
        expectEqual(target?.summary.times[.up], 9_000)
        expectEqual(target?.summary.times[.down], 1_000)
        expectEqual(target?.outages, 1)
        expectEqual(target?.summary.lost, 1)
        // A checkpoint moves the turns, and changes no answer.
        try store.checkpointAndWait()
        try expectEqual(report(store, since: "10s", at: noon + 30_000).targets.first, target)
        store.close()
    }

    @Test func `a query after one that timed out reads the logs from where that one ended`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        register(store, .init(id: nil, text: "a.example:1", title: "a"))
        store.record(noon, .begin(target: 0, .up, at: noon))
        for second in 1..<20 as Range<Int64> { store.record(noon + second * 1_000, sample(noon + second * 1_000)) }
        store.settle()
        let directory = StateDirectory(path: history.settings.directory)
        let reader = try HistoryReader(following: directory, calendar: history.calendar)
        // Each of them reads one turn.
        for _ in 0..<20 {
            let error = #expect(throws: StoreError.self) { try reader.run(until: MonotonicClock.now() - 1) { _ in } }
            expectEqual(error?.code, .timedOut)
        }
        let span = noon..<noon + 20_000
        let sums = try reader.run(until: nil) { try $0.summaries(span) }
        #expect(sums[0]?.probes == 19 && sums[0]?.times[.up] == 19_000)
        reader.close()
        store.close()
    }

    @Test func `a target that is added while the service runs is in the next report`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        register(store, .init(id: nil, text: "a.example:1", title: "a"))
        store.record(noon, .begin(target: 0, .up, at: noon))
        store.settle()
        try expectEqual(report(store, since: "1m", at: noon + 1).targets.count, 1)
        register(store, .init(id: nil, text: "b.example:1", title: "b"))
        store.record(noon + 1_000, .begin(target: 1, .up, at: noon + 1_000))
        store.record(noon + 5_000, sample(noon + 5_000, .up, 1))
        store.settle()
        try expectEqual(report(store, since: "5s", at: noon + 5_000).targets.map { $0.summary.times[.up] }, [5_000, 4_000])
        store.close()
    }

    @Test func `the last two minutes of a service that was stopped three times have the time of its runs`() throws {
        let history = try TestHistory()
        var now = noon + 33 * 60_000
        for (wait, run) in [(0, 2_000_000), (30, 14), (20, 6), (10, 4)] as [(Int64, Int64)] {
            let stopped = now
            now += wait * 1_000
            let (store, recovered) = try history.open(at: now)
            register(store, .init(id: nil, text: "db.example:5432", title: "db.example:5432"))
            if recovered.lastAlive != nil {
                store.record(now, .gap(HistoryGap(period: stopped..<now, reason: .stopped)))
            }
            store.record(now, .begin(target: 0, .unknown, at: now))
            store.record(now + 500, sample(now + 500))
            now += run * 1_000
            store.record(now)
            store.close()
        }
        let reader = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
        let document = try answers.report(try question(since: "1m", until: now), reader, at: moment(now))
        let times = try #require(document.targets.first).summary.times
        expectEqual(times[.up], 22_500)
        expectEqual(times[.unknown], 1_500)
        expectEqual(times[.notRecorded], 36_000)
        reader.close()
    }

    @Test func `an hour without samples counts by the proportion of its states`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        register(store, .init(id: nil, text: "db.example:5432", title: "db.example:5432"))
        store.record(noon, .begin(target: 0, .up, at: noon))
        for minute in 1...90 as ClosedRange<Int64> {
            let time = noon + minute * 60_000
            store.record(time, sample(time, minute < 30 ? .up : .down))
        }
        try store.checkpointAndWait()
        let now = noon + 90 * 60_000
        let exact = try #require(try report(store, since: "80m", at: now).targets.first).summary
        expectEqual(exact.times[.up], 20 * 60_000)
        expectEqual(exact.times[.down], 60 * 60_000)
        expectEqual(exact.probes, 80)
        try store.database.write { try $0.execute(sql: "DELETE FROM block") }
        let scaled = try #require(try report(store, since: "80m", at: now).targets.first).summary
        #expect(scaled.times[.up] == 25 * 60_000 && scaled.times.total == 80 * 60_000)
        store.close()
    }

    @Test func `a report has the text and the identifier, and finds a target by id, name or text`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        register(
            store, .init(id: "main-db", text: "db.example:5432", title: "database"),
            .init(id: nil, text: "web.example:80", title: "web.example:80"))
        store.record(noon, .begin(target: 0, .up, at: noon), .begin(target: 1, .up, at: noon))
        let endpoint = try Endpoint("db.example:5432")
        store.record(
            Incident(
                id: "1", scope: .server, subject: .init(.target, endpoint.text),
                cause: Cause(.tcp, .refused, detail: "refused"),
                targets: [endpoint], from: Date(timeIntervalSince1970: Double(noon) / 1_000))
        ) {}
        store.record(noon + 1_000, sample(noon + 1_000, .down))
        store.settle()
        let all = try report(store, since: "1m", at: noon + 5_000)
        expectEqual(all.targets.map(\.text), ["db.example:5432", "web.example:80"])
        #expect(all.targets.map(\.id) == ["main-db", nil] && all.targets.map(\.outages) == [1, 0])
        expectEqual(all.targets[0].worst.map(\.id), ["1"])
        #expect(
            String(decoding: all.json(), as: UTF8.self).contains(#""target":"db.example:5432","id":"main-db","name":"database""#))
        for name in ["main-db", "database", "db.example:5432"] {
            try expectEqual(report(store, since: "1m", at: noon + 5_000, name).targets.map(\.id), ["main-db"])
        }
        #expect(throws: StoreError.self) { try report(store, since: "1m", at: noon + 5_000, "other") }
        store.close()
    }

    @Test func `documents have the names of the configuration, and say whose they are`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        let keys = #""id":"main-db","name":"Database","group":"North","labels":{"team":"a"}"#
        let database = HistoryStore.TargetNames(
            id: "main-db", text: "a.example:1", title: "Database", group: "North", labels: ["team": "a"])
        // The target has received its identifier after its first start.
        register(store, .init(id: nil, text: "a.example:1", title: "a.example:1"), database)
        register(store, .init(id: nil, text: "b.example:1", title: "b.example:1"))
        store.record(noon, .begin(target: 1, .down, at: noon))
        store.record(try incident("1", at: noon), of: TargetSet([1])) {}
        let endpoints = try ["a.example:1", "b.example:1"].map { try Endpoint($0) }
        store.record(
            Incident(
                id: "2", scope: .path, subject: .init(.gateway, "192.0.2.1"), cause: PageSamples.gatewaySilent,
                targets: endpoints, from: Date(timeIntervalSince1970: Double(noon + 1_000) / 1_000)), of: TargetSet([1, 2])
        ) {}
        store.record(noon + 5_000)
        store.settle()
        let (question, answers, now) = (try question(since: "1m", until: noon + 5_000), answers, moment(noon + 5_000))
        let document = try store.query { try answers.history(question, $0, at: now) }
        func text(_ format: HistoryFormat, _ document: some HistoryText) -> String {
            String(decoding: format.bytes(document), as: UTF8.self)
        }
        let json = text(.json, document)
        #expect(json.contains(#""instance":"edge-07","state":"/var/lib/netwatch","incidents":[{"incident":"2","#), "\(json)")
        #expect(
            json.contains(#""targets":["a.example:1"],"severity":null,"acknowledged":null,"recorded":true,\#(keys)}"#), "\(json)")
        #expect(json.contains(#""recorded":true,"id":null,"name":null,"group":null,"labels":null}"#), "\(json)")
        let lines = text(.text, document).split(separator: "\n")
        expectEqual(lines.first, "service edge-07, state /var/lib/netwatch")
        #expect(lines[1].contains("gateway 192.0.2.1  2 targets (Database, b.example:1)  "), "\(lines[1])")
        #expect(lines[2].contains("open  target Database  1 target  "), "\(lines[2])")
        #expect(text(.csv, document).contains(",target a.example:1,tcp/refused,refused,1,Database\r\n"))

        let report = try store.query { try answers.report(question, $0, at: now) }
        let reported = text(.json, report)
        #expect(reported.contains(#""instance":"edge-07","state":"/var/lib/netwatch","time_zone":"UTC""#), "\(reported)")
        #expect(reported.contains(#"{"target":"a.example:1",\#(keys),"availability""#), "\(reported)")
        #expect(reported.contains(#""recorded":true,\#(keys)}"#), "\(reported)")
        expectEqual(text(.text, report).split(separator: "\n").first, "service edge-07, state /var/lib/netwatch")
        store.close()
        // The group and the labels follow the configuration.
        let (second, recovered) = try history.open(at: noon + 60_000)
        expectEqual(recovered.targets.map(\.names.labels), [[:], ["team": "a"], [:]])
        var moved = database
        (moved.group, moved.labels) = (nil, [:])
        register(second, moved)
        try expectEqual(second.query { try $0.targets()[1].names }, moved)
        second.close()
    }

    @Test func `the files of a stopped service name the machine and the directory`() {
        let source = HistorySource(instance: "edge-07", state: "/tmp/a\u{1b}", isService: false)
        expectEqual(source.line, "files of the service on edge-07, state /tmp/a\u{fffd}")
    }

    @Test(arguments: [("zzz", true), ("5", true), ("5-x", true), ("5--1", true), ("zzz", false), ("5-", false)])
    func `a position that is not one of a page is refused`(after: String, ofSamples: Bool) throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        register(store, .init(id: "one", text: "a.example:1", title: "a"))
        var question = try question(since: "1h", until: noon, "one")
        (question.includesSamples, question.after) = (ofSamples, after)
        let (answers, moment, asked) = (answers, moment(noon), question)
        let error = #expect(throws: StoreError.self) { try store.query { try answers.history(asked, $0, at: moment) } }
        #expect(error?.code == .invalid && error?.reason == "after: not a position of a page")
        var valid = question
        valid.after = ofSamples ? "\(noon)-3" : "-5-incident"
        let next = valid
        try expectNil(store.query { try answers.history(next, $0, at: moment) }.next)
        store.close()
    }

    private func incident(_ id: String, at time: Int64, until end: Int64? = nil) throws -> Incident {
        let endpoint = try Endpoint("a.example:1")
        return Incident(
            id: id, state: end == nil ? .open : .over, scope: .server, subject: .init(.target, endpoint.text),
            cause: Cause(.tcp, .refused, detail: "refused"), targetCount: 1, targets: [endpoint], began: moment(time),
            ended: end.map(moment), moment: moment(end ?? time))
    }

    @Test func `an incident that the history does not have, or has in an earlier state, is shown as it is`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        register(store, .init(id: nil, text: "a.example:1", title: "a"), .init(id: nil, text: "b.example:1", title: "b"))
        store.record(noon, .begin(target: 0, .up, at: noon))
        for (id, time) in [("1", noon), ("2", noon + 1_000)] { store.record(try incident(id, at: time), of: TargetSet([0])) {} }
        store.record(noon + 5_000)
        store.settle()
        // The disk is full from now on: the first incident ends, and a third one opens.
        let unrecorded = [
            BoardIncident(incident: try incident("3", at: noon + 3_000), isRecorded: false, targets: TargetSet([0])),
            BoardIncident(incident: try incident("1", at: noon, until: noon + 2_000), isRecorded: false, targets: TargetSet([0])),
        ]
        let (answers, now) = (answers, moment(noon + 5_000))
        func shown(since: String, _ target: String? = nil) throws -> [String] {
            let question = try question(since: since, until: noon + 5_000, target)
            let document = try store.query { try answers.history(question, $0, unrecorded: unrecorded, at: now) }
            return document.incidents.map { "\($0.incident.id) \($0.incident.state) \($0.isRecorded)" }
        }
        try expectEqual(shown(since: "1m"), ["3 open false", "2 open true", "1 over false"])
        try expectEqual(shown(since: "1m", "a"), ["3 open false", "2 open true", "1 over false"])
        try expectEqual(shown(since: "1m", "b"), [])
        try expectEqual(shown(since: "2s"), ["3 open false", "2 open true"])
        store.close()
    }

    @Test func `the time after the end of a service is a gap until now`() throws {
        func gaps(_ history: TestHistory, at now: Int64, since: String = "1m") throws -> [HistoryGap] {
            let reader = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
            defer { reader.close() }
            return try answers.history(try question(since: since, until: now), reader, at: moment(now)).gaps
        }
        let (stopped, killed) = try TestHistory.withTurns()
        let last = noon + 5_000
        try expectEqual(gaps(stopped, at: last + 1_000), [HistoryGap(period: last..<last + 1_000, reason: .stopped)])
        try expectEqual(gaps(stopped, at: last), [])
        // It may still run: a turn is recorded every 2 seconds.
        try expectEqual(gaps(killed, at: last + 5_000), [])
        let hour = last + TestHistory.hour
        try expectEqual(gaps(killed, at: hour), [HistoryGap(period: last..<hour, reason: .notRecorded)])
    }

    @Test func `the time on a full disk is not recorded, and the time after the service is one in which it did not run`() throws {
        let (stopped, _) = try TestHistory.withTurns()
        let (last, directory) = (noon + 5_000, StateDirectory(path: stopped.settings.directory))
        func gaps(at now: Int64, runningSince start: Int64? = nil) throws -> [String] {
            let reader = try HistoryReader.open(directory: directory.path, calendar: stopped.calendar)
            defer { reader.close() }
            var answers = answers
            answers.runningSince = start
            let document = try answers.history(try question(since: "1h", until: now), reader, at: moment(now))
            return document.gaps.map { "\($0.reason.rawValue) \($0.period.lowerBound - last)-\($0.period.upperBound - last)" }
        }
        // A service that starts on a full disk: nothing in the files says that it runs, but the service knows.
        try expectEqual(gaps(at: last + 60_000), ["stopped 0-60000"])
        try expectEqual(gaps(at: last + 60_000, runningSince: last + 20_000), ["stopped 0-20000", "not_recorded 20000-60000"])
        try expectEqual(gaps(at: last + 24_000, runningSince: last + 20_000), [])
        // Its signs of life show the same to a reader of the files, and after its end.
        directory.noteLife(at: last + 50_000)
        directory.noteLife(at: last + 58_500)
        try expectEqual(gaps(at: last + 60_000), ["not_recorded 0-60000"])
        try expectEqual(gaps(at: last + 100_000), ["not_recorded 0-58500", "stopped 58500-100000"])
        let (store, recovered) = try stopped.open(at: last + 200_000)
        expectEqual(recovered.unrecordedUntil, last + 58_500)
        var recorder = HistoryRecorder(
            TestHistory.reading(last + 200_000), last: last, unrecordedUntil: recovered.unrecordedUntil)
        let turn = recorder.takeTurn()
        expectEqual(
            turn.events,
            [
                .gap(.init(period: last..<last + 58_500, reason: .notRecorded)),
                .gap(.init(period: last + 58_500..<last + 200_000, reason: .stopped)),
            ])
        // Both remain if the first turn of the next run is dropped too.
        var dropped = DroppedTurns(after: last + 200_000, turn)
        dropped.add(HistoryTurn(TestHistory.reading(last + 210_000)))
        expectEqual(
            dropped.replacement.events,
            turn.events + [.gap(.init(period: last + 200_000..<last + 210_000, reason: .notRecorded))])
        store.close()
        // A time that is not after the history says nothing.
        directory.noteLife(at: last - 1_000)
        try expectEqual(stopped.open(at: last + 300_000).recovered.unrecordedUntil, nil)
    }

    @Test func `an incident of many targets is an outage of each`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        let texts = (0..<25).map { "host-\($0).example:80" }
        store.register(texts.map { .init(id: nil, text: $0, title: $0) }) { _ in }
        store.record(HistoryTurn(TestHistory.reading(noon), texts.indices.map { .begin(target: $0, .up, at: noon) }))
        store.record(
            HistoryTurn(
                TestHistory.reading(noon + 1_000), texts.indices.map { .change(target: $0, .unreachable, at: noon + 1_000) }))
        store.settle()
        let document = try report(store, since: "1m", at: noon + 5_000)
        expectEqual(document.targets.map(\.outages), Array(repeating: 1, count: 25))
        store.close()
    }
}
