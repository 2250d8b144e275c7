internal import Dispatch
internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes

/// A task of a session: one request, and its response as data, as a file or as a stream.
///
/// ```swift
/// let download = session.download("models/big.bin", to: file)
/// for await progress in download.progress { print(progress.fractionCompleted as Any) }
/// try await download.file()
/// ```
///
/// A task runs even if the program keeps no reference to it. ``response``, ``data()``, ``decode(as:decoder:)``, ``file()`` and similar methods await
/// its result, any number of times.
public final class TransferTask: Sendable, Identifiable, CustomStringConvertible {
    /// The kind of task: whether its response is kept in memory, written to a file, or streamed.
    @nonexhaustive public enum Kind: String, Hashable, Sendable {
        /// The response is kept in memory.
        case data
        /// The request has a body, and the response is kept in memory.
        case upload
        /// The response is written to a file.
        case download
        /// The response is read in chunks (``TransferTask/chunks``).
        case stream
    }

    /// The state of a task.
    @nonexhaustive public enum State: Hashable, Sendable {
        /// The task has not started, or was suspended by ``TransferTask/suspend()``.
        case suspended
        /// The task is queued and waits for a free connection.
        case waiting
        /// An attempt is under way.
        case running
        /// The task waits before its next attempt (``TransferTask/timeToNextAttempt``).
        case backingOff
        /// The task waits for a network that leads to its server.
        case waitingForConnectivity
        /// The task has a result.
        case finished
    }

    /// The task's number, unique in this process.
    public let id: UInt64
    /// The request of the task as it was made; redirects and interceptors do not change it.
    public let request: TransferRequest
    let core: SessionCore
    /// Whether the task was made with handlers, and with interceptors.
    let hasHandlers: Bool
    let hasInterceptors: Bool
    /// The decisions of ``TransferHandlers/serverTrust``; `nil` if there is no such handler.
    let decisions: ServerTrustDecisions?
    /// The choices of ``TransferHandlers/clientCertificate``; `nil` if there is no such handler.
    let identities: ClientCertificateDecisions?
    let validation: ResponseValidation
    /// Whether interceptors may repeat the request by another task if the response is not accepted.
    let isRepeatable: Bool
    /// Whether the task and its job may reference objects of the user, whose deinitializers must not run on the session's thread.
    let mayHaveUserObjects: Bool

    private struct Shared: Sendable {
        var kind: Kind
        var state = State.suspended
        /// On the monotonic clock.
        var backsOffUntil: Int64?
        var job: TaskJob?
        /// The job of a task that has finished, until a reader of the result releases it.
        var finishedJob: TaskJob?
        var isCancelled = false
        var hasWaited = false
        /// The task that repeats the request because the response was not accepted.
        var repetition: TransferTask?
        var result: Result<TransferResponse, HTTPSessionError>?
        /// The response of a stream while its body arrives, or waits for a reader; `nil` before and after that.
        var arrivingResponse: TransferResponse?
        /// The metrics of a task that failed; a response has its own metrics.
        @BoxedOptional var metrics: TransferMetrics?
        var waiters: [Waiter] = []
        var nextWaiter: UInt64 = 0
        /// The number of Swift tasks that await the result, also of those whose wait has not begun. It is not counted down at the end.
        var openWaits = 0
        /// The numbers of a stream's waits that were canceled, until their Swift tasks have noticed.
        var cancelledWaits: [UInt64] = []
        var completions: [Completion] = []
        var progress = TransferProgress()
        /// Made for the first reader of the progress.
        var broadcast: Broadcast<TransferProgress>?
        var watchers: [Broadcast<TransferProgress>.Callback] = []
        /// The handlers of a task that has not finished.
        @BoxedOptional var handlers: TransferHandlers?

        /// The response of a stream whose body has not ended. A task that is being canceled waits for its end instead.
        var currentResponse: TransferResponse? { isCancelled ? nil : arrivingResponse }
    }

    private let shared: Locked<Shared>
    /// The buffer of a stream's chunks.
    let chunkBuffer: ChunkBuffer?

