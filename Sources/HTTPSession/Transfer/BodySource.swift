internal import EventLoop
internal import FoundationEssentials

/// What a request sends, segment after segment, as often as it is asked from the beginning. Used on the loop's thread; files are
/// read by a worker and streams by a task, each a little ahead.
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

    /// `packetSize`: how many bytes there are at once, at most. `wake` is called on any thread when there is something after
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
                let whole = FilePart(path: path, size: length, version: nil, range: 0..<length)
                step = provide(from: { FileFeed.start(whole, worker: self.worker, wake: self.wake) }, into: room)
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
            case .nothingYet: return .pause
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

/// Chunks on their way from whoever makes them to the loop: two at most, so that one is made while the other is sent.
final class ChunkFeed: Sendable {
    enum Next: Sendable {
        case chunk([UInt8])
        case nothingYet
        case end
        case failed(HTTPSessionError)
    }

    private struct State: Sendable {
        var chunks: [[UInt8]] = []
        var end: Next?
        var isCancelled = false
        var wantsWake = false
        var makerWaits = false
        var onCancel: (@Sendable () -> Void)?
    }

    private static let capacity = 2
    private let state = Locked(State())
    private let wake: @Sendable () -> Void
    /// Tells the maker that there is room.
    private let wantsMore: @Sendable (ChunkFeed) -> Void

    init(wake: @escaping @Sendable () -> Void, wantsMore: @escaping @Sendable (ChunkFeed) -> Void) {
        self.wake = wake
        self.wantsMore = wantsMore
    }

    /// On the loop's thread.
    func next() -> Next {
        let (next, asksMaker) = state.withLock { state -> (Next, Bool) in
            guard !state.chunks.isEmpty else {
                if let end = state.end { return (end, false) }
                state.wantsWake = true
                return (.nothingYet, false)
            }
            let chunk = state.chunks.removeFirst()
            defer { state.makerWaits = false }
            return (.chunk(chunk), state.makerWaits)
        }
        if asksMaker { wantsMore(self) }
        return next
    }

    /// By the maker. - Returns: whether it may go on now; if not, `wantsMore` is called when there is room, unless it is all over.
    func put(_ chunk: [UInt8]) -> Bool {
        let (mayGoOn, wakes) = state.withLock { state -> (Bool, Bool) in
            guard !state.isCancelled else { return (false, false) }
            state.chunks.append(chunk)
            state.makerWaits = state.chunks.count >= ChunkFeed.capacity
            defer { state.wantsWake = false }
            return (!state.makerWaits, state.wantsWake)
        }
        if wakes { wake() }
        return mayGoOn
    }

    /// By the maker: nothing more comes.
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

    /// What is told when nobody wants more, once; at once where that is so already.
    func onCancel(_ body: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.onCancel = body }
            return state.isCancelled
        }
        if isCancelled { body() }
    }

    /// Nobody wants more.
    func cancel() {
        let (asksMaker, onCancel) = state.withLock { state in
            state.isCancelled = true
            state.chunks = []
            defer { (state.makerWaits, state.onCancel) = (false, nil) }
            return (state.makerWaits, state.onCancel)
        }
        if asksMaker { wantsMore(self) }
        onCancel?()
    }
}
