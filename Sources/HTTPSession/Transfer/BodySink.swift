internal import FoundationEssentials

/// The receiver of a response's body. Used on the loop's thread.
protocol BodySink: AnyObject {
    /// The error for which no more bytes can be taken; `nil` if there is none.
    var failure: HTTPSessionError? { get }
    /// Begins a body, and discards the bytes of an earlier attempt. `expected` is its length in bytes, if known.
    func begin(expected: Int64?)
    func receive(_ bytes: UnsafeRawBufferPointer) -> Intake
    /// The time at which buffered bytes have to be flushed (``MonotonicClock``); `nil` if none are buffered.
    var flushesAt: Int64? { get }
    /// Passes on the buffered bytes.
    func flush()
    /// Finishes a complete body. - Returns: The body; `nil` if it is not available at once.
    func finishNow() -> ReceivedBody?
    /// Finishes a complete body. `deliver` is called once, on any thread, with the body or an error.
    func finish(_ deliver: @escaping @Sendable (Result<ReceivedBody, HTTPSessionError>) -> Void)
    /// Removes the body, except a partial file that may be continued.
    ///
    /// - Returns: Whether it is removed now. If not, `done` is called later, on any thread, with the error and its resume data.
    func discard(_ error: HTTPSessionError, _ done: @escaping @Sendable (HTTPSessionError) -> Void) -> Bool
}

extension BodySink {
    var flushesAt: Int64? { nil }
    func flush() {}

    /// Passes on the buffered bytes if they are due.
    func flush(ifDueAt now: Int64) {
        if let flushesAt, flushesAt <= now { flush() }
    }
}

/// A body that a sink has received.
struct ReceivedBody: Sendable {
    var data = Data()
    var file: URL?
}

/// The sink that keeps a body in memory.
final class DataSink: BodySink {
    let failure: HTTPSessionError? = nil
    private let maximumSize: Int
    // Unchecked: one thread uses the sink, and none of its closures outlives a call.
    @exclusivity(unchecked) private var data = Data()
    private var isReserved = false

    init(maximumSize: Int) { self.maximumSize = maximumSize }

    func begin(expected: Int64?) {
        data = Data()
        // A server may announce more than it sends, so at most 1 MiB is reserved. A small body arrives in one piece, and needs no reservation.
        isReserved = (expected ?? 0) > 16 << 10
        if isReserved, let expected { data.reserveCapacity(Int(min(expected, 1 << 20, Int64(maximumSize)))) }
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Intake {
        guard data.count + bytes.count <= maximumSize else {
            return .abort(HTTPSessionError(.responseTooLarge, "the response is longer than \(maximumSize) bytes"))
        }
        if data.isEmpty, !isReserved, let start = bytes.baseAddress {
            data = Data(bytes: start, count: bytes.count)
        } else {
            data.append(contentsOf: bytes)
        }
        return .accepted
    }

    func finishNow() -> ReceivedBody? {
        defer { data = Data() }
        return ReceivedBody(data: data)
    }

    func finish(_ deliver: @escaping @Sendable (Result<ReceivedBody, HTTPSessionError>) -> Void) {
        if let body = finishNow() { deliver(.success(body)) }
    }

    func discard(_ error: HTTPSessionError, _ done: @escaping @Sendable (HTTPSessionError) -> Void) -> Bool {
        data = Data()
        return true
    }
}

/// The destination of a response's body.
enum BodyDestination: Sendable {
    case memory(maximumSize: Int)
    // Indirect: otherwise every value would be as large as this one, and be copied with it.
    indirect case file(DownloadDestination)
    case reader(ChunkBuffer)
}
