internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// Writes inputs to a file on a separate thread, so that a slow disk never delays the monitor.
package final class RecordingWriter: Sendable {
    /// The maximum size in bytes of the inputs that wait for the disk. If there are more, the recording fails, because a gap
    /// would change all later events.
    static let limit = 256 << 20
    /// The maximum time in milliseconds for which a pipe's reader may read nothing at the beginning and the end of the recording.
    static let pipeTimeout: Int32 = 2_000

    private struct State: Sendable {
        var waiting: [RecordedInput] = []
        var size = 0
        var isClosed = false
        var failure: Int32?
    }

    // Shared with the thread, which must not keep the writer itself alive.
    private final class Shared: Sendable {
        let state = Locked(State())
        let waker: Waker
        let descriptor: Int32
        let pipeTimeout: Int32

        init(descriptor: Int32, waker: Waker, pipeTimeout: Int32) {
            self.descriptor = descriptor
            self.waker = waker
            self.pipeTimeout = pipeTimeout
        }

        deinit { close(descriptor) }
    }

    /// Returns whether `path` is `-` or `/dev/stdout`, so that the recording replaces the standard output.
    package static func isStandardOutput(_ path: String) -> Bool { RecordingFile.standardOutput.contains(path) }

    private let shared: Shared
    private let thread: LoopThread
    private let limit: Int

    /// Creates or empties the file (``RecordingFile/open(_:)``), and writes the header.
    package init(
        path: String, header: RecordingHeader, limit: Int = RecordingWriter.limit,
        pipeTimeout: Int32 = RecordingWriter.pipeTimeout
    ) throws(MonitorError) {
        let descriptor: Int32
        do { descriptor = try RecordingFile.open(path) } catch { throw .recording(path: path, errno: error.errno) }
        let waker: Waker
        do { waker = try Waker() } catch {
            close(descriptor)
            throw .system(call: error.call, errno: error.errno)
        }
        let shared = Shared(descriptor: descriptor, waker: waker, pipeTimeout: pipeTimeout)
        self.shared = shared
        self.limit = limit
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard var line = try? encoder.encode(header) else { throw .recording(path: path, errno: EINVAL) }
        line.append(0x0a)
        if let number = Self.write(line, to: shared, isFirst: true) { throw .recording(path: path, errno: number) }
        do {
            thread = try LoopThread(name: "nw-recording", namespace: nil) { { Self.run(shared) } }
        } catch { throw .system(call: "pthread_create", errno: EAGAIN) }
    }

    /// Adds an input. Never blocks.
    ///
    /// - Returns: an errno if the recording has failed; ENOBUFS if the disk was too slow.
    func append(_ input: RecordedInput) -> Int32? {
        let (failure, wasEmpty) = shared.state.withLock { state in
            let size = MemoryLayout<RecordedInput>.stride + input.input.byteCount
            if state.failure == nil, state.size + size > limit { state.failure = ENOBUFS }
            let wasEmpty = state.waiting.isEmpty
            if state.failure == nil {
                state.waiting.append(input)
                state.size += size
            }
            return (state.failure, wasEmpty)
        }
        if wasEmpty { shared.waker.wake() }
        return failure
    }

    /// Writes the waiting inputs, adds the last line if no input is missing, and closes the file.
    ///
    /// - Returns: an errno if not all inputs could be written.
    func finish() -> Int32? {
        shared.state.withLock { $0.isClosed = true }
        shared.waker.wake()
        thread.join()
        return shared.state.withLock { $0.failure }
    }

    private static func run(_ shared: Shared) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var poller = pollfd(fd: shared.waker.descriptor, events: Int16(POLLIN), revents: 0)
        var written = 0
        while true {
            let (inputs, isClosed, failure) = shared.state.withLock { state in
                defer { (state.waiting, state.size) = ([], 0) }
                return (state.waiting, state.isClosed, state.failure)
            }
            if inputs.isEmpty {
                if isClosed {
                    if failure == nil { end(shared, after: written, encoder) }
                    return
                }
                _ = poll(&poller, 1, -1)
                shared.waker.acknowledge()
                continue
            }
            var text = Data()
            for input in inputs {
                guard let line = try? encoder.encode(input) else {
                    // A missing input would change all later events.
                    shared.state.withLock { $0.failure = EINVAL }
                    return
                }
                text.append(line)
                text.append(0x0a)
                written += 1
            }
            if let number = write(text, to: shared) {
                shared.state.withLock { $0.failure = number }
                return
            }
        }
    }

    private static func end(_ shared: Shared, after inputs: Int, _ encoder: JSONEncoder) {
        guard var line = try? encoder.encode(RecordingEnd(inputs: inputs)) else { return }
        line.append(0x0a)
        if let number = write(line, to: shared) { shared.state.withLock { $0.failure = number } }
    }

    private static func write(_ data: Data, to shared: Shared, isFirst: Bool = false) -> Int32? {
        var remaining = data[...]
        while !remaining.isEmpty {
            let count = remaining.withUnsafeBytes { Glibc.write(shared.descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                let number = errno
                if number == EINTR || number == EAGAIN && awaitSpace(shared, isFirst) { continue }
                return number == EAGAIN ? ENOBUFS : number
            }
            remaining = remaining.dropFirst(count)
        }
        return nil
    }

    /// Waits until a pipe accepts data, or the recording ends; returns false if the pipe accepts none by then.
    private static func awaitSpace(_ shared: Shared, _ isFirst: Bool) -> Bool {
        let isEnding = isFirst || shared.state.withLock { $0.isClosed }
        var pollers = [
            pollfd(fd: shared.descriptor, events: Int16(POLLOUT), revents: 0),
            pollfd(fd: shared.waker.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        let count = poll(&pollers, isEnding ? 1 : 2, isEnding ? shared.pipeTimeout : -1)
        // A wake-up for new inputs can be ignored here, because they are checked after each write.
        if pollers[1].revents != 0 { shared.waker.acknowledge() }
        return count != 0
    }
}

extension MonitorInput {
    /// The number of bytes of kernel messages in the input.
    fileprivate var byteCount: Int {
        switch self {
        case .datagram(let bytes), .dump(let bytes), .routeReply(_, let bytes), .neighborReply(_, let bytes): bytes.count
        default: 0
        }
    }
}
