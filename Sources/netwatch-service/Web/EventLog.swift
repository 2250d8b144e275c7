/// The last records of the service in their numbered order, encoded once for all streams: a ring of limited size.
///
/// A reader follows the log with a ``Cursor``. A reader that is slow loses records that a newer one replaces, and then all records that
/// the log no longer has.
struct EventLog {
    /// The size of the log.
    struct Limits: Hashable, Sendable {
        /// The maximum number of bytes of all records.
        var bytes = 4 << 20
        /// The maximum number of records.
        var records = 10_000
        /// The number of unread bytes above which a reader is slow: it does not receive records that a newer one replaces.
        var unread = 1 << 20
    }

    /// A record, as it was encoded.
    struct Event: Hashable, Sendable {
        /// The type of the record, as docs/command-line.md names it.
        var type: String
        /// The subject. A newer record on the same subject replaces this one; `nil` if none does.
        var subject: String?
        /// The key of the target that the record is about; `nil` for a record that every reader receives.
        var key: String?
        /// The record as one line of JSON, without the newline.
        var json: [UInt8]
    }

    /// The place of a reader in the log.
    struct Cursor: Hashable, Sendable {
        /// The number of the last record that the reader has received.
        var seq: Int
        /// The number of records that the reader did not receive, because newer ones replaced them.
        var superseded = 0
    }

    /// The result of reading.
    enum Batch: Hashable, Sendable {
        /// Records in the format of a stream, and the place after them.
        case frames([UInt8], Cursor)
        /// No record is left.
        case none(Cursor)
        /// The log no longer has the next record of the reader, or never had the last one.
        case lost
    }

    private struct Slot {
        var event: Event
        /// The bytes of all records up to the end of this one, since the start of the service.
        var end: Int
    }

    /// The number of bytes after which a batch ends.
    static let batchSize = 1 << 16

    let limits: Limits
    /// The identifier of the record with the number 0. A service that starts later has larger ones, so that a reader which
    /// reconnects to it does not continue after a record of the former run.
    let firstID: Int
    /// The number of the next record.
    private(set) var next = 0
    /// The oldest record is at `head`. The slots before it are empty, until there are enough of them to be removed.
    private var slots: [Slot?] = []
    private var head = 0
    private var newest: [String: Int] = [:]
    private var end = 0

    init(limits: Limits = Limits(), firstID: Int = 0) { (self.limits, self.firstID) = (limits, firstID) }

    /// The number of the oldest record in the log.
    var first: Int { next - (slots.count - head) }

    /// The number of records in the log.
    var count: Int { slots.count - head }

    /// The bytes of the records in the log.
    var bytes: Int { end - start(of: first) }

    /// Adds a record, whose number is ``next``. The oldest records are removed if the log exceeds its limits.
    mutating func append(_ event: Event) {
        end += event.json.count
        slots.append(Slot(event: event, end: end))
        if let subject = event.subject { newest[subject] = next }
        next += 1
        while count > 1, count > limits.records || bytes > limits.bytes { removeFirst() }
        if head > 64, head > slots.count / 2 {
            slots.removeFirst(head)
            head = 0
        }
    }

    private mutating func removeFirst() {
        if let subject = slots[head]?.event.subject, newest[subject] == first { newest[subject] = nil }
        slots[head] = nil
        head += 1
    }

    /// Reads the records after a cursor: a batch ends with the record that reaches ``batchSize``. The reader wants the records of the
    /// targets with these keys; `nil` for all.
    func read(after cursor: Cursor, keys: Set<String>? = nil) -> Batch {
        guard cursor.seq < next, cursor.seq >= first - 1 else { return .lost }
        var cursor = cursor
        var frames: [UInt8] = []
        let isSlow = end - start(of: cursor.seq + 1) > limits.unread
        while cursor.seq + 1 < next, frames.count < Self.batchSize, let event = event(cursor.seq + 1) {
            cursor.seq += 1
            if let keys, let key = event.key, !keys.contains(key) { continue }
            if isSlow, let subject = event.subject, let newest = newest[subject], newest > cursor.seq {
                cursor.superseded += 1
                continue
            }
            Self.append(event, id: firstID + cursor.seq, superseded: cursor.superseded, to: &frames)
            cursor.superseded = 0
        }
        return frames.isEmpty ? .none(cursor) : .frames(frames, cursor)
    }

    private func event(_ seq: Int) -> Event? { seq >= first && seq < next ? slots[head + seq - first]?.event : nil }

    /// The bytes of all records before a record.
    private func start(of seq: Int) -> Int {
        guard seq < next else { return end }
        let slot = slots[head + max(0, seq - first)]
        return slot.map { $0.end - $0.event.json.count } ?? end
    }

    /// Appends a record in the format of a stream (WHATWG HTML, section 9.2.6). JSON has no newline, so one line of data is enough.
    /// The identifier of the record is `nil` if the reader cannot continue after it.
    static func append(_ event: Event, id: Int?, superseded: Int = 0, to frames: inout [UInt8]) {
        if let id { frames += "id: \(id)\n".utf8 }
        frames += "event: \(event.type)\ndata: ".utf8
        if superseded > 0, event.json.last == UInt8(ascii: "}") {
            frames += event.json.dropLast()
            frames += ",\"superseded\":\(superseded)}".utf8
        } else {
            frames += event.json
        }
        frames += "\n\n".utf8
    }
}
