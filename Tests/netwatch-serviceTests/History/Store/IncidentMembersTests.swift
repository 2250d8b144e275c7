import Expectations
import Foundation
import GRDB
import NetworkLab
import Pacing
import Reachability
import Records
import Testing

@testable import netwatch_service

/// The targets of incidents in the history.
@Suite(.timeLimit(.minutes(5))) struct IncidentMembersTests {
    private let noon = TestHistory.noon

    private func incident(_ id: String, targets: [String] = [], seconds: Int64 = 0, over: Int64? = nil) throws -> Incident {
        func date(_ seconds: Int64) -> Date { Date(timeIntervalSince1970: Double(noon / 1_000 + seconds)) }
        return Incident(
            id: id, scope: .path, subject: .init(.gateway, "192.0.2.1"),
            cause: Cause(.neighbor, .gatewaySilent, detail: "the gateway 192.0.2.1 does not answer on its link"),
            targetCount: 12, targets: try targets.map { try Endpoint($0) }, from: date(seconds), to: over.map(date))
    }

    private func incidents(_ store: HistoryStore, of number: Int) throws -> [String] {
        try store.query { try $0.incidents(.min..<(.max), of: number).elements.map(\.id) }
    }

    @Test func `an incident of many targets is found by each of them, and is an outage of each in the report`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        let texts = (0..<25).map { "host-\($0).example:80" }
        store.register(texts.map { .init(id: nil, text: $0, title: $0) }) { _ in }
        store.record(HistoryTurn(TestHistory.reading(noon), texts.indices.map { .begin(target: $0, .up, at: noon) }))
        store.record(try incident("few", targets: [texts[3]]), of: TargetSet([3, 24])) {}
        store.record(try incident("many", targets: Array(texts.prefix(10)), seconds: 1, over: 5), of: TargetSet(0..<24)) {}
        store.settle()
        #expect(try incidents(store, of: 3) == ["many", "few"] && incidents(store, of: 24) == ["few"])
        #expect(try incidents(store, of: 23) == ["many"] && incidents(store, of: 25).isEmpty)
        try expectEqual(
            store.query { try $0.members(.min..<(.max)) }, ["few": TargetSet([3, 24]), "many": TargetSet(0..<24)])
        let period = try HistoryPeriod(since: "1m", until: nil, now: noon + 9_000, offset: { _ in 0 })
        let moment = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: (noon + 9_000) * 1_000_000)
        func worst(_ target: String?) throws -> [[String]] {
            try store.query { reader in
                try HistoryAnswers(source: TestHistory.source, timeZone: "UTC").report(
                    .init(period: period, target: target), reader, at: moment
                ).targets
                    .map { $0.worst.map(\.id) }
            }
        }
        let all = try worst(nil)
        // The longest one comes first.
        #expect(all[3] == ["few", "many"] && all[23] == ["many"] && all[24] == ["few"])
        try expectEqual(worst(texts[23]), [["many"]])
        let answered = try store.query { reader in
            try HistoryAnswers(source: TestHistory.source, timeZone: "UTC").history(
                .init(period: period, target: texts[23]), reader, at: moment)
        }
        expectEqual(answered.incidents.map(\.incident.id), ["many"])
        expectEqual(answered.incidents.map(\.incident.targets.count), [10])
        store.close()
    }

    @Test func `targets that join later belong to the incident, and those of earlier states remain`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        _ = try store.numbers("a:1")
        for members in [[0, 1, 2], [2, 3], Array(40..<60), [7]] {
            store.record(try incident("one"), of: TargetSet(members)) {}
            store.settle()
        }
        let expected = TargetSet([0, 1, 2, 3, 7] + (40..<60))
        try expectEqual(store.query { try $0.members(.min..<(.max)) }, ["one": expected])
        for number in expected.numbers { try expectEqual(incidents(store, of: number), ["one"], "\(number)") }
        store.close()
        // After a restart, and after its removal.
        let (second, _) = try history.open(at: noon + 60_000)
        try expectEqual(incidents(second, of: 41), ["one"])
        second.record(try incident("one", over: 5)) {}
        second.settle()
        var retention = Retention()
        retention.days = 1
        try second.database.apply(retention, at: noon + 10 * 86_400_000)
        try expectEmpty(second.query { try $0.members(.min..<(.max)) })
        let rows = try second.database.read { database in
            try ["member", "members"].map { try Int.fetchOne(database, sql: "SELECT count(*) FROM \($0)") }
        }
        expectEqual(rows, [0, 0])
        second.close()
    }

    @Test func `a fault of 10,000 targets that join in any order writes little`() throws {
        var random = SplitMix64(seed: 11)
        var members = TargetSet()
        var bytes = 0
        for second in 1...10 {
            while members.count < second * 1_000 { members.insert(Int(random.next() % 10_000)) }
            bytes += members.bytes.count
        }
        // The incident is written at most once a second while the first probes fail.
        #expect(bytes < 60_000, "\(bytes) bytes")
        expectEqual(members.bytes.count, 3)
    }

    @Test(.skippedByThreadSanitizer, arguments: 1...6 as ClosedRange<UInt64>)
    func `an encoded set is the same, and other bytes are none`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let limit = seed % 2 == 0 ? 300 : UInt64(TurnCoder.targetLimit)
        let set = TargetSet((0..<200).map { _ in Int(random.next() % limit) } + [0, TurnCoder.targetLimit - 1])
        expectEqual(TargetSet(bytes: set.bytes), set)
        expectNil(TargetSet(bytes: set.bytes.dropLast()))
        expectEqual(TargetSet(bytes: []), TargetSet())
        for _ in 0..<2_000 {
            let bytes = (0..<Int(random.next() % 12)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            if let decoded = TargetSet(bytes: bytes) { #expect(decoded.ranges.last?.upperBound ?? 0 <= TurnCoder.targetLimit) }
        }
    }

    @Test(arguments: Incident.State.allCases, Incident.Kind.allCases)
    func `the history has the state and the kind of an incident`(state: Incident.State, kind: Incident.Kind) throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        var expected = try incident("1", over: state == .open ? nil : 5)
        expected = Incident(
            id: expected.id, kind: kind, state: state, into: state == .merged ? "2" : nil, scope: .server,
            subject: .init(.host, "192.0.2.9"), cause: expected.cause, targetCount: 2, targets: [], began: expected.began,
            ended: expected.ended, moment: expected.moment)
        store.record(expected) {}
        store.settle()
        let found = try #require(try store.query { try $0.incidents(.min..<(.max)).elements.first })
        #expect(found.state == state && found.kind == kind && found.into == expected.into)
        #expect(found.subject == expected.subject && found.ended?.milliseconds == expected.ended?.milliseconds)
        store.close()
    }

    // MARK: The schema before

    /// Creates a history of the schema 1 with two targets, of which one has another text now, and an incident of both.
    private func former() throws -> TestHistory {
        let history = try TestHistory()
        try FileManager.default.createDirectory(atPath: history.settings.directory, withIntermediateDirectories: true)
        let queue = try DatabaseQueue(path: history.path("history.sqlite"))
        try HistorySchema.migrator.migrate(queue, upTo: "1")
        try queue.write { [noon] database in
            try database.execute(
                sql: """
                    INSERT INTO target VALUES (0, 'a.example:1', NULL, 'a.example:1', 'a'), (1, 'b', 'b', 'b.example:1', 'b');
                    INSERT INTO incident VALUES ('old', \(noon), \(noon + 5_000), 'path', 'gateway', '192.0.2.1',
                        '{"layer":"neighbor","code":"gateway-silent","detail":"silent","evidence":{}}', 2, '["a.example:1","c.example:1"]');
                    INSERT INTO incident_target VALUES ('a.example:1', \(noon), 'old'), ('c.example:1', \(noon), 'old');
                    INSERT INTO gap VALUES (\(noon), \(noon + 1), 'stopped');
                    """)
        }
        try queue.close()
        return history
    }

    @Test func `an older schema migrates, and its incidents are found by the numbers of their targets`() throws {
        let history = try former()
        let (store, recovered) = try history.open(at: noon + 60_000)
        #expect(recovered.notes.isEmpty && recovered.targets.map(\.key) == ["a.example:1", "b"])
        #expect(try incidents(store, of: 0) == ["old"] && incidents(store, of: 1).isEmpty)
        try expectEqual(store.query { try $0.gaps(.min..<(.max)) }.count, 1)
        store.record(try incident("new", seconds: 20), of: TargetSet(0..<20)) {}
        store.settle()
        #expect(try incidents(store, of: 0) == ["new", "old"] && incidents(store, of: 1) == ["new"])
        try expectEqual(store.database.number("schema"), Int64(HistorySchema.version))
        store.close()
        let (second, again) = try history.open(at: noon + 90_000)
        expectEmpty(again.notes)
        try expectEqual(incidents(second, of: 0), ["new", "old"])
        second.close()
    }

    @Test func `hours of an older schema have no response times, and those that follow do`() throws {
        let history = try former()
        let queue = try DatabaseQueue(path: history.path("history.sqlite"))
        try queue.write { [noon] database in
            try database.execute(
                sql: """
                    INSERT INTO hour VALUES (\(noon - 3_600_000), 0, \(noon), 0, 3600000, 0, 0, 0, 0, 0, 360, 0, 0, 0, x'010303082a');
                    """)
        }
        try queue.close()
        let reader = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
        let former = try reader.summaries(.hour, of: 0, noon - 3_600_000..<noon)
        #expect(former.map(\.roundTrips.count) == [42] && former.map(\.responseTimes.count) == [0])
        reader.close()
        let (store, _) = try history.open(at: noon)
        store.record(noon, .begin(target: 0, .up, at: noon))
        for minute in 0..<61 {
            let time = noon + Int64(minute) * 60_000
            store.record(time, .sample(target: 0, Sample(time: time, state: .up, roundTrip: 3, responseTime: 4_000)))
        }
        try store.checkpointAndWait()
        let hours = try store.query { [noon] in try $0.summaries(.hour, of: 0, noon - 3_600_000..<Int64.max) }
        expectEqual(hours.map(\.responseTimes.count), [0, 60])
        expectEqual(hours[1].responseTimes.quantile(0.99), 4_000)
        let day = try store.query { [noon] in try $0.summaries(noon..<noon + 3_600_000, of: 0) }[0]
        #expect(day?.responseTimes.count == 60 && day?.roundTrips.count == 60)
        let samples = try store.query { [noon] in try $0.samples(of: 0, noon..<Int64.max) }.elements
        #expect(samples.count == 61 && samples.allSatisfy { $0.responseTime == 4_000 })
        store.close()
    }

    @Test func `an older schema is read without a migration`() throws {
        let history = try former()
        for _ in 0..<2 {
            let reader = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
            try expectEqual(reader.incidents(.min..<(.max), of: 0).elements.map(\.id), ["old"])
            try expectEmpty(reader.incidents(.min..<(.max), of: 1).elements)
            try expectEqual(reader.members(.min..<(.max)), ["old": TargetSet([0])])
            try expectEqual(
                reader.targets().map(\.names.identity), [TargetIdentity(name: "a"), TargetIdentity(id: "b", name: "b")])
            try expectEqual(reader.number(ofTarget: "b"), 1)
            try expectNil(reader.number(ofTarget: "c"))
            reader.close()
        }
    }
}
