import Console
import Reachability
import Records

/// The document of `GET /api/v1/status`: the document of `status` with the targets that a query selects, and the state of the service.
struct BoardDocument {
    let board: Board
    let view: BoardView
    /// The encoder of the path.
    let encoder: RecordEncoder

    /// Creates the document. Groups that the page folds are complete in it.
    init(_ board: Board, _ query: BoardQuery, _ header: StreamHeader) {
        var unfolded = board
        for index in unfolded.groups.indices { unfolded.groups[index].isFolded = false }
        self.board = board
        view = BoardView(unfolded, query)
        encoder = RecordEncoder(header: header)
    }

    /// The document as one line of JSON, without the newline.
    func encode() -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("v", RecordFormat.version)
            writer.member("ts", Timestamp.text(board.moment))
            writer.key("path")
            if let path = board.path { writer.object { RecordEncoder.write(keysOf: path, to: &$0) } } else { writer.null() }
            writer.key("targets")
            writer.array { writer in
                for (number, row) in view.rows.enumerated() { board.targets[row.index].write(seq: number, to: &writer) }
            }
            RecordEncoder.write(canary: board.canary?.asInitial(), to: &writer)
            writer.member("instance", board.instance)
            writer.key("recording")
            writer.object { writer in
                writer.member("ok", board.recording.isRecording)
                writer.member("since", Timestamp.text(wallClockNanoseconds: Self.nanoseconds(board.recording.since)))
                writer.member("reason", board.recording.reason)
            }
            writer.member("total", view.total)
            writer.member("next", view.next?.description)
        }
        return writer.bytes
    }

    private static func nanoseconds(_ milliseconds: Int64) -> Int64 {
        let (product, overflow) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
        return overflow ? (milliseconds < 0 ? .min : .max) : product
    }
}

extension BoardTarget {
    /// Writes the state of the target as its first `target` record.
    func write(seq: Int, to writer: inout JSONWriter) {
        let update = update.asInitial()
        writer.object { writer in
            writer.recordHead(seq: seq, at: update.moment, type: Record.Kind.target.rawValue)
            RecordEncoder.write(keysOf: update, id: id, to: &writer)
            writer.member("maintenance", isInMaintenance)
        }
    }
}
