internal import EventLoop

/// The handlers of a session, and what finished tasks keep of theirs, until the session has ended.
final class SessionHandlers: Sendable {
    private struct State: Sendable {
        var handlers: TransferHandlers
        /// The handlers of tasks that have finished, by the numbers of the tasks: if a serializer refuses the response, interceptors may repeat the
        /// request with the same handlers.
        var kept: [UInt64: TransferHandlers] = [:]
        var hasEnded = false
    }

    private let state: Locked<State>

    init(_ handlers: TransferHandlers) { state = Locked(State(handlers: handlers)) }

    /// The session's handlers; none when the session has ended.
    var current: TransferHandlers { state.withLock { $0.handlers } }

    /// Keeps the handlers of a finished task. They are used no more when the session has ended, because a repeated task would fail.
    func keep(_ handlers: TransferHandlers, of task: UInt64) {
        state.withLock { if !$0.hasEnded { $0.kept[task] = handlers } }
    }

    func kept(of task: UInt64) -> TransferHandlers? { state.withLock { $0.kept[task] } }

    /// Releases the kept handlers of a task that is deallocated.
    func remove(of task: UInt64) {
        let former = state.withLock { $0.kept.removeValue(forKey: task) }
        withExtendedLifetime(former) {}
    }

    /// Releases everything, outside of the lock, because deinitializers of the user's objects may use the session.
    func end() {
        var former = State(handlers: TransferHandlers(), hasEnded: true)
        state.withLock { swap(&former, &$0) }
        withExtendedLifetime(former) {}
    }
}
