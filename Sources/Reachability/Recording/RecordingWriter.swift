internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// Writes inputs to a file on a thread of its own, so that a slow disk never holds the monitor up.
package final class RecordingWriter: Sendable {
    /// So many bytes of inputs may wait for the disk; more end the recording, because a hole would make what follows a lie.
    static let limit = 256 << 20
    /// So long a pipe's reader may take nothing when the recording begins or ends, in milliseconds.
    static let patience: Int32 = 2_000

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
        let patience: Int32

        init(descriptor: Int32, waker: Waker, patience: Int32) {
            self.descriptor = descriptor
            self.waker = waker
            self.patience = patience
        }

        deinit { close(descriptor) }
    }

    /// Whether `path` is `-` or `/dev/stdout`, so that the recording takes standard output's place.
    package static func isStandardOutput(_ path: String) -> Bool { RecordingFile.standardOutput.contains(path) }

    private let shared: Shared
    private let thread: LoopThread
    private let limit: Int

    /// Creates or empties the file (``RecordingFile/open(_:)``) and writes the header.
    package init(
        path: String, header: RecordingHeader, limit: Int = RecordingWriter.limit, patience: Int32 = RecordingWriter.patience
    ) throws(MonitorError) {
        let descriptor: Int32
        do { descriptor = try RecordingFile.open(path) } catch { throw .recording(path: path, errno: error.errno) }
        let waker: Waker
        do { waker = try Waker() } catch {
            close(descriptor)
            throw .system(call: error.call, errno: error.errno)
        }
        let shared = Shared(descriptor: descriptor, waker: waker, patience: patience)
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

    /// Adds an input; never blocks.
    ///
    /// - Returns: an errno once the recording has failed; ENOBUFS when the disk was too slow.
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

    /// Writes what waits, and the last line where nothing is missing before it, and closes the file.
    ///
    /// - Returns: an errno when not everything could be written.
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
                    // A missing input would change all that follows it.
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
        var rest = data[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(shared.descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                let number = errno
                if number == EINTR || number == EAGAIN && hasRoom(shared, isFirst) { continue }
                return number == EAGAIN ? ENOBUFS : number
            }
            rest = rest.dropFirst(count)
        }
        return nil
    }

    /// Waits until a pipe takes something, or the end of the recording is wanted; false when it takes nothing then.
    private static func hasRoom(_ shared: Shared, _ isFirst: Bool) -> Bool {
        let isEnding = isFirst || shared.state.withLock { $0.isClosed }
        var pollers = [
            pollfd(fd: shared.descriptor, events: Int16(POLLOUT), revents: 0),
            pollfd(fd: shared.waker.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        let count = poll(&pollers, isEnding ? 1 : 2, isEnding ? shared.patience : -1)
        // A wake-up for inputs is no loss: they are looked for after each writing.
        if pollers[1].revents != 0 { shared.waker.acknowledge() }
        return count != 0
    }
}

extension MonitorInput {
    /// How many bytes of the kernel's it holds.
    fileprivate var byteCount: Int {
        switch self {
        case .datagram(let bytes), .dump(let bytes), .routeReply(_, let bytes), .neighborReply(_, let bytes): bytes.count
        default: 0
        }
    }
}
