import Console
import Reachability
import Records

/// A stream of records for one reader (`GET /api/v1/events`): the records after the last one that it received, or the present state and
/// the records after it.
struct EventStream: Sendable {
    /// The comment of a silent stream.
    private static let comment = Array(": nothing new\n\n".utf8)

    private let content: WebContent
    private let client: RenderClient
    private let waiter: EventFeed.Waiter
    /// The keys of the targets that the reader wants; `nil` for all.
    private let keys: Set<String>?
    private var cursor: EventLog.Cursor?
    /// The board whose targets are being written, and the first of those that are not.
    private var present: (board: Board, next: Int)?

    /// Creates a stream after the last record that the reader has received, whose identifier is a text of the reader. A text that is no
    /// identifier of a record begins a new stream, as does one that the log no longer has, or one of an earlier run of the service.
    init(_ content: WebContent, _ client: RenderClient, keys: Set<String>?, lastEventID: String?, waiter: EventFeed.Waiter) {
        (self.content, self.client, self.keys, self.waiter) = (content, client, keys, waiter)
        // The first record is the hello of another stream.
        if let text = lastEventID, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let id = Int(text), id > content.events.firstID {
            cursor = EventLog.Cursor(seq: id - content.events.firstID)
        }
    }

    /// Returns the next bytes of the stream; `nil` at its end.
    mutating func next() async -> [UInt8]? {
        if present != nil, let bytes = await render({ $0.nextTargets() }) { return bytes }
        while true {
            guard let place = cursor else { return await render { $0.begin() } }
            switch content.events.read(after: place, keys: keys) {
            case .frames(let bytes, let after):
                cursor = after
                return bytes
            case .lost: cursor = nil
            case .none(let after):
                cursor = after
                switch await content.events.wait(after: after.seq, waiter) {
                case .records: continue
                case .silence: return Self.comment
                case .ended: return nil
                }
            }
        }
    }

    /// Renders a piece of the present state on the thread of documents: many streams may begin at once.
    private mutating func render(_ piece: @escaping @Sendable (inout EventStream) -> [UInt8]?) async -> [UInt8]? {
        let stream = self
        let rendered = await content.renders.run(for: client) {
            var stream = stream
            let bytes = piece(&stream)
            return (bytes, stream)
        }
        guard let (bytes, next) = rendered else { return nil }
        self = next
        return bytes
    }

    /// Begins with the present state. Its records have the number of the last record that it contains. Only the last of them has an
    /// identifier, so that a reader that loses its connection before begins again.
    private mutating func begin() -> [UInt8]? {
        guard let board = content.boards.current(), let path = board.path else { return nil }
        let place = content.events.place(after: board.sequence)
        cursor = place
        let update = PathUpdate(
            path: path.path, reasons: [], isInitial: true, coalescedEventCount: 0, moment: board.moment)
        var header = content.header(board)
        let isEmpty = !board.targets.contains(where: isWanted)
        if keys != nil { header.targets = board.targets.filter(isWanted).map(\.update.endpoint) }
        let json = RecordEncoder(header: header).encode(Record(event: .path(update), seq: max(0, place.seq)))
        var bytes: [UInt8] = []
        let event = EventLog.Event(type: Record.Kind.hello.rawValue, json: json)
        EventLog.append(event, id: isEmpty ? id(place) : nil, to: &bytes)
        if !isEmpty { present = (board, 0) }
        return bytes
    }

    private mutating func nextTargets() -> [UInt8]? {
        guard let (board, first) = present, let cursor else { return nil }
        var bytes: [UInt8] = []
        var index = first
        let last = board.targets.lastIndex(where: isWanted)
        while index < board.targets.count, bytes.count < EventLog.batchSize {
            let target = board.targets[index]
            if isWanted(target) {
                var writer = JSONWriter()
                target.write(seq: max(0, cursor.seq), at: board.moment, to: &writer)
                let event = EventLog.Event(type: Record.Kind.target.rawValue, json: writer.bytes)
                EventLog.append(event, id: index == last ? id(cursor) : nil, to: &bytes)
            }
            index += 1
        }
        present = index < board.targets.count ? (board, index) : nil
        return bytes.isEmpty ? nil : bytes
    }

    private func id(_ place: EventLog.Cursor) -> Int { content.events.firstID + max(0, place.seq) }

    private func isWanted(_ target: BoardTarget) -> Bool {
        keys?.contains(target.key) ?? true
    }
}
