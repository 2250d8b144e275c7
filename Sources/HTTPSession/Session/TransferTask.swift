internal import Dispatch
internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes

/// A transfer under way: what it is asked for decides its ``kind``, not its type.
///
/// A task belongs to its session and goes on without anybody holding it. Whoever awaits its value and is cancelled cancels the task.
public final class TransferTask: Sendable, Identifiable, CustomStringConvertible {
    /// What becomes of the response, and what was sent.
    @nonexhaustive public enum Kind: String, Hashable, Sendable {
        case data
        /// A data task with a body.
        case upload
        case download
        case stream
    }

    /// Where the task is.
    @nonexhaustive public enum State: Hashable, Sendable {
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
    /// What ``TransferHandlers/serverTrust`` has said; `nil`: nobody is asked.
    let decisions: ServerTrustDecisions?
    /// What ``TransferHandlers/clientCertificate`` has said; `nil`: nobody is asked.
    let identities: ClientCertificateDecisions?
    let validation: ResponseValidation
    /// Whether interceptors may have the request sent by another task when the response is not accepted.
    let isRepeatable: Bool

    private struct Shared: Sendable {
        var kind: Kind
        var state = State.suspended
        /// On the monotonic clock.
        var backsOffUntil: Int64?
        var job: TransferJob?
        var isCancelled = false
        /// The task that sends the request once more, because the response was not accepted.
        var repetition: TransferTask?
        var result: Result<TransferResponse, HTTPSessionError>?
        /// Of a task that has failed; a response has its own.
        var metrics: TransferMetrics?
        var waiters: [Waiter] = []
        var nextWaiter: UInt64 = 0
        var completions: [Completion] = []
        var progress = TransferProgress()
        /// Made when somebody wants to hear of the progress.
        var news: Broadcast<TransferProgress>?
        var watchers: [Broadcast<TransferProgress>.Callback] = []
    }

    private let shared: Locked<Shared>
    /// Where a stream's chunks arrive.
    let chunkBuffer: ChunkBuffer?

    init(
        _ specification: TaskSpecification, handlers: TransferHandlers, job: TransferJob, core: SessionCore,
        validation: ResponseValidation, decisions: ServerTrustDecisions?, identities: ClientCertificateDecisions?
    ) {
        id = specification.id
        request = specification.request
        if case .reader(let buffer) = specification.destination { chunkBuffer = buffer } else { chunkBuffer = nil }
        isRepeatable = job.isRepeatable(specification.kind)
        self.handlers = handlers
        self.core = core
        self.validation = validation
        self.decisions = decisions
        self.identities = identities
        shared = Locked(Shared(kind: specification.kind, job: job))
    }

    /// What becomes of the response. A response handler may turn a data task into a download.
    public var kind: Kind { shared.withLock { $0.kind } }
    /// Where the task is.
    public var state: State { shared.withLock { $0.state } }
    /// How long until the next attempt, while the task is ``State/backingOff``; `nil` otherwise.
    public var timeToNextAttempt: Duration? {
        shared.withLock { $0.backsOffUntil }.map { .nanoseconds(max(0, $0 - MonotonicClock.now())) }
    }
    /// How far it has come.
    public var currentProgress: TransferProgress { shared.withLock { $0.progress } }
    /// The result, once there is one.
    public var result: Result<TransferResponse, HTTPSessionError>? { shared.withLock { $0.result } }

    /// What was measured, once the task has ended, also of one that has failed; `nil` before, and where it never began.
    public var metrics: TransferMetrics? {
        shared.withLock { shared in
            if case .success(let response) = shared.result { return response.metrics }
            return shared.result == nil ? nil : shared.metrics
        }
    }

    /// What was measured of a task that is about to fail.
    func note(_ metrics: TransferMetrics) { shared.withLock { $0.metrics = metrics } }

    // MARK: Control

    /// Starts the task, or lets it go on. Nothing happens to one that runs or has ended; one that was never started ends with its
    /// session (``HTTPSessionError/Code/sessionInvalidated``).
    public func resume() {
        guard let job = shared.withLock({ $0.job.take() }) else {
            core.post(.resume(id))
            return
        }
        core.add(self, job)
        // Who cancelled it meanwhile may have told the session before the session knew of the task.
        if shared.withLock({ $0.isCancelled }) { core.post(.cancel(id)) }
    }

