import EventLoop
import Reachability

/// The thread that renders pages. The other threads of the program stay free, so that the state of the service is answered however many
/// pages clients ask for.
final class RenderQueue: Sendable {
    /// The maximum number of pages that wait. A client beyond it is asked to try again.
    static let limit = 64

    private let worker: Worker
    private let waiting = Locked(0)

    /// - Throws: the failed system call.
    init() throws(LoopThread.StartError) { worker = try Worker(name: "netwatch-pages") }

    /// Renders on the thread. - Returns: `nil` if too many pages wait.
    func render(_ body: @escaping @Sendable () -> [UInt8]) async -> [UInt8]? {
        let isAccepted = waiting.withLock { waiting in
            guard waiting < Self.limit else { return false }
            waiting += 1
            return true
        }
        guard isAccepted else { return nil }
        return await withCheckedContinuation { continuation in
            worker.run { [self] in
                let bytes = body()
                waiting.withLock { $0 -= 1 }
                continuation.resume(returning: bytes)
            }
        }
    }
}
