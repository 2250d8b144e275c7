internal import EventLoop
internal import FoundationEssentials

/// The source of a request's body, which provides its segments in order and can be rewound. Used on the loop's thread. A worker reads files and a
/// task reads streams, each a little ahead.
final class BodySource {
    private let segments: [BodySegment]
    private let packetSize: Int
    private let worker: Worker
    private let wake: @Sendable () -> Void
    private var index = 0
    private var offset = 0
    private var feed: ChunkFeed?
    private var chunk: [UInt8] = []
    private var chunkOffset = 0

    /// A source that provides at most `packetSize` bytes at once. `wake` is called on any thread when bytes are available after
    /// ``Provision/pause``.
    init(
        _ segments: [BodySegment], packetSize: Int = .max, worker: Worker, wake: @escaping @Sendable () -> Void
    ) {
        self.segments = segments
        self.packetSize = packetSize
        self.worker = worker
        self.wake = wake
    }

    deinit { feed?.cancel() }

    func rewind() {
        feed?.cancel()
        feed = nil
        (index, offset, chunkOffset) = (0, 0, 0)
        chunk = []
    }

    func provide(into buffer: UnsafeMutableRawBufferPointer) -> Provision {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(packetSize))
        var filled = 0
        while filled < buffer.count, index < segments.count {
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let step: Provision
            switch segments[index] {
            case .data(let data): step = provide(data, into: room)
            case .file(let path, let length):
                let part = FilePart(path: path, size: length, version: nil, range: 0..<length)
                step = provide(from: { FileFeed.start(part, worker: self.worker, wake: self.wake) }, into: room)
            case .filePart(let part):
                step = provide(from: { FileFeed.start(part, worker: self.worker, wake: self.wake) }, into: room)
            case .stream(let length, let make):
                step = provide(from: { StreamFeed.start(make, length: length, wake: self.wake) }, into: room)
            }
            switch step {
            case .bytes(let count): filled += count
            case .end:
                index += 1
                offset = 0
                feed = nil
            case .pause: return filled > 0 ? .bytes(filled) : .pause
            case .abort: return step
            }
        }
        return filled > 0 ? .bytes(filled) : .end
    }

    private func provide(_ data: Data, into buffer: UnsafeMutableRawBufferPointer) -> Provision {
        let count = min(buffer.count, data.count - offset)
        guard count > 0 else { return .end }
        let start = data.startIndex + offset
        data.copyBytes(to: buffer, from: start..<(start + count))
        offset += count
        return .bytes(count)
    }

    private func provide(from start: () -> ChunkFeed, into buffer: UnsafeMutableRawBufferPointer) -> Provision {
        if chunkOffset == chunk.count {
            let feed = feed ?? start()
            self.feed = feed
            switch feed.next() {
            case .chunk(let next): (chunk, chunkOffset) = (next, 0)
            case .notReady: return .pause
            case .end: return .end
            case .failed(let error): return .abort(error)
            }
        }
        let count = min(buffer.count, chunk.count - chunkOffset)
        chunk.withUnsafeBytes {
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[chunkOffset..<(chunkOffset + count)]))
        }
        chunkOffset += count
        return .bytes(count)
    }
}

/// The queue of chunks between their producer and the loop. It has two chunks at most, so that one is produced while the other is sent.
final class ChunkFeed: Sendable {
    enum Next: Sendable {
        case chunk([UInt8])
        case notReady
        case end
        case failed(HTTPSessionError)
    }

    private struct State: Sendable {
        var chunks: [[UInt8]] = []
        var end: Next?
        var isCancelled = false
        var wantsWake = false
        var producerWaits = false
        var onCancel: (@Sendable () -> Void)?
    }

    private static let capacity = 2
    private let state = Locked(State())
    private let wake: @Sendable () -> Void
    /// Requests further chunks from the producer.
    private let wantsMore: @Sendable (ChunkFeed) -> Void

    init(wake: @escaping @Sendable () -> Void, wantsMore: @escaping @Sendable (ChunkFeed) -> Void) {
        self.wake = wake
        self.wantsMore = wantsMore
    }

    /// The next chunk, if there is one. Called on the loop's thread.
    func next() -> Next {
        let (next, resumesProducer) = state.withLock { state -> (Next, Bool) in
            guard !state.chunks.isEmpty else {
                if let end = state.end { return (end, false) }
                state.wantsWake = true
                return (.notReady, false)
            }
            let chunk = state.chunks.removeFirst()
            defer { state.producerWaits = false }
            return (.chunk(chunk), state.producerWaits)
        }
        if resumesProducer { wantsMore(self) }
        return next
    }

    /// Adds a chunk. Called by the producer.
    ///
    /// - Returns: Whether the producer may continue now. If not, `wantsMore` is called when there is room, and when the feed is canceled.
    func put(_ chunk: [UInt8]) -> Bool {
        let (mayContinue, wakes) = state.withLock { state -> (Bool, Bool) in
            guard !state.isCancelled else { return (false, false) }
            state.chunks.append(chunk)
            state.producerWaits = state.chunks.count >= ChunkFeed.capacity
            defer { state.wantsWake = false }
            return (!state.producerWaits, state.wantsWake)
        }
        if wakes { wake() }
        return mayContinue
    }

    /// Ends the chunks. Called by the producer.
    func finish(_ error: HTTPSessionError? = nil) {
        let wakes = state.withLock { state in
            state.end = error.map { .failed($0) } ?? .end
            state.onCancel = nil
            defer { state.wantsWake = false }
            return state.wantsWake
        }
        if wakes { wake() }
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Sets the closure that is called once when the feed is canceled; at once if it is already.
    func onCancel(_ body: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.onCancel = body }
            return state.isCancelled
        }
        if isCancelled { body() }
    }

    /// Cancels the feed: its chunks are not needed any more.
    func cancel() {
        let (resumesProducer, onCancel) = state.withLock { state in
            state.isCancelled = true
            state.chunks = []
            defer { (state.producerWaits, state.onCancel) = (false, nil) }
            return (state.producerWaits, state.onCancel)
        }
        if resumesProducer { wantsMore(self) }
        onCancel?()
    }
}
