import Glibc

/// A reader of the turns of a log, which may grow meanwhile.
// Not Sendable: one thread uses it.
final class TurnLogReader {
    let header: TurnLog.Header
    private let path: String
    private let descriptor: Int32
    private var coder: TurnCoder
    /// Bytes of the file; a large log is never in memory at once.
    private var content: [UInt8] = []
    /// The number of bytes of `content` that were decoded.
    private var decoded = 0
    /// The place of the next turn in the file.
    private var place = 0
    private var isDamaged = false

    /// Opens a log; `nil` if the file is none, or no regular file.
    init?(_ path: String) throws(StoreError) {
        guard let descriptor = try StateFile.open(path) else { return nil }
        (self.path, self.descriptor) = (path, descriptor)
        var bytes = [UInt8](repeating: 0, count: TurnLog.headerSize)
        guard pread(descriptor, &bytes, bytes.count, 0) == bytes.count, let header = TurnLog.Header(bytes) else {
            close(descriptor)
            return nil
        }
        (self.header, coder, place) = (header, TurnCoder(after: header.time, header.format), TurnLog.headerSize)
    }

    deinit { close(descriptor) }

    /// Reads the next turn; `nil` at the present end, or at the first damaged byte.
    func next() throws(StoreError) -> HistoryTurn? {
        guard !isDamaged else { return nil }
        var needed = 10
        while true {
            let (bytes, isComplete) = try bytes(needed)
            switch TurnLog.frame(in: bytes, generation: header.generation, at: place) {
            case .incomplete(let size) where size > needed && isComplete: needed = size
            case .incomplete, .end:
                // A turn that is written at this moment is read again by the next call.
                (content, decoded) = ([], 0)
                return nil
            case .turn(let bytes, let size):
                guard let turn = coder.decode(bytes) else {
                    isDamaged = true
                    return nil
                }
                decoded += size
                place += size
                return turn
            }
        }
    }

    /// Returns the next bytes: at least `count`, unless the file ends before.
    private func bytes(_ count: Int) throws(StoreError) -> (bytes: ArraySlice<UInt8>, isComplete: Bool) {
        while content.count - decoded < count {
            if decoded > 0 {
                content.removeSubrange(..<min(decoded, content.count))
                decoded = 0
            }
            var chunk = [UInt8](repeating: 0, count: max(count - content.count, 256 << 10))
            let received = pread(descriptor, &chunk, chunk.count, off_t(place + content.count))
            if received < 0, errno == EINTR { continue }
            guard received >= 0 else { throw StoreError(.inputOutput, "\(path): cannot be read: \(SystemText.of(errno))") }
            guard received > 0 else { return (content[...], false) }
            content += chunk.prefix(received)
        }
        return (content[decoded...], true)
    }
}