    init(
        _ job: TaskJob, handlers: TransferHandlers, core: SessionCore,
        validation: ResponseValidation, decisions: ServerTrustDecisions?, identities: ClientCertificateDecisions?
    ) {
        id = job.id
        request = job.request
        if case .reader(let buffer) = job.destination { chunkBuffer = buffer } else { chunkBuffer = nil }
        isRepeatable = job.isRepeatable
        hasHandlers = !handlers.isEmpty
        hasInterceptors = !handlers.interceptors.isEmpty
        mayHaveUserObjects = hasHandlers || !validation.checks.isEmpty || job.mayHaveUserObjects
        self.core = core
        self.validation = validation
        self.decisions = decisions
        self.identities = identities
        var shared = Shared(kind: job.kind, job: job)
        if hasHandlers { shared.handlers = handlers }
        self.shared = Locked(shared)
    }

    /// The task's handlers; none when it has finished, unless a serializer may ask its interceptors.
    var handlers: TransferHandlers {
        guard hasHandlers else { return TransferHandlers() }
        return shared.withLock { $0.handlers } ?? core.handlers.kept(of: id) ?? TransferHandlers()
    }

    /// Releases the handlers of a task that has finished. Called on the delivery queue, because their objects are the user's.
    func releaseHandlers() {
        let (handlers, isSuccess) = shared.withLock { shared in
            if case .success = shared.result { (shared.handlers, true) } else { (shared.handlers, false) }
        }
        // Kept before they are taken away, so that a serializer finds them at any time.
        if isSuccess, isRepeatable, hasInterceptors, let handlers { core.handlers.keep(handlers, of: id) }
        shared.withLock { $0.handlers = nil }
        withExtendedLifetime(handlers) {}
    }

    /// The kind of the task. A response handler may turn a data task into a download.
    public var kind: Kind { shared.withLock { $0.kind } }
    /// The present state of the task.
    public var state: State { shared.withLock { $0.state } }
    /// The time until the next attempt while the task is ``State/backingOff``; `nil` otherwise.
    public var timeToNextAttempt: Duration? {
        shared.withLock { $0.backsOffUntil }.map { .nanoseconds(max(0, $0 - core.settings.transport.now())) }
    }
    /// The present progress of the task.
    public var currentProgress: TransferProgress { shared.withLock { $0.progress } }
    /// The result of the task; `nil` until it has finished.
    public var result: Result<TransferResponse, HTTPSessionError>? { shared.withLock { $0.result } }

    /// The metrics of the task, also if it failed; `nil` until it has finished, and if it never started.
    public var metrics: TransferMetrics? {
        shared.withLock { shared in
            if case .success(let response) = shared.result { return response.metrics }
            return shared.result == nil ? nil : shared.metrics
        }
    }

    /// Stores the metrics of a task that is about to fail.
    func store(_ metrics: TransferMetrics) { shared.withLock { $0.metrics = metrics } }

    /// Returns whether the task waits for a network for the first time, and notes that it does.
    func isFirstWait() -> Bool {
        shared.withLock { shared in
            defer { shared.hasWaited = true }
            return !shared.hasWaited
        }
    }

    // MARK: Control

    /// Starts the task, or resumes it after ``suspend()``. The method has no effect on a task that runs or has finished.
    ///
    /// A task that is never started fails when its session ends (``HTTPSessionError/Code/sessionInvalidated``).
    public func resume() {
        guard let job = shared.withLock({ $0.job.take() }) else {
            core.post(.resume(id))
            return
        }
        core.add(self, job)
        // A concurrent cancel() may have reached the session before the task did.
        if shared.withLock({ $0.isCancelled }) { core.post(.cancel(id)) }
    }

    /// Suspends the task until ``resume()``.
    ///
    /// A running transfer pauses: its connection stays open, and libcurl may keep up to 32 MB of an HTTP/2 stream in memory. If the request was sent,
    /// the head of the response may still arrive. If the request was not sent, it remains unsent, and ``resume()`` queues it again. The timeouts are
    /// paused, except the resource timeout. A wait before a retry continues and is not shortened.
    ///
    /// If other tasks wait for the host's connections (``SessionConfiguration/maximumConnectionsPerHost``), the task yields its place to them one second
    /// after its suspension. It keeps its connection, and continues at once when it is resumed.
    public func suspend() { core.post(.suspend(id)) }

