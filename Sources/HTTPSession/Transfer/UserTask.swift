internal import EventLoop

/// A user's code that a session's thread has begun: a handler's answer, the reading of a stream.
///
/// Its task runs on the process's threads, in the process's network namespace, wherever the session's thread is.
final class UserTask: Sendable {
    private enum State: Sendable {
        case coming(@Sendable () async -> Void)
        case begun(Task<Void, Never>)
        case cancelled
    }

    private let state: Locked<State>

    init(_ body: @escaping @Sendable () async -> Void) {
        state = Locked(.coming(body))
        HomeThread.run { [self] in
            state.withLock { state in
                if case .coming(let body) = state { state = .begun(Task { await body() }) }
            }
        }
    }

    /// What hears of it is the user's, and runs on the caller's thread: not on a session's. What has not begun does not begin, and is let
    /// go of here.
    func cancel() {
        let former = state.withLock { state in
            defer { state = .cancelled }
            return state
        }
        if case .begun(let task) = former { task.cancel() }
    }
}
