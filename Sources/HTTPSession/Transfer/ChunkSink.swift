internal import EventLoop
internal import FoundationEssentials

/// The sink that delivers a body to a reader as it arrives. When ``capacity`` bytes wait for the reader, the transfer pauses.
final class ChunkSink: BodySink {
    static let capacity = 256 << 10
    let failure: HTTPSessionError? = nil
    private let buffer: ChunkBuffer

    init(_ buffer: ChunkBuffer) { self.buffer = buffer }

    func begin(expected: Int64?) {}
    func receive(_ bytes: UnsafeRawBufferPointer) -> Intake { buffer.put(bytes) ? .accepted : .pause }

    func finishNow() -> ReceivedBody? {
        buffer.finish(nil)
        return ReceivedBody()
    }

    func finish(_ deliver: @escaping @Sendable (Result<ReceivedBody, HTTPSessionError>) -> Void) {
        buffer.finish(nil)
        deliver(.success(ReceivedBody()))
    }

    func discard(_ error: HTTPSessionError, _ done: @escaping @Sendable (HTTPSessionError) -> Void) -> Bool {
        buffer.finish(error)
        return true
    }
}

/// The buffer between the loop, which writes, and the readers. Each piece is delivered to one reader.
final class ChunkBuffer: Sendable {
    private struct State: Sendable {
        var data = Data()
        var isFinished = false
        var error: HTTPSessionError?
        var loopWaits = false
        /// The waiting readers, in the order of their calls.
        var waiting: [CheckedContinuation<Void, Never>] = []
        /// The number of iterators.
        var readers = 0
    }

    private let state = Locked(State())
    private let wake: @Sendable () -> Void

    /// - Parameter wake: Called when there is room again.
    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// The number of readers that wait for bytes.
    var waitingReaders: Int { state.withLock { $0.waiting.count } }

    /// Whether an iterator exists.
    var hasReaders: Bool { state.withLock { $0.readers > 0 } }

    func addReader() { state.withLock { $0.readers += 1 } }

    /// Removes a reader.
    ///
    /// - Returns: Whether no reader is left, although the body has not ended.
    func removeReader() -> Bool {
        state.withLock { state in
            state.readers -= 1
            return state.readers == 0 && !state.isFinished
        }
    }

    func put(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (taken, reader) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
            guard state.data.count < ChunkSink.capacity else {
                state.loopWaits = true
                return (false, nil)
            }
            state.data.append(contentsOf: bytes)
            return (true, state.waiting.isEmpty ? nil : state.waiting.removeFirst())
        }
        if let reader { HomeThread.run { reader.resume() } }
        return taken
    }

    func finish(_ error: HTTPSessionError?) {
        var readers: [CheckedContinuation<Void, Never>] = []
        state.withLock { state in
            if !state.isFinished {
                state.isFinished = true
                state.error = error
            }
            swap(&readers, &state.waiting)
        }
        if !readers.isEmpty { HomeThread.run { [readers] in for reader in readers { reader.resume() } } }
    }

    /// The bytes that have arrived since the last call, at least one; `nil` at the end.
    func next() async throws(HTTPSessionError) -> Data? {
        while true {
            let (step, wakes) = state.withLock { state -> (Result<Data?, HTTPSessionError>?, Bool) in
                if !state.data.isEmpty {
                    let data = state.data
                    state.data = Data()
                    defer { state.loopWaits = false }
                    return (.success(data), state.loopWaits)
                }
                guard state.isFinished else { return (nil, false) }
                return (state.error.map { .failure($0) } ?? .success(nil), false)
            }
            if wakes { wake() }
            if let step { return try step.get() }
            await withCheckedContinuation { continuation in
                let resumesAtOnce = state.withLock { state in
                    guard state.data.isEmpty, !state.isFinished else { return true }
                    state.waiting.append(continuation)
                    return false
                }
                if resumesAtOnce { continuation.resume() }
            }
        }
    }
}
