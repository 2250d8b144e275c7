internal import EventLoop
internal import Reachability

/// Between the monitor's thread and a session's: of what the kernel has said since the session last looked, only the last counts, and
/// the session is told once.
final class KernelNotices: Sendable {
    private struct State: Sendable {
        var path: NetworkPath?
        var isNew = false
        /// Whether it is more than routes.
        var isUrgent = false
    }

    private let state = Locked(State())

    /// On the monitor's thread. `tell` lets the session know.
    ///
    /// - Returns: true: more is welcome.
    func put(_ path: NetworkPath, tell: () -> Void) -> Bool {
        let isToldOf = state.withLock { state in
            let isOther = state.path != path
            defer { (state.path, state.isNew, state.isUrgent) = (path, true, state.isUrgent || isOther) }
            return state.isNew && (state.isUrgent || !isOther)
        }
        if !isToldOf { tell() }
        return true
    }

    /// Whether the path is another one too.
    var isUrgent: Bool { state.withLock { $0.isUrgent } }

    /// The path as it is, where anything has changed.
    func take() -> NetworkPath? {
        state.withLock { state in
            defer { (state.isNew, state.isUrgent) = (false, false) }
            return state.isNew ? state.path : nil
        }
    }
}
