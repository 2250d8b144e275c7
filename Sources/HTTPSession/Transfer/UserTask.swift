internal import EventLoop

/// A Swift task that runs user code for a session's thread: a handler, or the reading of a stream.
///
/// It runs on the process's threads, in the process's network namespace, even if the session's thread is in another namespace.
final class UserTask: Sendable {
    private enum State: Sendable {
        case waiting(@Sendable () async -> Void)
        case begun(Task<Void, Never>)
        case cancelled
    }

    private let state: Locked<State>

    init(_ body: @escaping @Sendable () async -> Void) {
        state = Locked(.waiting(body))
        HomeThread.run { [self] in
            state.withLock { state in
                if case .waiting(let body) = state { state = .begun(Task { await body() }) }
            }
        }
    }

    /// Cancels the task. A task that has not begun never begins, and its closure is released. Must not be called on a session's thread, because the
    /// user's cancellation handlers run on the calling thread.
    func cancel() {
        let former = state.withLock { state in
            defer { state = .cancelled }
            return state
        }
        if case .begun(let task) = former { task.cancel() }
    }
}
