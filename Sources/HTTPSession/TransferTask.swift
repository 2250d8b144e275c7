internal import EventLoop
internal import Foundation
internal import HTTPTypes

/// A transfer under way: what it is asked for decides its ``kind``, not its type.
///
/// A task belongs to its session and goes on without anybody holding it. Whoever awaits its value and is cancelled cancels the task.
public final class TransferTask: Sendable, Identifiable, CustomStringConvertible {
    /// What becomes of the response, and what was sent.
    public enum Kind: String, Hashable, Sendable {
        case data
        /// A data task with a body.
        case upload
        case download
        case stream
    }

    /// Where the task is.
    public enum State: Hashable, Sendable {
        /// Not started yet, or stopped by ``TransferTask/suspend()``.
        case suspended
        /// For a connection.
        case waiting
        case running
        /// Before another attempt.
        case backingOff
        /// For a network that leads to the server.
        case waitingForConnectivity
        case finished
    }

    /// Unique in this process.
    public let id: UInt64
    /// What was asked for at first.
    public let request: TransferRequest
    let core: SessionCore
    let handlers: TransferHandlers
    let validation: ResponseValidation

    private struct Shared: Sendable {
        var kind: Kind
        var state = State.suspended
        var job: TransferJob?
        var isCancelled = false
        var result: Result<TransferResponse, HTTPSessionError>?
        var waiters: [CheckedContinuation<Void, Never>] = []
        var completions: [@Sendable (Result<TransferResponse, HTTPSessionError>) -> Void] = []
        var progress = TransferProgress()
        var progressReaders: [AsyncStream<TransferProgress>.Continuation] = []
        var watchers: [@Sendable (TransferProgress) -> Void] = []
    }

    private let shared: Locked<Shared>
    /// Where a stream's chunks arrive.
    let chunkBuffer: ChunkBuffer?

    init(
        id: UInt64, request: TransferRequest, kind: Kind, handlers: TransferHandlers, job: TransferJob, core: SessionCore,
        chunkBuffer: ChunkBuffer?, validation: ResponseValidation
    ) {
        self.id = id
        self.request = request
        self.handlers = handlers
        self.core = core
        self.chunkBuffer = chunkBuffer
        self.validation = validation
        shared = Locked(Shared(kind: kind, job: job))
    }

    /// What becomes of the response. A response handler may turn a data task into a download.
    public var kind: Kind { shared.withLock { $0.kind } }
    /// Where the task is.
    public var state: State { shared.withLock { $0.state } }
    /// How far it has come.
    public var currentProgress: TransferProgress { shared.withLock { $0.progress } }
    /// The result, once there is one.
    public var result: Result<TransferResponse, HTTPSessionError>? { shared.withLock { $0.result } }

    // MARK: Control

    /// Starts the task, or lets it go on. Nothing happens to one that runs or has ended; one that was never started ends with its
    /// session (``HTTPSessionError/Code/sessionInvalidated``).
    public func resume() {
        let job = shared.withLock { shared in
            defer { shared.job = nil }
            return shared.job
        }
        guard let job else {
            core.post(.resume(id))
            return
        }
        core.add(self, job)
        // Who cancelled it meanwhile may have told the session before the session knew of the task.
        if shared.withLock({ $0.isCancelled }) { core.post(.cancel(id)) }
    }

    /// Stops the task. A transfer under way is held: its connection stays open, and libcurl may have up to 32 MB of an HTTP/2 stream
    /// in memory meanwhile. A request that has not gone yet does not go; it takes its place in the queue again with ``resume()``. Its
    /// timeouts but the resource timeout stand still.
    public func suspend() { core.post(.suspend(id)) }

    /// Ends the task as ``HTTPSessionError/Code/cancelled``, unless it has ended.
    public func cancel() {
        let wasNeverStarted = shared.withLock { shared in
            defer { shared.job = nil }
            shared.isCancelled = true
            return shared.job != nil
        }
        if wasNeverStarted {
            fail(HTTPSessionError(.cancelled, "the task was cancelled before it started", context: context))
        } else {
            core.post(.cancel(id))
        }
    }

    // MARK: Results

