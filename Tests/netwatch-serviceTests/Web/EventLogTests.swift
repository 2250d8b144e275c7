import Expectations
import Testing

@testable import netwatch_service

@Suite struct EventLogTests {
    private func event(_ number: Int, _ subject: String? = nil, key: String? = nil, size: Int = 0) -> EventLog.Event {
        let padding = String(repeating: " ", count: size)
        return EventLog.Event(type: "target", subject: subject, key: key, json: Array("{\"n\":\(number)\(padding)}".utf8))
    }

    private func log(_ limits: EventLog.Limits = EventLog.Limits(), events: [EventLog.Event]) -> EventLog {
        var log = EventLog(limits: limits)
        for event in events { log.append(event) }
        return log
    }

    /// Reads everything after a cursor. - Returns: The lines of data, and the cursor at the end; `nil` if the reader is lost.
    private func read(_ log: EventLog, after seq: Int, keys: Set<String>? = nil) -> (lines: [String], seq: Int)? {
        var (cursor, text) = (EventLog.Cursor(seq: seq), "")
        while true {
            switch log.read(after: cursor, keys: keys) {
            case .frames(let frames, let after):
                text += String(decoding: frames, as: UTF8.self)
                cursor = after
            case .none(let after):
                return (text.split(separator: "\n").filter { $0.hasPrefix("data") }.map(String.init), after.seq)
            case .lost: return nil
            }
        }
    }

    @Test func `a record is three lines and an empty one`() {
        let log = log(events: [event(7)])
        expectEqual(
            log.read(after: EventLog.Cursor(seq: -1)),
            .frames(Array("id: 0\nevent: target\ndata: {\"n\":7}\n\n".utf8), EventLog.Cursor(seq: 0)))
    }

    @Test func `a reader continues after its last record`() throws {
        let log = log(events: (0..<5).map { event($0) })
        #expect(try #require(read(log, after: 2)) == (["data: {\"n\":3}", "data: {\"n\":4}"], 4))
        #expect(try #require(read(log, after: 4)) == ([], 4))
    }

    @Test func `places that the log does not have are lost`() {
        let log = log(EventLog.Limits(records: 3), events: (0..<10).map { event($0) })
        #expect(log.count == 3 && log.first == 7)
        for seq in [-1, 5, 10, 11, Int.max, Int.min] { expectNil(read(log, after: seq), "\(seq)") }
        expectEqual(read(log, after: 6)?.lines.count, 3)
        expectNil(read(EventLog(), after: 0))
        expectEqual(read(EventLog(), after: -1)?.seq, -1)
    }

    @Test func `the bytes are limited, and the newest record always stays`() {
        let log = log(EventLog.Limits(bytes: 1_000), events: (0..<500).map { event($0, size: 100) } + [event(500, size: 5_000)])
        #expect(log.count == 1 && log.next == 501)
        expectEqual(read(log, after: 499)?.lines.count, 1)
    }

    @Test func `a reader with exactly the limit of unread bytes is not slow`() throws {
        let events = (0..<5).map { event($0, "one") }
        let bytes = events.reduce(0) { $0 + $1.json.count }
        for (limit, count) in [(bytes - 1, 1), (bytes, 5)] {
            try expectEqual(#require(read(log(EventLog.Limits(unread: limit), events: events), after: -1)).lines.count, count)
        }
    }

    @Test func `a slow reader does not receive records that newer ones replace`() throws {
        let events = (0..<100).map { event($0, $0 % 3 == 0 ? "a" : $0 % 3 == 1 ? "b" : nil, size: 100) }
        let slow = log(EventLog.Limits(unread: 1_000), events: events)
        let (lines, seq) = try #require(read(slow, after: -1))
        #expect(seq == 99 && lines.count < 100)
        let superseded = lines.compactMap { $0.firstMatch(of: #/"superseded":(\d+)}$/#).flatMap { Int($0.1) } }.reduce(0, +)
        expectEqual(superseded + lines.count, 100)
        // Records that nothing replaces, and the newest ones, arrive.
        let numbers = lines.compactMap { $0.firstMatch(of: #/"n":(\d+)/#).flatMap { Int($0.1) } }
        #expect(Set((0..<100).filter { $0 % 3 == 2 } + [97, 99]).isSubset(of: numbers))
        // A reader that keeps up receives all.
        try expectEqual(#require(read(slow, after: 95)).lines.count, 4)
    }

    @Test func `a reader of some targets receives their records and those without a target`() throws {
        let log = log(events: [event(0, key: "a"), event(1, key: "b"), event(2), event(3, key: "c")])
        try expectEqual(#require(read(log, after: -1, keys: ["a"])).lines, ["data: {\"n\":0}", "data: {\"n\":2}"])
        try expectEqual(#require(read(log, after: -1, keys: ["c", "b"])).lines.count, 3)
        // The cursor passes what is left out.
        expectEqual(read(log, after: 2, keys: ["a"])?.seq, 3)
    }

    @Test func `random records are received once and in order, or counted`() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var state = seed
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        for _ in 0..<200 {
            var log = EventLog(limits: EventLog.Limits(bytes: 20_000, records: 1 + random(200), unread: 500 + random(2_000)))
            var (cursor, received, superseded, last) = (EventLog.Cursor(seq: -1), 0, 0, -1)
            for number in 0..<300 {
                log.append(event(number, random(2) == 0 ? nil : "\(random(4))", size: random(50)))
                guard random(10) == 0 else { continue }
                switch log.read(after: cursor) {
                case .frames(let frames, let after):
                    for line in String(decoding: frames, as: UTF8.self).split(separator: "\n") where line.hasPrefix("id: ") {
                        let seq = try #require(Int(line.dropFirst(4)))
                        #expect(seq > last, "seed \(seed)")
                        (last, received) = (seq, received + 1)
                    }
                    superseded += String(decoding: frames, as: UTF8.self).matches(of: #/"superseded":(\d+)}/#)
                        .compactMap { Int($0.1) }.reduce(0, +)
                    cursor = after
                    expectEqual(received + superseded + cursor.superseded, cursor.seq + 1, "seed \(seed)")
                case .none(let after): cursor = after
                case .lost:
                    #expect(cursor.seq < log.first - 1, "seed \(seed)")
                    (cursor, received, superseded) = (EventLog.Cursor(seq: log.next - 1), log.next, 0)
                    last = log.next - 1
                }
            }
        }
    }
}
