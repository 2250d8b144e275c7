internal import EventLoop

/// The memory of written chunks, which the downloads of a session use again. Each new chunk costs 32 page faults.
final class SpareChunks: Sendable {
    /// The maximum number of spare chunks. More are freed.
    static let maximumCount = 16

    private let spare = Locked<[[UInt8]]>([])

    /// An empty chunk, with reserved memory if there is any.
    func take() -> [UInt8] { spare.withLock { $0.popLast() } ?? [] }

    /// Keeps the memory of an empty chunk.
    func give(_ chunk: [UInt8]) {
        // Small bodies have small chunks, and chunks that have grown may be too large.
        guard (FileSink.chunkSize..<FileSink.chunkSize * 3 / 2).contains(chunk.capacity) else { return }
        spare.withLock { if $0.count < Self.maximumCount { $0.append(chunk) } }
    }
}
