import Expectations
import Foundation
import GRDB
import NetworkLab
import Pacing
import Reachability
import Testing

@testable import netwatch_service

/// Values that no version of the service writes, in a database that SQLite finds in order.
@Suite(.timeLimit(.minutes(5))) struct DamagedValuesTests {
    private let noon = TestHistory.noon

    /// A stopped history with rows in each table.
    private static func history() throws -> TestHistory {
        let (noon, history) = (TestHistory.noon, try TestHistory())
        let (store, _) = try history.open()
        _ = try store.numbers("a", "b")
        store.record(noon, .begin(target: 0, .up, at: noon), .begin(target: 1, .up, at: noon))
        for step in 1...6 {
            let time = noon + Int64(step) * TestHistory.hour * 5
            store.record(time, .sample(target: 0, Sample(time: time, state: step % 2 == 0 ? .up : .down, roundTrip: 5)))
            if step % 2 == 0 { store.record(time, .gap(HistoryGap(period: time - 1_000..<time, reason: .suspend))) }
            try store.checkpointAndWait()
        }
        for number in 0..<3 {
            let incident = Incident(
                id: "\(number)", scope: .server, subject: .init(.target, "a"), cause: Cause(.tcp, .refused, detail: "refused"),
                from: Date(timeIntervalSince1970: Double(noon) / 1_000))
            store.record(incident, of: TargetSet(0..<(number == 0 ? 2 : 12))) {}
            store.record(pathEvent: #"{"status":"satisfied","interface":"eth0","reasons":[],"cause":null}"#, at: noon)
        }
        store.settle()
        store.close()
        return history
    }

    /// Changes about a third of the rows, each in one column. - Returns: The changes.
    private static func damage(_ path: String, _ random: inout SplitMix64) throws -> [String] {
        let values = [
            "0", "-1", "9223372036854775807", "-9223372036854775808", "1000000000000000", "'x'", "NULL", "x''", "x'80ff'",
            "zeroblob(300)", "1.5", "1e308",
        ]
        var changes: [String] = []
        let queue = try DatabaseQueue(path: path)
        try queue.writeWithoutTransaction { database in
            let tables = try String.fetchAll(
                database,
                sql: """
                    SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'grdb%' ORDER BY name
                    """)
            for table in tables {
                // Also generated ones, which GRDB's method leaves out.
                let columns = try String.fetchAll(database, sql: "SELECT name FROM pragma_table_xinfo(?)", arguments: [table])
                let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM \(table)") ?? 0
                for row in 0..<count where random.next() % 3 == 0 {
                    let column = columns[Int(random.next() % UInt64(columns.count))]
                    let value = values[Int(random.next() % UInt64(values.count))]
                    let key = table == "meta" ? "key" : table == "incident" ? "id" : columns[0]
                    let sql = """
                        UPDATE OR IGNORE \(table) SET \(column) = \(value)
                        WHERE \(key) = (SELECT \(key) FROM \(table) LIMIT 1 OFFSET \(row))
                        """
                    // A constraint or a generated column refuses some of them.
                    if (try? database.execute(sql: sql)) != nil { changes.append("\(table).\(column) = \(value)") }
                }
            }
        }
        try queue.close()
        return changes
    }

    @Test func `values of any type end no reader and no start`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("damaged values: seed \(seed)")
        var random = SplitMix64(seed: seed)
        let stopped = try Self.history()
        let moment = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: (noon + 40 * TestHistory.hour) * 1_000_000)
        for _ in 0..<(Sanitizer.isUsed ? 5 : 15) {
            // Other tests of this process have as few threads as there are processors.
            await Task.yield()
            let copy = try stopped.killed()
            let changes = try Self.damage(copy.path("history.sqlite"), &random)
            try #require(!changes.isEmpty)
            print(changes.joined(separator: ", "))
            let period = try HistoryPeriod(
                since: "90d", until: nil, now: noon + 40 * TestHistory.hour, offset: TimeZone.gmt.offset)
            @Sendable func ask(_ reader: HistoryReader) {
                let answers = HistoryAnswers(source: TestHistory.source, timeZone: "UTC")
                for target in [nil, "a"] {
                    var question = HistoryAnswers.Question(period: period, target: target)
                    _ = try? answers.history(question, reader, at: moment).json()
                    _ = try? answers.report(question, reader, at: moment).json()
                    question.includesSamples = true
                    _ = try? answers.history(question, reader, at: moment).json()
                }
            }
            if let reader = try? HistoryReader.open(directory: copy.settings.directory, calendar: copy.calendar) {
                ask(reader)
                reader.close()
            }
            do throws(StoreError) {
                let (store, _) = try HistoryStore.open(
                    copy.settings, calendar: copy.calendar, now: TestHistory.reading(noon + 40 * TestHistory.hour)
                ) { _ in }
                _ = try? store.numbers("a", "c")
                store.record(noon + 41 * TestHistory.hour, .begin(target: 0, .up, at: noon + 41 * TestHistory.hour))
                _ = try? store.checkpointAndWait()
                _ = try? store.query { ask($0) }
                store.close()
            } catch {
                // A line, and exit code 74.
                expectEqual(error.code, .inputOutput, "\(error.reason) \(changes)")
            }
        }
    }

    @Test(arguments: [Int64.max, .min, -1, 1 << 60]) func `a last time of any value starts`(time: Int64) throws {
        let stopped = try Self.history()
        let queue = try DatabaseQueue(path: stopped.path("history.sqlite"))
        try queue.write { database in
            for key in ["last_alive", "last_monotonic", "last_boottime"] { try HistoryDatabase.set(key, time, database) }
        }
        try queue.close()
        let (store, recovered) = try stopped.open(at: noon + 40 * TestHistory.hour)
        expectEqual(recovered.targets.map(\.key), ["a", "b"])
        store.close()
    }
}
