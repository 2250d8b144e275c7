import Expectations
import Foundation
import Reachability
import RecordSamples
import Testing

@testable import Records

@Suite struct RecordQueueTests {
    static func drain(_ queue: inout RecordQueue) -> [Record] {
        var records: [Record] = []
        while let record = queue.take() { records.append(record) }
        return records
    }

    @Test func `below the limit all records are kept in order`() {
        var queue = RecordQueue(limit: 1 << 20)
        let events = Samples.oneOfEach + [Samples.path(at: 5), Samples.path(at: 6), Samples.server(at: 7)]
        for event in events { queue.push(Record(event: event)) }
        let records = Self.drain(&queue)
        expectEqual(records.map(\.event), events)
        #expect(records.allSatisfy { $0.superseded == 0 })
        #expect(queue.isEmpty)
        expectEqual(queue.size, 0)
    }

    @Test func `above the limit a newer path replaces the older and keeps its reasons`() {
        var queue = RecordQueue(limit: 0)
        queue.push(Record(event: Samples.hello))
        queue.push(Record(event: Samples.path(Samples.unsatisfied, [.resynced, .dnsChanged], suppressed: 2, at: 1)))
        queue.push(Record(event: Samples.path(Samples.unsatisfied, [.interfaceChanged, .dnsChanged], suppressed: 3, at: 2)))
        let records = Self.drain(&queue)
        expectEqual(
            records,
            [
                Record(event: Samples.hello),
                Record(
                    event: Samples.path(Samples.unsatisfied, [.interfaceChanged, .dnsChanged, .resynced], suppressed: 5, at: 2),
                    superseded: 1),
            ])
    }

    @Test func `the next record counts the dropped ones`() {
        var queue = RecordQueue(limit: 0)
        queue.push(Record(event: Samples.path(at: 1)))
        queue.push(Record(event: Samples.server(0, at: 2)))
        queue.push(Record(event: Samples.server(1, "192.0.2.8:1", at: 3)))
        queue.push(Record(event: Samples.path(at: 4)))
        queue.push(Record(event: Samples.path(at: 5)))
        let records = Self.drain(&queue)
        expectEqual(records.map(\.event.moment), [2, 3, 5].map(Samples.moment))
        expectEqual(records.map(\.superseded), [1, 0, 1])
    }

    @Test func `records on different targets and types do not replace each other`() {
        var queue = RecordQueue(limit: 0)
        let events = [Samples.server(0), Samples.server(1), Samples.probe(0), Samples.probe(1), Samples.path()]
        for event in events { queue.push(Record(event: event)) }
        expectEqual(Self.drain(&queue).map(\.event), events)
    }

    @Test func `above the limit a newer record of an incident replaces an older one, and none of another incident`() {
        var queue = RecordQueue(limit: 0)
        let other = Incident(
            id: "other", scope: .server, subject: .init(.target, "a:1"), cause: Samples.refused, from: Samples.moment(1).date)
        queue.push(Record(event: Samples.incident(1)))
        queue.push(Record(event: .incident(other)))
        queue.push(Record(event: Samples.incident(4)))
        queue.push(Record(event: Samples.incident(9, over: 2)))
        let records = Self.drain(&queue)
        expectEqual(records.map(\.event), [.incident(other), Samples.incident(9, over: 2)])
        expectEqual(records.map(\.superseded), [1, 1])
    }

    @Test func `hello and gaps are never dropped`() {
        var queue = RecordQueue(limit: 0)
        let gap = MonitorEvent.gap(from: Samples.moment(3), to: Samples.moment(4))
        let events = [Samples.hello, gap, Samples.hello, gap]
        for event in events { queue.push(Record(event: event)) }
        expectEqual(Self.drain(&queue).map(\.event), events)
    }

    @Test func `the first record of a target stays initial when it is replaced`() {
        var queue = RecordQueue(limit: 0)
        queue.push(Record(event: Samples.server(0, "192.0.2.9:22", .unknown, initial: true, at: 1)))
        queue.push(Record(event: Samples.server(0, "192.0.2.9:22", .up, at: 2)))
        expectEqual(
            Self.drain(&queue), [Record(event: Samples.server(0, "192.0.2.9:22", .up, initial: true, at: 2), superseded: 1)])
    }

    @Test func `a record that was taken is not replaced`() {
        var queue = RecordQueue(limit: 0)
        queue.push(Record(event: Samples.path(at: 1)))
        expectEqual(queue.take()?.event, Samples.path(at: 1))
        queue.push(Record(event: Samples.path(at: 2)))
        expectEqual(queue.take(), Record(event: Samples.path(at: 2)))
    }

    @Test func `records from before the limit was exceeded are replaced too`() {
        let size = Record(event: Samples.path(at: 1)).estimatedSize + Record(event: Samples.server(0, at: 2)).estimatedSize
        var queue = RecordQueue(limit: size)
        queue.push(Record(event: Samples.path(at: 1)))
        queue.push(Record(event: Samples.server(0, at: 2)))
        queue.push(Record(event: Samples.path(at: 3)))
        let records = Self.drain(&queue)
        expectEqual(records.map(\.event), [Samples.server(0, at: 2), Samples.path(at: 3)])
        expectEqual(records.map(\.superseded), [1, 0])
    }

    @Test func `a stopped reader costs bounded memory`() {
        var queue = RecordQueue(limit: 4096)
        for number in 0..<100_000 {
            queue.push(Record(event: number.isMultiple(of: 2) ? Samples.path() : Samples.server(number % 5)))
        }
        #expect(queue.size <= 4096 + 8 * 1500)
        let records = Self.drain(&queue)
        expectEqual(records.count + records.map(\.superseded).reduce(0, +), 100_000)
    }

    /// Compares the queue with a model: only replaced records are dropped, and each dropped record is counted at its position.
    @Test func `random operations keep the order and the count`() {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix(state: seed)
        var queue = RecordQueue(limit: 3000)
        var (pushed, seen, missing) = (0, 0, 0)
        var last: [Subject: Moment] = [:]
        for step in 0..<20_000 {
            if random.next() % 5 < 3 {
                let time = Double(step) / 1000
                let event: MonitorEvent =
                    switch random.next() % 4 {
                    case 0: Samples.path(at: time)
                    case 1: Samples.server(Int(random.next() % 5), at: time)
                    case 2: Samples.probe(Int(random.next() % 5), at: time)
                    default: .resync(.overrun, Samples.moment(time))
                    }
                queue.push(Record(event: event))
                pushed += 1
            } else if let record = queue.take() {
                seen += 1
                missing += record.superseded
                if let subject = record.subject {
                    if let before = last[subject], before >= record.event.moment { Issue.record("out of order, seed \(seed)") }
                    last[subject] = record.event.moment
                }
            }
        }
        for record in Self.drain(&queue) {
            seen += 1
            missing += record.superseded
        }
        expectEqual(seen + missing, pushed, "seed \(seed)")
        expectEqual(queue.size, 0, "seed \(seed)")
    }
}

/// The generator SplitMix64 (Steele, Lea, Flood), whose sequence depends on the seed alone.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