    /// Stops the task. A transfer under way is held: its connection stays open, and libcurl may have up to 32 MB of an HTTP/2 stream
    /// in memory meanwhile. The head of a response to a request that has gone may still arrive. A request that has not gone yet does not go;
    /// it takes its place in the queue again with ``resume()``. Its timeouts but the resource timeout stand still; a wait before a retry
    /// passes meanwhile, and is not cut short.
    public func suspend() { core.post(.suspend(id)) }

    /// Ends the task as ``HTTPSessionError/Code/cancelled``, unless it has ended.
    public func cancel() {
        // Let go of behind the lock, as all that may be the user's: an object's end may ask the task.
        let (job, repetition) = shared.withLock { shared in
            shared.isCancelled = true
            return (shared.job.take(), shared.repetition)
        }
        repetition?.cancel()
        if job != nil {
            fail(HTTPSessionError(.cancelled, "the task was cancelled before it started", context: context))
        } else {
            core.post(.cancel(id))
        }
    }

    /// The task that sends the request once more, while it is under way; canceled with this one.
    func become(repeatedBy repetition: TransferTask?) {
        let (isCancelled, former) = shared.withLock { shared in
            defer { shared.repetition = repetition }
            return (shared.isCancelled, shared.repetition)
        }
        if isCancelled { repetition?.cancel() }
        // A task is released outside of the lock, like all that may be the user's.
        withExtendedLifetime(former) {}
    }

    // MARK: Results

    /// One who waits for the end.
    fileprivate struct Waiter: Sendable {
        let number: UInt64
        let continuation: CheckedContinuation<Void, Never>
    }

    /// How many wait for the end.
    package var awaiterCount: Int { shared.withLock { $0.waiters.count } }

    /// Ends one wait, and with the only one the task. A wait that has not begun yet looks itself whether it is cancelled.
    private func endWait(_ number: UInt64) {
        let (waiter, isOnly) = shared.withLock { shared -> (Waiter?, Bool) in
            guard let index = shared.waiters.firstIndex(where: { $0.number == number }) else { return (nil, false) }
            return shared.waiters.count == 1 ? (nil, true) : (shared.waiters.remove(at: index), false)
        }
        if isOnly { cancel() }
        waiter?.continuation.resume()
    }

