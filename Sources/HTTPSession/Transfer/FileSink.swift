internal import EventLoop
internal import FoundationEssentials

/// Writes a body to a file, on a worker's thread: in chunks which come back when they are written. While ``maximumWaiting`` of them
/// are on their way, the transfer pauses.
final class FileSink: BodySink {
    /// Few large writes, but not so large that the kernel looks for as large pieces of memory: 512 MiB took 0.24 s of the processor in
    /// pieces of 16 KiB, 0.13 s of 128 KiB, 0.75 s of 256 KiB and 1.7 s of 1 MiB (ext4, Linux 6.18, a virtual machine).
    static let chunkSize = 128 << 10
    static let maximumWaiting = 8
    /// How long bytes wait for the rest of their chunk, in nanoseconds: what waits is lost when the process is killed, and of a slow server
    /// a chunk may be minutes.
    static let longestWait: Int64 = 1_000_000_000

    let destination: DownloadDestination
    private let file: PartialFile
    private let worker: Worker
    private let wake: @Sendable () -> Void
    private let queue = Locked(Queue())
    private var chunk: [UInt8] = []
    private var flushedAt = MonotonicClock.now()
    /// By what the next body may be continued.
    var sidecar: Sidecar?
    /// The version of the file at the destination, once the server has said that it has no other.
    var confirmed: FileValidator?
    /// Whether the end of the file is with the worker.
    private var hasEnded = false

    private struct Queue: Sendable {
        /// To be written, or being written: the first one is out then.
        var full: [[UInt8]] = []
        var waiting = 0
        /// Written and empty, but for their room.
        var spare: [[UInt8]] = []
        var loopWaits = false
        var error: HTTPSessionError?
        /// Whether nobody waits for a digest any more.
        var isDiscarded = false
    }

    /// `wake` is called on any thread when there is room after ``Intake/pause``, or an error to be heard of.
    init(
        _ destination: DownloadDestination, keeping: PartialFile.Retention = .nothing, worker: Worker,
        report: @escaping @Sendable (String) -> Void = { _ in }, wake: @escaping @Sendable () -> Void
    ) {
        self.destination = destination
        file = PartialFile(destination, keeping: keeping, report: report)
        self.worker = worker
        self.wake = wake
    }

    // Whoever drops it does no file work.
    deinit {
        if !hasEnded { worker.run { [file] in file.abandon() } }
    }

    var failure: HTTPSessionError? { queue.withLock { $0.error } }

    /// What an earlier download left.
    typealias Part = (sidecar: Sidecar, length: Int64)

    /// The files that earlier downloads have left: the partial file, and the version of the finished one.
    struct Remains: Sendable {
        var part: Part?
        var finished: FileValidator?
    }

    /// Looks for what is left; `answer` is called on any thread.
    func reopen(_ answer: @escaping @Sendable (Result<Remains, HTTPSessionError>) -> Void) {
        worker.run { [file, destination] in
            do throws(HTTPSessionError) {
                let part: Part? = try file.reopen().map { ($0, $1) }
                answer(.success(Remains(part: part, finished: FileSink.finished(destination))))
            } catch {
                answer(.failure(error))
            }
        }
    }

    /// Names the finished file as its response suggests. A name that is taken is a failure.
    func name(_ suggested: String?) {
        perform { file throws(HTTPSessionError) in try file.name(suggested) }
    }

    private static func finished(_ destination: DownloadDestination) -> FileValidator? {
        // A file that has the digest needs no request, and one that has another is of no use.
        guard destination.keepsValidator, destination.partialFile == .keep, destination.expectedDigest == nil else { return nil }
        return ValidatorAttribute.read(destination.file.path)
    }

    /// Whether all that has come has this digest; `answer` is called on any thread.
    func verify(_ digest: ContentDigest, _ answer: @escaping @Sendable (Result<Bool, HTTPSessionError>) -> Void) {
        flush()
        worker.run { [file, queue] in
            do throws(HTTPSessionError) {
                if let error = queue.withLock({ $0.error }) { throw error }
                let found = try file.digest(digest.algorithm) { queue.withLock { $0.isDiscarded } }
                answer(.success(found == digest))
            } catch {
                answer(.failure(error))
            }
        }
    }

    func begin(expected: Int64?) {
        chunk.removeAll(keepingCapacity: true)
        chunk.reserveCapacity(Int(min(expected ?? .max, Int64(FileSink.chunkSize))))
        perform { [sidecar] file throws(HTTPSessionError) in try file.begin(expected: expected, sidecar) }
    }

