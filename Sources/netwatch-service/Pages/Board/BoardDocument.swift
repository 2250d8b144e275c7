import Console
import Reachability
import Records

/// The document of `GET /api/v1/status`: the document of `status` with the targets that a query selects, and the state of the service.
/// Groups that the page folds are complete in it.
struct BoardDocument: Sendable {
    let board: Board
    let query: BoardQuery

    private struct Content: Sendable {
        var writer = JSONWriter()
        /// The targets of the query; empty before the first piece.
        var rows: [BoardView.Row] = []
        var total = 0
        var next: BoardPosition?
    }

    /// The document as one line of JSON, without the newline.
    var pieces: some PiecewiseDocument {
        typealias Document = PartedDocument<Content>
        let size = Document.partSize
        let rows: [Document.Part] = stride(from: 0, to: query.limit, by: size).map { start in
            { content in
                for number in start..<max(start, min(content.rows.count, start + size)) {
                    board.targets[content.rows[number].index].write(seq: number, at: board.moment, to: &content.writer)
                }
            }
        }
        return Document(Content(), [select, writeHead] + rows + [writeEnd]) { $0.writer.bytes }
    }

    @Sendable private func select(_ content: inout Content) {
        var unfolded = board
        for index in unfolded.groups.indices { unfolded.groups[index].isFolded = false }
        let view = BoardView(unfolded, query)
        (content.rows, content.total, content.next) = (view.rows, view.total, view.next)
    }

    @Sendable private func writeHead(_ content: inout Content) {
        content.writer.beginObject()
        content.writer.member("v", RecordFormat.version)
        content.writer.member("ts", Timestamp.text(board.moment))
        content.writer.key("path")
        if let path = board.path {
            content.writer.object { RecordEncoder.write(keysOf: path, to: &$0) }
        } else {
            content.writer.null()
        }
        content.writer.key("targets")
        content.writer.beginArray()
    }

    @Sendable private func writeEnd(_ content: inout Content) {
        content.writer.endArray()
        RecordEncoder.write(canary: board.canary?.asInitial(), to: &content.writer)
        content.writer.member("instance", board.instance)
        content.writer.key("recording")
        content.writer.object { writer in
            writer.member("ok", board.recording.isRecording)
            writer.member("since", Timestamp.text(wallClockNanoseconds: Self.nanoseconds(board.recording.since)))
            writer.member("reason", board.recording.reason)
        }
        content.writer.member("total", content.total)
        content.writer.member("next", content.next?.description)
        content.writer.endObject()
    }

    private static func nanoseconds(_ milliseconds: Int64) -> Int64 {
        let (product, overflow) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
        return overflow ? (milliseconds < 0 ? .min : .max) : product
    }
}

extension BoardTarget {
    /// Writes the state of the target as its first `target` record. - Parameter moment: the time of the document.
    func write(seq: Int, at moment: Moment, to writer: inout JSONWriter) {
        let update = current.asInitial()
        writer.object { writer in
            writer.recordHead(seq: seq, at: update.moment, type: Record.Kind.target.rawValue)
            RecordEncoder.write(keysOf: update, identity, at: moment, to: &writer)
            writer.member("maintenance", isInMaintenance)
        }
    }
}