    /// Waits for the end. Any status is a value here; see ``data()`` for what checks it.
    ///
    /// If the waiting Swift task is cancelled, this throws ``HTTPSessionError/Code/cancelled``, and the transfer is cancelled, unless others wait
    /// for it too.
    public var value: TransferResponse {
        get async throws(HTTPSessionError) {
            let number = shared.withLock { shared in
                shared.nextWaiter += 1
                return shared.nextWaiter
            }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isFinished = shared.withLock { shared in
                        if shared.result == nil { shared.waiters.append(Waiter(number: number, continuation: continuation)) }
                        return shared.result != nil
                    }
                    if isFinished { continuation.resume() } else if Task.isCancelled { endWait(number) }
                }
            } onCancel: {
                endWait(number)
            }
            guard let result else { throw HTTPSessionError(.cancelled, "the task ended without a result", context: context) }
            return try result.get()
        }
    }

    /// How far the task has come: the present first, then the latest whenever it has changed, at most every 50 ms; ends with the task.
    public var progress: AsyncStream<TransferProgress> {
        let subscription = news.subscribe()
        return AsyncStream { await subscription.next() }
    }

    private var news: Broadcast<TransferProgress> {
        shared.withLock { shared in
            if let news = shared.news { return news }
            let news = Broadcast(shared.progress)
            // Nobody waits for it yet.
            if shared.result != nil { news.finish() }
            shared.news = news
            return news
        }
    }

    /// How many read the progress now.
    var progressReaderCount: Int { shared.withLock { $0.news }?.subscriberCount ?? 0 }

    /// What hears of the end. It is given the task, because what held it would be held by it, and neither would end before it starts.
    struct Completion: Sendable {
        /// Entered already.
        let group: DispatchGroup?
        let call: @Sendable (TransferTask, Result<TransferResponse, HTTPSessionError>, EndCallbacks) -> Void
    }

    /// Calls back with the result, on the session's delivery queue; at once where there is one.
    func onCompletion(_ completion: Completion) {
        let result = shared.withLock { shared in
            if shared.result == nil { shared.completions.append(completion) }
            return shared.result
        }
        if let result { core.deliver { [self] in completion.call(self, result, EndCallbacks()) } }
    }

    deinit {
        // Never started, and nobody can start it any more: its callbacks never run.
        for completion in shared.withLock({ $0.completions }) { completion.group?.leave() }
    }

    /// The method and the address, without what may be secret.
    public var description: String { "task \(id): \(context.method ?? "") \(context.url ?? "")" }

    var context: HTTPSessionError.Context { .init(of: request) }

    /// Ends before it has begun.
    func fail(_ error: HTTPSessionError) {
        var error = error
        error.context.url = error.context.url ?? context.url
        error.context.method = error.context.method ?? context.method
        _ = shared.withLock { $0.job.take() }
        chunkBuffer?.finish(error)
        core.completeUnstarted(self, error)
    }

    /// Whether it still waits for its first ``resume()``.
    var isUnstarted: Bool { shared.withLock { $0.job != nil } }

    /// The session ends, and the task has not been started.
    func refuseUnstarted() {
        if shared.withLock({ $0.job.take() }) != nil { fail(SessionCore.invalidated(self)) }
    }

    // MARK: Called by the session

    func become(_ state: State) { shared.withLock { $0.state = state } }
    func backsOff(until moment: Int64?) { shared.withLock { $0.backsOffUntil = moment } }
    func become(_ kind: Kind) { shared.withLock { $0.kind = kind } }

    static let progressInterval: Int64 = 50_000_000

    func publish(_ progress: TransferProgress) {
        let news = shared.withLock { shared in
            shared.progress = progress
            return shared.news
        }
        if let news { core.outbox.wake { news.publish(progress) } }
    }

    /// Calls back with the progress on the session's delivery queue, at most every 50 ms, and with the last one before the task ends. Where
    /// the queue is behind, only the latest waits for its turn.
    package func onProgress(_ body: @escaping @Sendable (TransferProgress) -> Void) {
        let hasBegun = currentProgress != TransferProgress()
        let watcher = news.call(includingLatest: hasBegun, body) { [core] in core.deliver($0) }
        shared.withLock { $0.watchers.append(watcher) }
    }

    /// What is called when the task has ended, off the session's thread, and let go of there: what the user's closures hold may ask the
    /// task or its session when it ends.
    struct Ending: Sendable {
        let result: Result<TransferResponse, HTTPSessionError>
        fileprivate(set) var progress = TransferProgress()
        fileprivate(set) var watchers: [Broadcast<TransferProgress>.Callback] = []
        fileprivate(set) var completions: [Completion] = []

        /// - Returns: the callbacks that are still to run.
        func tell(_ task: TransferTask) -> EndCallbacks? {
            for watcher in watchers { watcher.end(with: progress) }
            guard !completions.isEmpty else { return nil }
            let callbacks = EndCallbacks()
            for completion in completions { completion.call(task, result, callbacks) }
            return callbacks
        }
    }

    /// Who waits for the task when it ends. They are resumed outside of every lock: an executor may run their code at once.
    struct Awaiters: Sendable {
        fileprivate var waiters: [Waiter] = []
        fileprivate var news: Broadcast<TransferProgress>?
        fileprivate var progress = TransferProgress()

        var isEmpty: Bool { waiters.isEmpty && news == nil }

        func resume() {
            for waiter in waiters { waiter.continuation.resume() }
            // Once more: who hears of it finds the task at its end.
            news?.publish(progress)
            news?.finish()
        }
    }

    /// - Returns: `nil` where the task has ended before.
    func complete(_ result: Result<TransferResponse, HTTPSessionError>) -> (Ending, Awaiters)? {
        var ending = Ending(result: result)
        var awaiters = Awaiters()
        let isFirst = shared.withLock { shared in
            guard shared.result == nil else { return false }
            shared.result = result
            shared.state = .finished
            ending.progress = shared.progress
            awaiters.news = shared.news
            // Moved, not copied: nothing ends under the lock.
            swap(&awaiters.waiters, &shared.waiters)
            swap(&ending.watchers, &shared.watchers)
            swap(&ending.completions, &shared.completions)
            return true
        }
        guard isFirst else { return nil }
        // They hear of the progress once more, with the end.
        for watcher in ending.watchers { watcher.end() }
        awaiters.progress = ending.progress
        return (ending, awaiters)
    }
}
