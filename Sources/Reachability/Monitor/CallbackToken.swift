internal import EventLoop

/// Keeps a callback going: let go of it, or ``cancel()`` it, and no further call begins.
public final class CallbackToken: Sendable {
    private struct End: Sendable {
        var call: (@Sendable () -> Void)?
    }

    private let end: Locked<End>

    init(_ end: @escaping @Sendable () -> Void) { self.end = Locked(End(call: end)) }

    deinit { cancel() }

    /// Ends the callback. A call that is under way on another thread is not waited for.
    public func cancel() {
        let end = end.withLock { end in
            defer { end.call = nil }
            return end.call
        }
        end?()
    }
}
