import EventLoop
import Expectations
import Foundation
import Glibc
import GRDB
import NetworkLab
import Reachability
import Testing

@testable import netwatch_service

/// Full disks, directories without permission, the limits of the retention, and slow queries.
@Suite(.timeLimit(.minutes(5))) struct HistoryDiskTests {
    private let noon = TestHistory.noon
    private let hour = TestHistory.hour

    @Test(.requiresMounts) func `on a full disk nothing traps, and when there is room again the time between is a gap`() throws {
        let (noon, history) = (noon, try TestHistory())
        let (folder, settings, statuses) = (history.folder, history.settings, history.statuses)
        try TestDisk.withOwnMounts {
            try TestDisk.mount(folder.path, size: "4m")
            let (store, _) = try HistoryStore.open(
                settings, calendar: DayCalendar { _ in 0 }, now: TestHistory.reading(noon)
            ) { status in statuses.withLock { $0.append(status) } }
            _ = try store.numbers("a")
            store.record(noon, .begin(target: 0, .up, at: noon))
            store.record(noon + 1_000, .sample(target: 0, Sample(time: noon + 1_000, state: .up, roundTrip: 1)))
            store.settle()
            // The write-ahead log of a long run may have room that its transactions do not use.
            try store.database.queue().writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
            let filler = try TestDisk.fill(folder.path)

            // The log has pages that are allocated. When it must grow, recording fails.
            var time = noon + 1_000
            var events: [HistoryEvent] = []
            while store.status.isRecording {
                time += 1_000
                events = (0..<500).map {
                    let sample = Sample(
                        time: time - Int64($0 % 3), state: $0 % 2 == 0 ? .up : .down, roundTrip: UInt32($0 * 7_919))
                    return .sample(target: 0, sample)
                }
                store.record(HistoryTurn(TestHistory.reading(time), events))
                store.settle()
                try #require(time < noon + 1_000_000)
            }
            let lost = time
            #expect(store.status.reason?.contains("No space left on device") == true)
            #expect(store.status.since == lost && store.droppedSamples == 500)
            // An incident waits, and so does a checkpoint.
            let isRecorded = Locked(false)
            let incident = Incident(
                id: "one", scope: .server, subject: .init(.target, "a"), cause: Cause(.tcp, .refused, detail: "refused"),
                from: Date(timeIntervalSince1970: 1_795_608_001))
            store.record(incident) { isRecorded.withLock { $0 = true } }
            #expect(throws: StoreError.self) { try store.checkpointAndWait() }
            for _ in 0..<5 {
                time += 2_000
                store.record(HistoryTurn(TestHistory.reading(time), events))
                store.settle()
            }
            #expect(!store.status.isRecording && !isRecorded.withLock { $0 })
            // A query still works.
            try expectEqual(store.query { try $0.targets() }.count, 1)

            unlink(filler)
            let before = time
            for _ in 0..<10 {
                time += 2_000
                store.record(time, .change(target: 0, .degraded, at: time))
                store.settle()
            }
            #expect(store.status.isRecording && isRecorded.withLock { $0 })
            expectEqual(statuses.withLock { $0.map(\.isRecording) }, [false, true])
            store.close()
            let (second, recovered) = try HistoryStore.open(
                settings, calendar: DayCalendar { _ in 0 }, now: TestHistory.reading(time)
            ) { _ in }
            let gap = try #require(try second.query { try $0.gaps(0..<Int64.max) }.first)
            #expect(gap.reason == .notRecorded && gap.period.lowerBound == lost - 1_000)
            #expect(before - 2_000...before + 6_000 ~= gap.period.upperBound)
            let times = try #require(recovered.ledgers[0]?.currentHour.times)
            expectEqual(times[.notRecorded], gap.period.upperBound - gap.period.lowerBound)
            expectEqual(times.total, time - noon)
            try expectEqual(second.query { try $0.incidents(0..<Int64.max) }.elements.map(\.id), ["one"])
            second.close()
        }
    }

    @Test(.requiresMounts, arguments: [0, 4096, 40_000, 100_000])
    func `opening on a nearly full disk works or fails with the reason`(free: Int) throws {
        let history = try TestHistory()
        let (folder, settings) = (history.folder, history.settings)
        try TestDisk.withOwnMounts {
            try TestDisk.mount(folder.path, size: "2m")
            let filler = try TestDisk.fill(folder.path, leaving: free)
            let open = {
                try HistoryStore.open(settings, calendar: DayCalendar { _ in 0 }, now: TestHistory.reading(TestHistory.noon)) {
                    _ in
                }.store
            }
            do {
                let store = try open()
                store.record(TestHistory.noon)
                store.close()
            } catch let error as StoreError {
                #expect(error.code == .inputOutput || error.code == .refused, "\(error)")
            }
            unlink(filler)
            let store = try open()
            try expectEqual(store.numbers("a"), [0])
            store.close()
        }
    }

    @Test func `the history of a stopped service is read without permission to write`() throws {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        // While the service runs.
        let running = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
        try expectEqual(running.summaries(noon..<noon + 5_000)[0]?.times[.up], 5_000)
        try expectEqual(running.lastAlive(), noon + 5_000)
        running.close()
        store.close()
        let before = history.names
        chmod(history.path("history.sqlite"), 0o444)
        chmod(history.settings.directory, 0o555)
        defer { chmod(history.settings.directory, 0o755) }
        let stopped = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
        try expectEqual(stopped.summaries(noon..<noon + 5_000)[0]?.times[.up], 5_000)
        stopped.close()
        #expect(history.names == before || getuid() == 0)
    }

    @Test(.requiresMounts, arguments: [true, false])
    func `the history on a read-only file system is read, also after a kill`(isStopped: Bool) throws {
        let (stopped, killed) = try TestHistory.withTurns()
        let history = isStopped ? stopped : killed
        let (folder, settings, noon) = (history.folder, history.settings, noon)
        try TestDisk.withOwnMounts {
            guard mount(folder.path, folder.path, "none", UInt(MS_BIND), nil) == 0,
                mount("none", folder.path, "none", UInt(MS_BIND | MS_REMOUNT | MS_RDONLY), nil) == 0
            else { throw POSIXError(.EPERM) }
            let reader = try HistoryReader.open(directory: settings.directory, calendar: DayCalendar { _ in 0 })
            try expectEqual(reader.summaries(noon..<noon + 5_000)[0]?.times[.up], 5_000)
            reader.close()
            let error = #expect(throws: StoreError.self) {
                _ = try HistoryStore.open(settings, calendar: DayCalendar { _ in 0 }, now: TestHistory.reading(noon)) { _ in }
            }
            expectEqual(error?.code, .refused)
        }
    }

    @Test func `a directory without a history is reported as missing`() throws {
        let history = try TestHistory()
        let error = #expect(throws: StoreError.self) {
            _ = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
        }
        expectEqual(error?.code, .missing)
    }

    /// Writes the hours and the blocks of a number of days.
    private func fillHistory(_ store: HistoryStore, targets: Int, days: Int) throws {
        for target in 0..<targets { _ = try store.numbers("target \(target)") }
        try store.database.write { [noon, hour] database in
            var summaries: [LedgerBook.Summary] = []
            for hourNumber in 0..<days * 24 {
                let start = noon - Int64(hourNumber + 1) * hour
                for target in 0..<targets {
                    var summary = PeriodSummary(start..<start + hour)
                    summary.times[.up] = hour
                    summary.add(Sample(time: start, state: .up, roundTrip: 7))
                    summaries.append(.init(target: target, summary: summary))
                    let samples = (0..<Int64(360)).map { index -> Sample in
                        let noise = index * 7_919
                        return Sample(time: start + index * 10_000 + noise % 40, state: .up, roundTrip: UInt32(noise % 900))
                    }
                    try database.execute(
                        sql: "INSERT INTO block (number, data) VALUES (?, ?)",
                        arguments: [HistorySchema.block(target, hour: start), Data(SampleBlock(samples).bytes)])
                }
            }
            try HistoryDatabase.write(summaries, to: "hour", database)
            var daily: [LedgerBook.Summary] = []
            for day in 0..<days {
                let start = noon - 12 * hour - Int64(day) * 24 * hour
                for target in 0..<targets {
                    daily.append(.init(target: target, summary: PeriodSummary(start..<start + 24 * hour)))
                }
            }
            try HistoryDatabase.write(daily, to: "day", database)
        }
    }

    private func count(_ table: String, _ store: HistoryStore) throws -> Int {
        try store.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \(table)") ?? -1 }
    }

    @Test func `samples, hours and days are removed when they are too old`() throws {
        let history = try TestHistory()
        history.settings.retention = Retention(samples: 2, hours: 5, days: 8)
        let (store, _) = try history.open()
        try fillHistory(store, targets: 3, days: 10)
        store.record(noon)
        try store.checkpointAndWait()
        // The hour and the day that end after the limit are kept.
        try expectEqual(count("block", store), 3 * (2 * 24 + 1))
        try expectEqual(count("hour", store), 3 * (5 * 24 + 1))
        #expect(try (8 * 3...9 * 3).contains(count("day", store)))
        store.close()
    }

    @Test func `a history that is too large loses the finest and oldest data first, and the file shrinks`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        try fillHistory(store, targets: 20, days: 6)
        let hours = try count("hour", store)
        let blocks = try count("block", store)
        store.record(noon)
        store.set(Retention(size: 1_000_000))
        try store.checkpointAndWait()
        func size() throws -> Int64 {
            try store.database.read {
                try (Int64.fetchOne($0, sql: "PRAGMA page_count") ?? 0) * (Int64.fetchOne($0, sql: "PRAGMA page_size") ?? 0)
            }
        }
        #expect(try size() <= 1_000_000)
        let remaining = try store.database.read { try Int64.fetchOne($0, sql: "SELECT min(hour) FROM block") }
        #expect(try count("block", store) < blocks && count("hour", store) == hours)
        #expect(try #require(remaining) > noon - 6 * 24 * hour)
        store.set(Retention(size: 200_000))
        try store.checkpointAndWait()
        #expect(try count("hour", store) < hours && count("day", store) == 20 * 6)
        #expect(try size() <= 200_000)
        store.close()
    }

    @Test func `bars have the states of each cell, in one pass`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        try fillHistory(store, targets: 3, days: 2)
        let cells = (0..<8).map { noon - Int64(8 - $0) * 6 * hour..<noon - Int64(7 - $0) * 6 * hour }
        let table = try store.query { try $0.bars(cells, .hour) }
        for target in 0..<3 {
            #expect(table[target].count == 8 && table[target].allSatisfy { $0.state == .up && $0.share(of: .up) == 1 })
        }
        expectEqual(table[3].map(\.state), Array(repeating: .notRecorded, count: 8))
        expectEqual(table[-1].count, 8)
        store.close()
    }

    @Test func `queries of any time have a result`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        try fillHistory(store, targets: 2, days: 1)
        // An empty hour is between the blocks. The day has not ended.
        try store.database.write { try $0.execute(sql: "DELETE FROM day; DELETE FROM block WHERE hour = \(noon - 5 * hour)") }
        for span in [Int64.min..<Int64.max, Int64.min..<noon, 0..<Int64.max] {
            try expectEqual(store.query { try $0.samples(of: 1, span, limit: 100_000) }.elements.count, 23 * 360)
            try expectEqual(store.query { try $0.summaries(.hour, of: 1, span) }.count, 24)
            try expectEqual(store.query { try $0.summaries(span) }[1]?.times[.up], 24 * hour)
            try expectEqual(
                store.query { try $0.gaps(span).count + $0.pathEvents(span).count + $0.incidents(span).elements.count }, 0)
        }
        for span in [Int64.min..<Int64.min, Int64.max..<Int64.max, noon..<noon] {
            try expectEmpty(store.query { try $0.samples(of: 1, span) }.elements)
            try expectEqual(store.query { try $0.summaries(span) }[1]?.times.total, 0)
        }
        // Pages have each sample once.
        var (cursor, times) = (String?.none, [Int64]())
        repeat {
            let page = try store.query { [cursor] in try $0.samples(of: 0, 0..<Int64.max, limit: 1_000, after: cursor) }
            times += page.elements.map(\.time)
            cursor = page.next
        } while cursor != nil
        #expect(times.count == 23 * 360 && Set(times).count == times.count)
        store.close()
    }

    @Test func `a query that needs too much time is interrupted`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        let reader = try HistoryReader(StateDirectory(path: history.settings.directory))
        // In the loop of rows.
        let late = #expect(throws: StoreError.self) {
            try reader.run(until: MonotonicClock.now() - 1) { try $0.checkTime() }
        }
        expectEqual(late?.code, .timedOut)
        // Within one step of SQLite: the next turn of the keeper interrupts it.
        let isOver = Locked(false)
        let interrupter = try Worker(name: "interrupter")
        interrupter.run { while !isOver.withLock({ $0 }) { reader.interruptOverdueQuery() } }
        let error = #expect(throws: StoreError.self) {
            try reader.run(until: MonotonicClock.now()) { reader in
                try reader.read {
                    try Int.fetchOne(
                        $0,
                        sql: "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n WHERE x < 0")
                }
            }
        }
        isOver.withLock { $0 = true }
        expectEqual(error?.code, .timedOut)
        try expectEmpty(reader.targets())
        reader.close()
        store.close()
    }
}