    func take(_ bytes: UnsafeRawBufferPointer) -> Intake {
        if chunk.count + bytes.count >= FileSink.chunkSize, let refusal = refusal() { return refusal }
        var rest = bytes
        while chunk.count + rest.count >= FileSink.chunkSize {
            let fitting = FileSink.chunkSize - chunk.count
            chunk.append(contentsOf: UnsafeRawBufferPointer(rebasing: rest[..<fitting]))
            rest = UnsafeRawBufferPointer(rebasing: rest[fitting...])
            flush()
        }
        chunk.append(contentsOf: rest)
        if let flushesAt, flushesAt <= MonotonicClock.now() { flush() }
        return .taken
    }

    private func refusal() -> Intake? {
        queue.withLock { queue in
            if let error = queue.error { return .abort(error) }
            guard queue.waiting >= FileSink.maximumWaiting else { return nil }
            queue.loopWaits = true
            return .pause
        }
    }

    var flushesAt: Int64? { chunk.isEmpty ? nil : flushedAt + FileSink.longestWait }

    func flush() {
        flushedAt = MonotonicClock.now()
        guard !chunk.isEmpty else { return }
        queue.withLock { queue in
            queue.full.append(chunk)
            queue.waiting += 1
            chunk = queue.spare.popLast() ?? []
        }
        chunk.reserveCapacity(FileSink.chunkSize)
        perform { [queue] file throws(HTTPSessionError) in
            // Out of the queue and into it again, so that nobody else holds it: it would be copied when it is filled the next time.
            var full = queue.withLock { $0.full.removeFirst() }
            defer {
                full.removeAll(keepingCapacity: true)
                queue.withLock { queue in
                    queue.waiting -= 1
                    queue.spare.append(full)
                }
            }
            try file.write(full)
        }
    }

    private func perform(_ job: @escaping @Sendable (PartialFile) throws(HTTPSessionError) -> Void) {
        worker.run { [file, queue, wake] in
            var failure: HTTPSessionError?
            // After the first error nothing more is tried.
            if queue.withLock({ $0.error }) == nil {
                do throws(HTTPSessionError) { try job(file) } catch { failure = error }
            }
            let wakes = queue.withLock { queue in
                if let failure { queue.error = failure }
                // Of an error the loop hears at once: the server may have nothing more to say for long.
                guard failure != nil || (queue.loopWaits && queue.waiting <= FileSink.maximumWaiting / 2) else { return false }
                queue.loopWaits = false
                return true
            }
            if wakes { wake() }
        }
    }

    func finishNow() -> ReceivedBody? { nil }

    func finish(_ deliver: @escaping @Sendable (Result<ReceivedBody, HTTPSessionError>) -> Void) {
        hasEnded = true
        if let confirmed { return finish(confirmed, deliver) }
        flush()
        worker.run { [file, queue] in
            do throws(HTTPSessionError) {
                if let error = queue.withLock({ $0.error }) { throw error }
                deliver(.success(ReceivedBody(file: try file.commit())))
            } catch {
                deliver(.failure(FileSink.letGo(file, error)))
            }
        }
    }

    /// The file at the destination stays. It is looked at again: the answer may have taken hours to come.
    private func finish(
        _ version: FileValidator, _ deliver: @escaping @Sendable (Result<ReceivedBody, HTTPSessionError>) -> Void
    ) {
        worker.run { [file, destination] in
            file.discard(isWorthless: true)
            guard ValidatorAttribute.read(destination.file.path) == version else {
                let reason = "'\(destination.file.path)' changed while the server was asked about it"
                return deliver(.failure(HTTPSessionError(.transferFailed, reason)))
            }
            deliver(.success(ReceivedBody(file: destination.file)))
        }
    }

    func discard(_ error: HTTPSessionError, _ done: @escaping @Sendable (HTTPSessionError) -> Void) -> Bool {
        hasEnded = true
        queue.withLock { $0.isDiscarded = true }
        flush()
        worker.run { [file] in done(FileSink.letGo(file, error)) }
        return false
    }

    private static func letGo(_ file: PartialFile, _ error: HTTPSessionError) -> HTTPSessionError {
        var error = error
        error.resumeData = file.discard(isWorthless: error.code == .digestMismatch)
        return error
    }
}
