internal import EventLoop

/// The registration of a callback. Release the token, or call ``cancel()``, to prevent further calls.
public final class CallbackToken: Sendable {
    private struct End: Sendable {
        var call: (@Sendable () -> Void)?
    }

    private let end: Locked<End>

    init(_ end: @escaping @Sendable () -> Void) { self.end = Locked(End(call: end)) }

    deinit { cancel() }

    /// Prevents further calls of the callback. Does not wait for a call that is running on another thread.
    public func cancel() {
        let end = end.withLock { end in
            defer { end.call = nil }
            return end.call
        }
        end?()
    }
}
