internal import EventLoop
internal import Reachability

/// The latest path of the kernel, handed from the monitor's thread to the session's thread. Only the latest path is kept, and the session is
/// notified once until it takes the path.
final class KernelNotices: Sendable {
    private struct State: Sendable {
        var path: NetworkPath?
        var isNew = false
        /// Whether the path itself has changed, and not only routes.
        var isUrgent = false
    }

    private let state = Locked(State())

    /// Stores the path. Called on the monitor's thread.
    ///
    /// - Parameters:
    ///   - path: The present path.
    ///   - notify: Called if the session has to be notified.
    func put(_ path: NetworkPath, notify: () -> Void) {
        let isNotified = state.withLock { state in
            let isOther = state.path != path
            defer { (state.path, state.isNew, state.isUrgent) = (path, true, state.isUrgent || isOther) }
            return state.isNew && (state.isUrgent || !isOther)
        }
        if !isNotified { notify() }
    }

    /// The latest path; `nil` before the first.
    var path: NetworkPath? { state.withLock { $0.path } }

    /// Whether the path itself has changed, and not only routes.
    var isUrgent: Bool { state.withLock { $0.isUrgent } }

    /// The present path, if anything has changed since the last call.
    func take() -> NetworkPath? {
        state.withLock { state in
            defer { (state.isNew, state.isUrgent) = (false, false) }
            return state.isNew ? state.path : nil
        }
    }
}
