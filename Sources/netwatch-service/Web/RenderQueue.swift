import EventLoop
import Reachability

/// The thread that renders documents and the beginnings of streams. The other threads of the program stay free, so that the state of the
/// service is answered however many documents clients ask for.
///
/// Connections, and users of the Unix socket, have their turns (``TurnOrder``). A connection has one request at a time, so the
/// number of jobs is limited by that of connections.
final class RenderQueue: Sendable {
    /// A piece of a document. It returns the job of the next one; `nil` after the last.
    private struct Job: Sendable {
        let client: RenderClient
        let run: @Sendable (_ isWanted: Bool) -> Job?
    }

    private struct State: Sendable {
        var order = TurnOrder<RenderClient.Share, Job>()
        var isRunning = false
    }

    private let worker: Worker
    private let state = Locked(State())

    /// - Throws: the failed system call.
    init() throws(LoopThread.StartError) { worker = try Worker(name: "netwatch-pages") }

    /// Renders a document in pieces. - Returns: `nil` if the client's connection is closed before.
    func render(_ document: any PiecewiseDocument, for client: RenderClient) async -> [UInt8]? {
        let document = Locked(document)
        return await withCheckedContinuation { continuation in
            add(Self.job(document, client, continuation))
        }
    }

    private static func job(
        _ document: Locked<any PiecewiseDocument>, _ client: RenderClient, _ continuation: CheckedContinuation<[UInt8]?, Never>
    ) -> Job {
        Job(client: client) { isWanted in
            guard isWanted else {
                continuation.resume(returning: nil)
                return nil
            }
            // Only this thread has the document.
            guard let bytes = document.withLock({ $0.renderPiece() }) else { return job(document, client, continuation) }
            continuation.resume(returning: bytes)
            return nil
        }
    }

    /// Runs one piece of work. - Returns: `nil` if the client's connection is closed before.
    func run<Value: Sendable>(for client: RenderClient, _ body: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { continuation in
            add(
                Job(client: client) { isWanted in
                    continuation.resume(returning: isWanted ? body() : nil)
                    return nil
                })
        }
    }

    private func add(_ job: Job) {
        let begins = state.withLock { state in
            state.order.add(job, of: job.client.share)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if begins { worker.run { [self] in work() } }
    }

    /// Runs pieces until none waits.
    private func work() {
        while let job = next() {
            guard let remainder = job.run(job.client.isOpen) else { continue }
            state.withLock { $0.order.putBack(remainder) }
        }
    }

    private func next() -> Job? {
        state.withLock { state in
            let next = state.order.next()
            if next == nil { state.isRunning = false }
            return next
        }
    }
}
