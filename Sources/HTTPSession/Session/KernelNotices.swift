internal import EventLoop
internal import Reachability

/// The latest path of the kernel, handed from the monitor's thread to the session's thread. Only the latest path is kept, and the session is
/// notified once until it takes the path. A published path is kept until the routes of the same change have been handed over.
final class KernelNotices: Sendable {
    private struct State: Sendable {
        var path: NetworkPath?
        var isNew = false
        /// Whether the path itself has changed, and not only routes.
        var isUrgent = false
        /// The published path that the session has not been notified of.
        var published: NetworkPath?
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

    /// Stores a path that the monitor publishes.
    func publish(_ path: NetworkPath) { state.withLock { $0.published = path } }

    /// Takes the published path; `nil` if the session has been notified of it.
    func takePublished() -> NetworkPath? { state.withLock { $0.published.take() } }

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
