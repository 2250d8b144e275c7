internal import FoundationEssentials

/// Where a response's body goes. Used on the loop's thread.
protocol BodySink: AnyObject {
    /// Why nothing more can be taken, known before anything more comes.
    var failure: HTTPSessionError? { get }
    /// A body begins; what came of an earlier attempt is dropped. `expected` is its length in bytes, where it is known.
    func begin(expected: Int64?)
    func take(_ bytes: UnsafeRawBufferPointer) -> Intake
    /// When what waits for more has waited long enough (``MonotonicClock``); `nil`: nothing waits.
    var flushesAt: Int64? { get }
    /// Waits for no more.
    func flush()
    /// All has come: what was asked for, if it is there at once.
    func finishNow() -> ReceivedBody?
    /// All has come. `deliver` is called once, on any thread, when what was asked for is there.
    func finish(_ deliver: @escaping @Sendable (Result<ReceivedBody, HTTPSessionError>) -> Void)
    /// Nothing shall be left of it but what may be continued. - Returns: whether that is so now; if not, `done` is called when it is, on
    /// any thread, with the error and its resume data.
    func discard(_ error: HTTPSessionError, _ done: @escaping @Sendable (HTTPSessionError) -> Void) -> Bool
}

extension BodySink {
    var flushesAt: Int64? { nil }
    func flush() {}

    /// Waits for no more if it has waited long enough.
    func flush(ifDueAt now: Int64) {
        if let flushesAt, flushesAt <= now { flush() }
    }
}

/// What a sink made of a body.
struct ReceivedBody: Sendable {
    var data = Data()
    var file: URL?
}

/// Keeps a body in memory.
final class DataSink: BodySink {
    let failure: HTTPSessionError? = nil
    private let maximumSize: Int
    // Unchecked: one thread uses the sink, and none of its closures outlives a call.
    @exclusivity(unchecked) private var data = Data()
    private var isReserved = false

    init(maximumSize: Int) { self.maximumSize = maximumSize }

    func begin(expected: Int64?) {
        data = Data()
        // A server may promise more than it sends: what is reserved beforehand stays modest. A small body comes in one piece.
        isReserved = (expected ?? 0) > 16 << 10
        if isReserved, let expected { data.reserveCapacity(Int(min(expected, 1 << 20, Int64(maximumSize)))) }
    }

    func take(_ bytes: UnsafeRawBufferPointer) -> Intake {
        guard data.count + bytes.count <= maximumSize else {
            return .abort(HTTPSessionError(.responseTooLarge, "the response is longer than \(maximumSize) bytes"))
        }
        if data.isEmpty, !isReserved, let start = bytes.baseAddress {
            data = Data(bytes: start, count: bytes.count)
        } else {
            data.append(contentsOf: bytes)
        }
        return .taken
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
