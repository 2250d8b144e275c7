internal import EventLoop
internal import FoundationEssentials

/// The sink that writes a body to a file on a worker's thread, in chunks whose memory is reused. While ``maximumWaiting`` chunks wait, the transfer
/// pauses.
final class FileSink: BodySink {
    /// The size of a write in bytes. Small writes need more system calls, and for large ones the kernel allocates memory in large pieces. 512 MiB took
    /// 0.24 s of processor time in pieces of 16 KiB, 0.13 s of 128 KiB, 0.75 s of 256 KiB and 1.7 s of 1 MiB (ext4, Linux 6.18, a virtual machine).
    static let chunkSize = 128 << 10
    static let maximumWaiting = 8
    /// The longest time for which bytes are buffered before they are written, in nanoseconds. Buffered bytes are lost if the process is killed, and
    /// a slow server may need minutes for a chunk.
    static let longestWait: Int64 = 1_000_000_000

    let destination: DownloadDestination
    private let file: PartialFile
    private let worker: Worker
    private let chunks: SpareChunks
    private let wake: @Sendable () -> Void
    private let queue = Locked(Queue())
    private var chunk: [UInt8] = []
    private let now: @Sendable () -> Int64
    private var flushedAt: Int64
    /// The sidecar by which a later download continues this body.
    var sidecar: Sidecar?
    /// The version of the file at the destination, after the server has confirmed that it is current.
    var confirmed: FileValidator?
    /// Whether the worker has been asked to finish or discard the file.
    private var hasEnded = false

    private struct Queue: Sendable {
        /// The chunks to be written. A chunk is removed while it is written.
        var full: [[UInt8]] = []
        var waiting = 0
        var loopWaits = false
        var error: HTTPSessionError?
        /// Whether the body is discarded, so that a digest is not needed any more.
        var isDiscarded = false
    }

    /// A sink for a destination. Its memory for chunks comes from `chunks` and returns there. `wake` is called on any thread when there is room after
    /// ``Intake/pause``, or when an error has occurred.
    init(
        _ destination: DownloadDestination, keeping: PartialFile.Retention = .nothing, worker: Worker,
        chunks: SpareChunks = SpareChunks(), now: @escaping @Sendable () -> Int64 = { MonotonicClock.now() },
        report: @escaping @Sendable (String) -> Void = { _ in }, wake: @escaping @Sendable () -> Void
    ) {
        self.destination = destination
        file = PartialFile(destination, keeping: keeping, report: report)
        self.worker = worker
        self.chunks = chunks
        self.now = now
        flushedAt = now()
        self.wake = wake
    }

    // On the worker, so that the releasing thread does not wait for a disk.
    deinit {
        chunk.removeAll(keepingCapacity: true)
        chunks.give(chunk)
        if !hasEnded { worker.run { [file] in file.abandon() } }
    }

    var failure: HTTPSessionError? { queue.withLock { $0.error } }

    /// The partial file of an earlier download: its sidecar and its length in bytes.
    typealias Part = (sidecar: Sidecar, length: Int64)

    /// The files that earlier downloads have left: the partial file, and the version of the finished one.
    struct Remains: Sendable {
        var part: Part?
        var finished: FileValidator?
    }

    /// Looks for files of earlier downloads. `answer` is called on any thread.
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

    /// Names the finished file as its response suggests. Fails if a file with this name exists.
    func name(_ suggested: String?) {
        perform { file throws(HTTPSessionError) in try file.name(suggested) }
    }

    private static func finished(_ destination: DownloadDestination) -> FileValidator? {
        // A file with the expected digest needs no request, and one with another digest is useless.
        guard destination.keepsValidator, destination.partialFile == .keep, destination.expectedDigest == nil else { return nil }
        return ValidatorAttribute.read(destination.file.path)
    }

    /// Compares the digest of the received bytes. `answer` is called on any thread.
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
        let size = Int(min(expected ?? .max, Int64(FileSink.chunkSize)))
        if chunk.capacity == 0, size == FileSink.chunkSize { chunk = chunks.take() }
        chunk.removeAll(keepingCapacity: true)
        chunk.reserveCapacity(size)
        perform { [sidecar] file throws(HTTPSessionError) in try file.begin(expected: expected, sidecar) }
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Intake {
        if chunk.count + bytes.count >= FileSink.chunkSize, let refusal = refusal() { return refusal }
        var remainder = bytes
        while chunk.count + remainder.count >= FileSink.chunkSize {
            let fitting = FileSink.chunkSize - chunk.count
            chunk.append(contentsOf: UnsafeRawBufferPointer(rebasing: remainder[..<fitting]))
            remainder = UnsafeRawBufferPointer(rebasing: remainder[fitting...])
            flush()
        }
        chunk.append(contentsOf: remainder)
        if let flushesAt, flushesAt <= now() { flush() }
        return .accepted
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
        flushedAt = now()
        guard !chunk.isEmpty else { return }
        queue.withLock { queue in
            queue.full.append(chunk)
            queue.waiting += 1
        }
        chunk = chunks.take()
        chunk.reserveCapacity(FileSink.chunkSize)
        perform { [queue, chunks] file throws(HTTPSessionError) in
            // Removed from the queue, so that the reference is unique: otherwise the chunk would be copied when it is filled again.
            var full = queue.withLock { $0.full.removeFirst() }
            defer {
                full.removeAll(keepingCapacity: true)
                chunks.give(full)
                queue.withLock { $0.waiting -= 1 }
            }
            try file.write(full)
        }
    }

    private func perform(_ job: @escaping @Sendable (PartialFile) throws(HTTPSessionError) -> Void) {
        worker.run { [file, queue, wake] in
            var failure: HTTPSessionError?
            // After the first error all further work is skipped.
            if queue.withLock({ $0.error }) == nil {
                do throws(HTTPSessionError) { try job(file) } catch { failure = error }
            }
            let wakes = queue.withLock { queue in
                if let failure { queue.error = failure }
                // An error is reported at once, because the server may not send anything for a long time.
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
                deliver(.failure(FileSink.discard(file, after: error)))
            }
        }
    }

    /// Finishes with the file at the destination, which the server has confirmed. Its version is checked again, because the response may have taken
    /// hours.
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
        worker.run { [file] in done(FileSink.discard(file, after: error)) }
        return false
    }

    /// Discards the partial file, unless it may be continued. - Returns: The error, with resume data if there is any.
    private static func discard(_ file: PartialFile, after error: HTTPSessionError) -> HTTPSessionError {
        var error = error
        error.resumeData = file.discard(isWorthless: error.code == .digestMismatch)
        return error
    }
}

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
