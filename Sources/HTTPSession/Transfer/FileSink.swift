internal import EventLoop
internal import Foundation

/// Writes a body to a file, on a worker's thread. At most ``capacity`` bytes are on their way to it: then the transfer pauses.
final class FileSink: BodySink {
    static let capacity = 2 << 20
    static let chunkSize = 256 << 10

    let destination: DownloadDestination
    private let file: PartialFile
    private let worker: FileWorker
    private let wake: @Sendable () -> Void
    private let queue = Locked(Queue())
    private var chunk: [UInt8] = []

    private struct Queue: Sendable {
        var bytes = 0
        var loopWaits = false
        var error: HTTPSessionError?
    }

    /// `wake` is called on any thread when there is room after ``Intake/pause``, or an error to be heard of.
    init(_ destination: DownloadDestination, worker: FileWorker, wake: @escaping @Sendable () -> Void) {
        self.destination = destination
        file = PartialFile(destination)
        self.worker = worker
        self.wake = wake
    }

    var failure: HTTPSessionError? { queue.withLock { $0.error } }

    func begin(expected: Int64?) {
        chunk = []
        perform(cost: 0) { file throws(HTTPSessionError) in try file.begin(expected: expected) }
    }

    func take(_ bytes: UnsafeRawBufferPointer) -> Intake {
        let refusal = queue.withLock { queue -> Intake? in
            if let error = queue.error { return .abort(error) }
            guard queue.bytes < FileSink.capacity else {
                queue.loopWaits = true
                return .pause
            }
            return nil
        }
        if let refusal { return refusal }
        if chunk.capacity < FileSink.chunkSize { chunk.reserveCapacity(FileSink.chunkSize) }
        chunk.append(contentsOf: bytes)
        if chunk.count >= FileSink.chunkSize { flush() }
        return .taken
    }

    private func flush() {
        guard !chunk.isEmpty else { return }
        let full = chunk
        chunk = []
        perform(cost: full.count) { file throws(HTTPSessionError) in try file.write(full) }
    }

    private func perform(cost: Int, _ job: @escaping @Sendable (PartialFile) throws(HTTPSessionError) -> Void) {
        queue.withLock { $0.bytes += cost }
        worker.run { [file, queue, wake] in
            var failure: HTTPSessionError?
            // After the first error nothing more is tried.
            if queue.withLock({ $0.error }) == nil {
                do throws(HTTPSessionError) { try job(file) } catch { failure = error }
            }
            let wakes = queue.withLock { queue in
                queue.bytes -= cost
                if let failure { queue.error = failure }
                // Of an error the loop hears at once: the server may have nothing more to say for long.
                guard failure != nil || (queue.loopWaits && queue.bytes <= FileSink.capacity / 2) else { return false }
                queue.loopWaits = false
                return true
            }
            if wakes { wake() }
        }
    }

    func finishNow() -> ReceivedBody? { nil }

    func finish(_ deliver: @escaping @Sendable (Result<ReceivedBody, HTTPSessionError>) -> Void) {
        flush()
        worker.run { [file, queue] in
            do throws(HTTPSessionError) {
                if let error = queue.withLock({ $0.error }) { throw error }
                deliver(.success(ReceivedBody(file: try file.commit())))
            } catch {
                file.discard()
                deliver(.failure(error))
            }
        }
    }

    func discard(_ error: HTTPSessionError, _ done: @escaping @Sendable () -> Void) -> Bool {
        chunk = []
        worker.run { [file] in
            file.discard()
            done()
        }
        return false
    }
}