    /// Cancels the task: it fails with ``HTTPSessionError/Code/cancelled``, unless it has finished.
    public func cancel() {
        // Released outside of the lock, because a deinitializer of the user's may use the task.
        let (job, repetition) = shared.withLock { shared in
            shared.isCancelled = true
            return (shared.job.take(), shared.repetition)
        }
        repetition?.cancel()
        if job != nil {
            fail(HTTPSessionError(.cancelled, "the task was canceled before it started", context: context))
        } else {
            core.post(.cancel(id))
        }
    }

    /// Stores the task that repeats the request, which is canceled with this one; `nil` when it has finished.
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

    /// A Swift task that awaits the result.
    fileprivate struct Waiter: Sendable {
        let number: UInt64
        let continuation: CheckedContinuation<Void, Never>
    }

    /// The number of Swift tasks that await the result.
    package var awaiterCount: Int { shared.withLock { $0.waiters.count } }

    /// Ends one wait, and cancels the task if nothing else waits for it: no Swift task, no callback, no reader of its chunks.
    private func endWait(_ number: UInt64) {
        let isRead = chunkBuffer?.hasReaders == true
        let (waiter, isOnly) = shared.withLock { shared -> (Waiter?, Bool) in
            guard shared.result == nil else { return (nil, false) }
            shared.openWaits -= 1
            if chunkBuffer != nil { shared.cancelledWaits.append(number) }
            let isOnly = shared.openWaits == 0 && shared.completions.isEmpty && !isRead
            guard let index = shared.waiters.firstIndex(where: { $0.number == number }) else { return (nil, isOnly) }
            // The end of the task resumes the last one.
            return isOnly ? (nil, true) : (shared.waiters.remove(at: index), false)
        }
        if isOnly { cancel() }
        waiter?.continuation.resume()
    }

    /// The response when the task has finished. It may have any status; ``data()`` and the other methods validate the status.
    ///
    /// For a stream, the property returns when the head of the response has arrived, whether or not ``chunks`` are read: with empty data, and the
    /// metrics so far. Errors of the body are thrown by ``chunks``. When the body has ended, the property has the task's result, like that of other
    /// tasks.
    ///
    /// If the awaiting Swift task is canceled, the property throws ``HTTPSessionError/Code/cancelled``. The `TransferTask` is canceled too, unless
    /// other Swift tasks await it, callbacks wait for it, or its chunks are read.
    public var response: TransferResponse {
        get async throws(HTTPSessionError) {
            // Counted before the wait begins, so that a concurrent cancellation of another one finds it.
            let number = shared.withLock { shared in
                shared.nextWaiter += 1
                shared.openWaits += 1
                return shared.nextWaiter
            }
            while true {
                await withTaskCancellationHandler {
                    await withCheckedContinuation { continuation in
                        let waits = shared.withLock { shared in
                            guard shared.result == nil, shared.currentResponse == nil, !Task.isCancelled else { return false }
                            shared.waiters.append(Waiter(number: number, continuation: continuation))
                            return true
                        }
                        if !waits { continuation.resume() }
                    }
                } onCancel: {
                    endWait(number)
                }
                let (result, job) = shared.withLock { ($0.result, $0.finishedJob.take()) }
                if let result {
                    withExtendedLifetime(job) {}
                    return try result.get()
                }
                switch endWaitWithoutResult(number) {
                case .response(let response): return response
                // The body of a stream has ended since the wait ended, and the result follows.
                case .result: continue
                case .cancelled: throw HTTPSessionError(.cancelled, "the wait for the task was canceled", context: context)
                }
            }
        }
    }

    /// What follows a wait that has ended although the task has no result.
    private enum WaitEnd {
        /// The head of a stream's response has arrived.
        case response(TransferResponse)
        /// The result is awaited.
        case result
        case cancelled
    }

