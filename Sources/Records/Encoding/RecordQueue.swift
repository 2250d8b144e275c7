import FoundationEssentials
import Reachability

/// A bounded queue of the records that a reader has not read yet.
///
/// Up to `limit` bytes (the estimated size as JSON), all records are kept. Beyond the limit, a record that a newer one replaces
/// is dropped, and the next record after it counts it in ``Record/superseded``. The first record of a stream is never dropped.
/// Above the limit, the queue has at most one record for each subject.
package struct RecordQueue {
    private enum Slot {
        case record(Record, size: Int)
        /// The number of records that were dropped at this position.
        case dropped(Int)
    }

    private let limit: Int
    private var slots: [Slot] = []
    private var head = 0
    /// The index in `slots` of the newest record on each subject; `nil` until the limit is exceeded, because most streams never need it.
    private var newest: [Subject: Int]?
    private var droppedSlots = 0
    /// The estimated size of the queued records in bytes.
    package private(set) var size = 0

    package init(limit: Int) {
        self.limit = limit
    }

    package var isEmpty: Bool { slots.count - head == droppedSlots }

    package mutating func push(_ record: Record) {
        var record = record
        let added = record.estimatedSize
        if size + added > limit { replaceOlder(by: &record) }
        // Without an index, the subject is not needed.
        if newest != nil, let subject = record.subject { newest?[subject] = slots.count }
        slots.append(.record(record, size: added))
        size += added
        if droppedSlots > 64, droppedSlots > slots.count / 2 { compact() }
    }

    /// Removes and returns the oldest record.
    package mutating func take() -> Record? {
        var superseded = 0
        while head < slots.count {
            let slot = slots[head]
            head += 1
            switch slot {
            case .dropped(let count):
                droppedSlots -= 1
                superseded += count
            case .record(var record, let recordSize):
                size -= recordSize
                record.superseded += superseded
                if newest != nil, let subject = record.subject, newest?[subject] == head - 1 { newest?[subject] = nil }
                if head > 64, head > slots.count / 2 { compact() }
                return record
            }
        }
        slots.removeAll(keepingCapacity: slots.count <= 64)
        head = 0
        newest = nil
        return nil
    }

    /// Drops the newest queued record on the same subject, whose reasons and counts `record` takes over.
    private mutating func replaceOlder(by record: inout Record) {
        if newest == nil { buildIndex() }
        guard let subject = record.subject, let position = newest?[subject],
            case .record(let older, let olderSize) = slots[position]
        else { return }
        record = record.replacing(older)
        size -= olderSize
        if position == slots.count - 1 {
            slots.removeLast()
            record.superseded += older.superseded + 1
        } else {
            slots[position] = .dropped(older.superseded + 1)
            droppedSlots += 1
        }
    }

    private mutating func buildIndex() {
        var index: [Subject: Int] = [:]
        for place in head..<slots.count {
            if case .record(let record, _) = slots[place], let subject = record.subject { index[subject] = place }
        }
        newest = index
    }

    /// Removes the slots of taken and dropped records. With the new index, it costs less than the pushes that caused it.
    private mutating func compact() {
        var kept: [Slot] = []
        var superseded = 0
        newest = nil
        for slot in slots[head...] {
            switch slot {
            case .dropped(let count): superseded += count
            case .record(var record, let size):
                record.superseded += superseded
                superseded = 0
                kept.append(.record(record, size: size))
            }
        }
        (slots, head, droppedSlots) = (kept, 0, 0)
    }
}

extension Record {
    /// The approximate size of the record as JSON in bytes.
    package var estimatedSize: Int {
        switch event {
        case .path(let update):
            let interfaces = update.path.interfaces.reduce(0) { $0 + 130 + 28 * $1.addresses.count }
            return 600 + interfaces + (update.path.cause?.estimatedSize ?? 0)
        case .server(_, let update):
            return 320 + update.endpoint.text.utf8.count + ((update.pending ?? update.cause)?.estimatedSize ?? 0)
        case .probe(_, let report):
            return 260 + report.endpoint.text.utf8.count + (report.cause?.estimatedSize ?? 0)
        case .incident(let incident):
            let targets = incident.targets.reduce(0) { $0 + 3 + $1.text.utf8.count }
            return 470 + (incident.subject.name?.utf8.count ?? 0) + targets + incident.cause.estimatedSize
        case .resync, .gap, .ended: return 160
        }
    }
}
