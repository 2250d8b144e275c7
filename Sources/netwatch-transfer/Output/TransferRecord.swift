import Console
import Reachability

/// A record of type `transfer`: one transfer at one moment.
struct TransferRecord: Hashable {
    var status: TransferStatus
    var moment: Moment
    /// The number of records on the same transfer that were dropped before this one.
    var superseded = 0

    /// Returns the record as one line of JSON, without the newline.
    func encode(seq: Int) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.recordHead(seq: seq, at: moment, type: "transfer")
            writer.member("url", status.url)
            writer.member("state", status.recordState.rawValue)
            writer.member("received", status.direction == .download ? status.bytes : 0)
            writer.member("sent", status.direction == .upload ? status.bytes : 0)
            writer.member("total", status.total)
            writer.member("resumed_from", status.resumedFrom)
            writer.member("attempt", status.attempt)
            writer.member("unchanged", status.isUnchanged)
            writer.member("file", status.file)
            writer.member(status.cause)
            if superseded > 0 { writer.member("superseded", superseded) }
        }
        return writer.bytes
    }
}

/// The queue of records for a slow reader. Above the limit, a newer record replaces an older one on the same transfer.
struct RecordBacklog {
    /// The maximum number of records, about one mebibyte of lines.
    static let limit = 2_000

    private var waiting: [(place: Int, record: TransferRecord)] = []
    private var nextSeq = 0

    var isEmpty: Bool { waiting.isEmpty }

    /// Adds a record of the transfer at this place.
    mutating func push(_ record: TransferRecord, of place: Int) {
        var record = record
        if waiting.count >= Self.limit, let index = waiting.firstIndex(where: { $0.place == place }) {
            record.superseded += waiting[index].record.superseded + 1
            waiting.remove(at: index)
        }
        waiting.append((place, record))
    }

    /// Removes the next record and returns it as a numbered line.
    mutating func take() -> [UInt8]? {
        guard !waiting.isEmpty else { return nil }
        defer { nextSeq += 1 }
        return waiting.removeFirst().record.encode(seq: nextSeq)
    }
}