    private func endWaitWithoutResult(_ number: UInt64) -> WaitEnd {
        guard chunkBuffer != nil else { return .cancelled }
        return shared.withLock { shared in
            if let index = shared.cancelledWaits.firstIndex(of: number) {
                shared.cancelledWaits.remove(at: index)
                return .cancelled
            }
            guard let response = shared.currentResponse else { return .result }
            shared.openWaits -= 1
            return .response(response)
        }
    }

    /// The progress of the task: first the present progress, then the latest one after each change, at most every 50 ms. The stream ends with the
    /// task.
    public var progress: AsyncStream<TransferProgress> {
        let subscription = broadcast.subscribe()
        return AsyncStream { await subscription.next() }
    }

    private var broadcast: Broadcast<TransferProgress> {
        shared.withLock { shared in
            if let broadcast = shared.broadcast { return broadcast }
            let broadcast = Broadcast(shared.progress)
            if shared.result != nil { broadcast.finish() }
            shared.broadcast = broadcast
            return broadcast
        }
    }

    /// The number of readers of the progress.
    var progressReaderCount: Int { shared.withLock { $0.broadcast }?.subscriberCount ?? 0 }

    /// A callback of the task's end. It receives the task: a reference of its own would be a cycle until the task starts.
    struct Completion: Sendable {
        /// The group that was entered for this callback.
        let group: DispatchGroup?
        let call: @Sendable (TransferTask, Result<TransferResponse, HTTPSessionError>, EndCallbacks) -> Void
    }

    /// Calls the closure with the result on the session's delivery queue, at once if the task has finished.
    func onCompletion(_ completion: Completion) {
        let result = shared.withLock { shared in
            if shared.result == nil { shared.completions.append(completion) }
            return shared.result
        }
        if let result { core.deliver { [self] in completion.call(self, result, EndCallbacks()) } }
    }

    deinit {
        // The task never started, and without a reference nothing can start it: its callbacks never run.
        for completion in shared.withLock({ $0.completions }) { completion.group?.leave() }
        if hasInterceptors, isRepeatable { core.handlers.remove(of: id) }
    }

    /// The task's number, its method and its URL without secrets.
    public var description: String { "task \(id): \(context.method ?? "") \(context.url ?? "")" }

    var context: HTTPSessionError.Context { .init(of: request) }

    /// Fails the task before it starts.
    func fail(_ error: HTTPSessionError) {
        var error = error
        error.context.url = error.context.url ?? context.url
        error.context.method = error.context.method ?? context.method
        _ = shared.withLock { $0.job.take() }
        chunkBuffer?.finish(error)
        core.completeUnstarted(self, error)
    }

    /// Whether the task waits for its first ``resume()``.
    var isUnstarted: Bool { shared.withLock { $0.job != nil } }

    /// Fails a task that was not started, because its session ends.
    func refuseUnstarted() {
        if shared.withLock({ $0.job.take() }) != nil { fail(SessionCore.invalidated(self)) }
    }

    // MARK: Called by the session

    func become(_ state: State) { shared.withLock { $0.state = state } }
    func setBackoff(until moment: Int64?) { shared.withLock { $0.backsOffUntil = moment } }
    func become(_ kind: Kind) { shared.withLock { $0.kind = kind } }

    /// Keeps the job of a task that is about to finish, if Swift tasks await the result. A reader of the result frees it, because a thread of the
    /// caller allocated it.
    func keep(_ job: TaskJob) { shared.withLock { if $0.openWaits > 0 { $0.finishedJob = job } } }

    /// Stores the response of a stream whose body begins to arrive.
    ///
    /// - Returns: The Swift tasks that await it.
    func beginBody(of response: TransferResponse) -> Awaiters {
        var awaiters = Awaiters()
        shared.withLock { shared in
            shared.arrivingResponse = response
            swap(&awaiters.waiters, &shared.waiters)
        }
        return awaiters
    }

