import EventLoop
import Expectations
import Foundation
import GRDB
import NetworkLab
import Pacing
import Reachability
import Testing

@testable import netwatch_service

@Suite(.timeLimit(.minutes(5))) struct HistoryStoreTests {
    private let noon = TestHistory.noon
    private let hour = TestHistory.hour

    private func sample(_ target: Int, _ time: Int64, _ state: RecordedState = .up, _ roundTrip: UInt32? = 100) -> HistoryEvent {
        .sample(target: target, Sample(time: time, state: state, roundTrip: roundTrip))
    }

    @Test func `samples, states and the last sign of life survive SIGKILL`() throws {
        let history = try TestHistory()
        let (store, fresh) = try history.open()
        #expect(fresh.targets.isEmpty && fresh.lastAlive == nil && !fresh.hasBooted && fresh.notes.isEmpty)
        try expectEqual(store.numbers("a", "b"), [0, 1])
        store.record(noon, .begin(target: 0, .unknown, at: noon), .begin(target: 1, .unknown, at: noon))
        store.record(noon + 1_000, sample(0, noon + 500), sample(1, noon + 600, .down, nil))
        store.record(noon + 10_000, sample(0, noon + 9_900))
        store.record(noon + 12_000)
        store.settle()

        let killed = try history.killed()
        let (second, recovered) = try killed.open(at: noon + 60_000)
        #expect(
            recovered.targets.map(\.key) == ["a", "b"] && recovered.targets.map(\.names.title) == ["title of a", "title of b"])
        expectEqual(recovered.lastAlive, TestHistory.reading(noon + 12_000))
        let ledger = try #require(recovered.ledgers[0])
        #expect(ledger.end == noon + 12_000 && ledger.state == .up && ledger.currentHour.probes == 2)
        expectEqual(ledger.currentHour.times[.unknown], 500)
        expectEqual(ledger.currentHour.times[.up], 11_500)
        expectEqual(recovered.ledgers[1]?.currentHour.times[.down], 11_400)
        expectEqual(recovered.ledgers[1]?.currentHour.lost, 1)
        let samples = try second.query { try $0.samples(of: 0, 0..<Int64.max) }
        expectEqual(samples.elements.map(\.time), [noon + 500, noon + 9_900])
        expectEmpty(killed.names.filter { $0.hasPrefix("recent") })

        // The time until now is a gap.
        second.record(
            noon + 60_000, .gap(HistoryGap(period: noon + 12_000..<noon + 60_000, reason: .stopped)),
            .begin(target: 0, .unknown, at: noon + 60_000))
        second.close()
        let (third, again) = try killed.open(at: noon + 70_000)
        expectEqual(again.ledgers[0]?.currentHour.times[.notRecorded], 48_000)
        expectEqual(again.ledgers[1]?.end, noon + 12_000)
        try expectEqual(
            third.query { try $0.gaps(0..<Int64.max) },
            [
                HistoryGap(period: noon + 12_000..<noon + 60_000, reason: .stopped)
            ])
        third.close()
        store.close()
    }

    @Test func `a checkpoint neither loses nor doubles a sample, whenever the process is killed`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        _ = try store.numbers("a")
        store.record(noon, .begin(target: 0, .unknown, at: noon))
        var copies: [(TestHistory, Int)] = []
        for index in 1...20 {
            let time = noon + Int64(index) * 10_000
            store.record(time, sample(0, time))
            if index % 7 == 0 { try store.checkpointAndWait() }
            store.settle()
            copies.append((try history.killed(), index))
        }
        // A crash after the transaction and before the removal of the log.
        let log = history.names.filter { $0.hasPrefix("recent") }
        expectEqual(log.count, 1)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: history.path(log[0])))
        try store.checkpointAndWait()
        let late = try history.killed()
        try bytes.write(to: URL(fileURLWithPath: late.path(log[0])))
        copies.append((late, 20))
        for (copy, count) in copies {
            let (store, recovered) = try copy.open(at: noon + hour / 2)
            expectEqual(recovered.ledgers[0]?.currentHour.probes, count)
            let samples = try store.query { try $0.samples(of: 0, 0..<Int64.max) }.elements
            expectEqual(samples.map(\.time), (1...count).map { noon + Int64($0) * 10_000 })
            store.close()
        }
        store.close()
    }

    @Test func `ended hours and days become rows, and the block of an hour is extended`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open(at: noon)
        _ = try store.numbers("a")
        store.record(noon, .begin(target: 0, .up, at: noon))
        for minute in 0..<(13 * 60) {
            let time = noon + Int64(minute) * 60_000
            store.record(time, sample(0, time, minute < 60 ? .up : .down))
            if minute % 25 == 24 { try store.checkpointAndWait() }
        }
        try store.checkpointAndWait()
        let hours = try store.query { [noon] in try $0.summaries(.hour, of: 0, noon..<Int64.max) }
        // The current hour and day have the time of the results so far.
        expectEqual(hours.count, 13)
        #expect(hours.map(\.probes) == Array(repeating: 60, count: 13) && hours[12].times.total == 59 * 60_000)
        expectEqual(hours.map(\.outages), [0, 1] + Array(repeating: 0, count: 11))
        expectEqual(hours.map(\.continuesOutage), [false, false] + Array(repeating: true, count: 11))
        #expect(hours[0].times[.up] == hour && hours[1].times[.down] == hour)
        #expect(hours[0].roundTrips.count == 60 && hours[0].roundTrips.maximum == 100)
        let days = try store.query { try $0.summaries(.day, of: 0, 0..<Int64.max) }
        expectEqual(days.map(\.times.total), [12 * hour, 59 * 60_000])
        #expect(days.map(\.outages) == [1, 0] && days.map(\.overlappingOutages) == [1, 1])
        let samples = try store.query { try $0.samples(of: 0, 0..<Int64.max) }.elements
        #expect(samples.count == 13 * 60 && samples.map(\.time) == samples.map(\.time).sorted())
        expectEqual(samples.filter { $0.state == .up }.count, 60)
        store.close()
    }

    @Test func `a second service on the same directory is refused with the process that has it`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        let error = #expect(throws: StoreError.self) { _ = try history.open() }
        expectEqual(error?.code, .inUse)
        expectEqual(error?.reason.contains("process \(getpid())"), true)
        store.close()
        try history.open().store.close()
    }

    @Test func `a history of a later version is refused and stays unchanged`() throws {
        let history = try TestHistory()
        try history.open().store.close()
        let queue = try DatabaseQueue(path: history.path("history.sqlite"))
        var migrator = HistorySchema.migrator
        migrator.registerMigration("1000") { try $0.execute(sql: "CREATE TABLE more (x)") }
        try migrator.migrate(queue)
        try queue.close()
        for _ in 0..<2 {
            let error = #expect(throws: StoreError.self) { _ = try history.open() }
            expectEqual(error?.code, .newer)
            let calendar = history.calendar
            #expect(throws: StoreError.self) {
                _ = try HistoryReader.open(directory: history.settings.directory, calendar: calendar)
            }
        }
        #expect(!history.names.contains { $0.contains("damaged") })
    }

    @Test(arguments: ["bytes", "page", "table", "column"])
    func `a damaged history is set aside and named, and a new one begins`(_ damage: String) throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        let keys = (0..<200).map { "target number \($0) with a long key, so that the table needs several pages" }
        for key in keys { _ = try store.numbers(key) }
        store.record(noon, .begin(target: 0, .up, at: noon))
        store.close()
        let path = history.path("history.sqlite")
        switch damage {
        case "bytes": try Data("no database at all, and long enough to be one".utf8).write(to: URL(fileURLWithPath: path))
        case "page":
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
            try file.seek(toOffset: 4096 * 2)
            try file.write(contentsOf: Data(repeating: 0xA5, count: 4096 * 20))
            try file.close()
        default:
            let sql = damage == "table" ? "DROP TABLE ledger" : "ALTER TABLE hour RENAME COLUMN unknown TO tnknown"
            let queue = try DatabaseQueue(path: path)
            try queue.write { try $0.execute(sql: sql) }
            try queue.close()
        }
        let (second, recovered) = try history.open()
        #expect(recovered.targets.isEmpty && recovered.notes.count == 1)
        let aside = try #require(history.names.first { $0.hasPrefix("history.sqlite.damaged-20261125T120000Z") })
        #expect(recovered.notes.first?.contains(aside) == true)
        try expectEqual(second.numbers("new"), [0])
        second.close()
        let (third, again) = try history.open()
        #expect(again.notes.isEmpty && again.targets.map(\.key) == ["new"])
        third.close()
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `a log that is damaged anywhere costs its later turns at most`(seed: UInt64) throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        _ = try store.numbers("a")
        store.record(noon, .begin(target: 0, .up, at: noon))
        for index in 1...30 { store.record(noon + Int64(index) * 1_000, sample(0, noon + Int64(index) * 1_000)) }
        store.settle()
        let log = try #require(history.names.first { $0.hasPrefix("recent") })
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: history.path(log))))
        let used = (bytes.lastIndex { $0 != 0 } ?? 0) + 1
        var random = SplitMix64(seed: seed)
        let expected = (1...30).map { noon + Int64($0) * 1_000 }
        for place in 0..<used + 8 {
            var damaged = bytes
            switch seed {
            case 1: damaged[place] ^= UInt8(1 << (random.next() % 8))
            case 2: damaged = Array(damaged[..<place])
            default: for other in place..<damaged.count { damaged[other] = UInt8(truncatingIfNeeded: random.next()) }
            }
            let copy = "\(history.folder.path)/damaged.dat"
            try Data(damaged).write(to: URL(fileURLWithPath: copy))
            var times: [Int64] = []
            try TurnLogFile.read(copy) { _, turn in
                for case .sample(_, let sample) in turn.events { times.append(sample.time) }
                return true
            }
            expectEqual(times, Array(expected.prefix(times.count)), "seed \(seed), byte \(place)")
        }
        store.close()
    }

    @Test func `an incident is on the disk when its completion is called, and one that was open stays so after a kill`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        let endpoint = try Endpoint("192.0.2.1:443")
        let cause = Cause(
            .tcp, .refused, detail: "refused",
            evidence: ["errno": .text("ECONNREFUSED"), "n": .number(-3), "b": .flag(true), "l": .list(["x"])])
        func incident(_ id: String, from: Int64, to: Int64?) -> Incident {
            func moment(_ time: Int64) -> Moment { Moment(monotonicNanoseconds: 0, wallClockNanoseconds: time * 1_000_000) }
            return Incident(
                id: id, state: to == nil ? .open : .over, scope: .server, subject: .init(.target, "192.0.2.1:443"), cause: cause,
                targetCount: 12, targets: [endpoint], began: moment(from), ended: to.map(moment), moment: moment(to ?? from))
        }
        try expectEqual(store.numbers("192.0.2.1:443", "other:1"), [0, 1])
        let first = incident("one", from: noon, to: nil)
        let done = Completion()
        store.record(noon + 5_000)
        store.record(first) { done.signal() }
        done.wait()
        // The log has a thread of its own, so the incident can be on the disk before the turn.
        store.settle()
        let killed = try history.killed()
        for (id, from, to) in [("one", noon, noon + 9_000), ("two", noon + 20_000, noon + 30_000)] {
            store.record(incident(id, from: from, to: to)) {}
        }
        store.settle()
        let page = try store.query { try $0.incidents(0..<Int64.max) }
        expectEqual(
            page.elements,
            [
                incident("two", from: noon + 20_000, to: noon + 30_000), incident("one", from: noon, to: noon + 9_000),
            ])
        // A page at a time, and those of a target.
        let newest = try store.query { try $0.incidents(0..<Int64.max, of: 0, limit: 1) }
        expectEqual(newest.elements.map(\.id), ["two"])
        let next = try #require(newest.next)
        try expectEqual(store.query { try $0.incidents(0..<Int64.max, limit: 1, after: next) }.elements.map(\.id), ["one"])
        try expectEmpty(store.query { try $0.incidents(0..<Int64.max, of: 1) }.elements)
        let between = noon + 10_000..<noon + 15_000
        try expectEmpty(store.query { try $0.incidents(between) }.elements)
        store.close()

        let (second, recovered) = try killed.open(at: noon + 60_000)
        expectEqual(recovered.interrupted, [first])
        try expectEqual(
            second.query { try $0.incidents(0..<Int64.max) }.elements, [first])
        second.close()
    }

    @Test func `path events are returned in their order, and the last 10,000 are kept`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        for index in 0..<3 { store.record(pathEvent: #"{"n":\#(index)}"#, at: noon + Int64(index)) }
        store.settle()
        let events = try store.query { try $0.pathEvents(0..<Int64.max) }
        expectEqual(events.map(\.record), [#"{"n":0}"#, #"{"n":1}"#, #"{"n":2}"#])
        try expectEqual(store.query { try $0.pathEvents(0..<Int64.max, limit: 1) }.map(\.time), [noon + 2])
        try store.database.write { database in
            for index in 0..<10_500 {
                try database.execute(sql: "INSERT INTO path_event (time, record) VALUES (?, '{}')", arguments: [index])
            }
        }
        store.record(pathEvent: "{}", at: noon)
        store.settle()
        let count = try store.query { try $0.pathEvents(0..<Int64.max, limit: 20_000) }.count
        expectEqual(count, HistoryDatabase.pathEventLimit)
        store.close()
    }

    @Test func `a target keeps its number and its history when its names change`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        try expectEqual(store.numbers("a", "b", "a"), [0, 1, 0])
        store.register([.init(id: "a", text: "a.example:1", title: "another title")]) { _ in }
        store.settle()
        try expectEqual(
            store.query { try $0.targets() }.map(\.names),
            [
                .init(id: "a", text: "a.example:1", title: "another title"), .init(id: nil, text: "b", title: "title of b"),
            ])
        try expectEqual(store.numbers("c", "a"), [2, 0])
        store.close()
    }
}