    /// Waits for the end. Any status is a value here; see ``data()`` for what checks it.
    public var value: TransferResponse {
        get async throws(HTTPSessionError) {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isFinished = shared.withLock { shared in
                        if shared.result == nil { shared.waiters.append(continuation) }
                        return shared.result != nil
                    }
                    if isFinished { continuation.resume() }
                }
            } onCancel: {
                cancel()
            }
            guard let result else { throw HTTPSessionError(.cancelled, "the task ended without a result", context: context) }
            return try result.get()
        }
    }

    /// How far the task has come: the present first, then the latest whenever it has changed, at most every 50 ms; ends with the task.
    public var progress: AsyncStream<TransferProgress> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let isFinished = shared.withLock { shared in
                continuation.yield(shared.progress)
                if shared.result == nil { shared.progressReaders.append(continuation) }
                return shared.result != nil
            }
            if isFinished { continuation.finish() }
        }
    }

    /// Calls back with the result, on the session's delivery queue; at once where there is one.
    func onCompletion(_ body: @escaping @Sendable (Result<TransferResponse, HTTPSessionError>) -> Void) {
        let result = shared.withLock { shared in
            if shared.result == nil { shared.completions.append(body) }
            return shared.result
        }
        if let result { core.deliver { body(result) } }
    }

    /// The method and the address, without what may be secret.
    public var description: String { "task \(id): \(context.method ?? "") \(context.url ?? "")" }

    var context: HTTPSessionError.Context { .init(of: request) }

    /// Ends before it has begun.
    func fail(_ error: HTTPSessionError) {
        shared.withLock { $0.job = nil }
        chunkBuffer?.finish(error)
        core.completeUnstarted(self, error)
    }

    /// Whether it still waits for its first ``resume()``.
    var isUnstarted: Bool { shared.withLock { $0.job != nil } }

    /// The session ends, and the task has not been started.
    func refuseUnstarted() {
        let wasUnstarted = shared.withLock { shared in
            defer { shared.job = nil }
            return shared.job != nil
        }
        if wasUnstarted { fail(SessionCore.invalidated(self)) }
    }

    // MARK: Called by the session

    func become(_ state: State) { shared.withLock { $0.state = state } }
    func become(_ kind: Kind) { shared.withLock { $0.kind = kind } }

    static let progressInterval: Int64 = 50_000_000

    func publish(_ progress: TransferProgress) {
        shared.withLock { shared in
            shared.progress = progress
            for reader in shared.progressReaders { reader.yield(progress) }
            if !shared.watchers.isEmpty {
                let watchers = shared.watchers
                core.deliver { for watcher in watchers { watcher(progress) } }
            }
        }
    }

    /// Calls back with the progress on the session's delivery queue, at most every 50 ms, and with the last one before the task ends.
    func onProgress(_ body: @escaping @Sendable (TransferProgress) -> Void) {
        let present = shared.withLock { shared in
            shared.watchers.append(body)
            return shared.progress
        }
        if present != TransferProgress() { core.deliver { body(present) } }
    }

    /// - Returns: what waits for the result and has to be called off the session's thread.
    func complete(
        _ result: Result<TransferResponse, HTTPSessionError>
    ) -> [@Sendable (Result<TransferResponse, HTTPSessionError>) -> Void] {
        let (waiters, readers, progress, completions) = shared.withLock { shared in
            guard shared.result == nil else {
                return ([], [], shared.progress, [])
                    as (
                        [CheckedContinuation<Void, Never>], [AsyncStream<TransferProgress>.Continuation], TransferProgress,
                        [@Sendable (Result<TransferResponse, HTTPSessionError>) -> Void]
                    )
            }
            shared.result = result
            shared.state = .finished
            if !shared.watchers.isEmpty {
                let (watchers, progress) = (shared.watchers, shared.progress)
                core.deliver { for watcher in watchers { watcher(progress) } }
            }
            defer { (shared.waiters, shared.progressReaders, shared.completions, shared.watchers) = ([], [], [], []) }
            return (shared.waiters, shared.progressReaders, shared.progress, shared.completions)
        }
        for waiter in waiters { waiter.resume() }
        for reader in readers {
            reader.yield(progress)
            reader.finish()
        }
        return completions
    }
}