    /// Makes those who ask for a stream's response wait for its result, because the body has ended.
    func endBody() {
        guard chunkBuffer != nil else { return }
        let former = shared.withLock { $0.arrivingResponse.take() }
        withExtendedLifetime(former) {}
    }

    func publish(_ progress: TransferProgress) {
        let broadcast = shared.withLock { shared in
            shared.progress = progress
            return shared.broadcast
        }
        if let broadcast { core.outbox.wake { broadcast.publish(progress) } }
    }

    /// Calls the closure with the progress on the session's delivery queue, at most every 50 ms, and with the last progress before the task finishes.
    /// If the queue is slow, only the latest progress is pending.
    package func onProgress(_ body: @escaping @Sendable (TransferProgress) -> Void) {
        let hasBegun = currentProgress != TransferProgress()
        let watcher = broadcast.call(includingLatest: hasBegun, body) { [core] in core.deliver($0) }
        let hasFinished = shared.withLock { shared in
            if shared.result == nil { shared.watchers.append(watcher) }
            return shared.result != nil
        }
        // A task that has finished does not keep the closure, which is the user's.
        guard hasFinished else { return }
        core.deliver { [self] in
            // The task may have finished since `hasBegun` was read: then its broadcast may have nothing for this callback.
            if !hasBegun { watcher.end(with: currentProgress) }
            withExtendedLifetime(watcher) {}
        }
    }

    /// The callbacks of a task that has finished. They are called and released outside of the session's thread. The objects that a user's closure
    /// retains may use the task or its session in their deinitializers.
    struct Ending: Sendable {
        let result: Result<TransferResponse, HTTPSessionError>
        fileprivate(set) var progress = TransferProgress()
        fileprivate(set) var watchers: [Broadcast<TransferProgress>.Callback] = []
        fileprivate(set) var completions: [Completion] = []

        var hasCallbacks: Bool { !watchers.isEmpty || !completions.isEmpty }

        /// - Returns: The callbacks that have not run yet.
        func notify(_ task: TransferTask) -> EndCallbacks? {
            for watcher in watchers { watcher.end(with: progress) }
            guard !completions.isEmpty else { return nil }
            let callbacks = EndCallbacks()
            for completion in completions { completion.call(task, result, callbacks) }
            return callbacks
        }
    }

    /// The Swift tasks that await the result. They are resumed outside of every lock, because an executor may run their code at once.
    struct Awaiters: Sendable {
        fileprivate var waiters: [Waiter] = []
        fileprivate var broadcast: Broadcast<TransferProgress>?
        fileprivate var progress = TransferProgress()

        var isEmpty: Bool { waiters.isEmpty && broadcast == nil }

        func resume() {
            for waiter in waiters { waiter.continuation.resume() }
            // Published again, so that a reader that receives it finds the task finished.
            broadcast?.publish(progress)
            broadcast?.finish()
        }
    }

    /// - Returns: `nil` if the task had finished before.
    func complete(_ result: Result<TransferResponse, HTTPSessionError>) -> (Ending, Awaiters)? {
        var ending = Ending(result: result)
        var awaiters = Awaiters()
        let isFirst = shared.withLock { shared in
            guard shared.result == nil else { return false }
            shared.result = result
            shared.state = .finished
            ending.progress = shared.progress
            awaiters.broadcast = shared.broadcast
            // Moved, not copied: nothing ends under the lock.
            swap(&awaiters.waiters, &shared.waiters)
            swap(&ending.watchers, &shared.watchers)
            swap(&ending.completions, &shared.completions)
            return true
        }
        guard isFirst else { return nil }
        // The callbacks receive the progress once more, with the end.
        for watcher in ending.watchers { watcher.end() }
        awaiters.progress = ending.progress
        return (ending, awaiters)
    }
}

extension TransferTask.State {
    init(_ visibleState: TaskMachine.VisibleState) {
        self =
            switch visibleState {
            case .suspended: .suspended
            case .waiting: .waiting
            case .running: .running
            case .backingOff: .backingOff
            case .waitingForConnectivity: .waitingForConnectivity
            }
    }
}
