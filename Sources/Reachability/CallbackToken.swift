internal import EventLoop

/// Keeps a callback going: let go of it, or ``cancel()`` it, and no further call begins.
public final class CallbackToken: Sendable {
    private let end: Locked<(@Sendable () -> Void)?>

    init(_ end: @escaping @Sendable () -> Void) { self.end = Locked(end) }

    deinit { cancel() }

    /// Ends the callback. A call that is under way on another thread is not waited for.
    public func cancel() {
        let end = end.withLock { end in
            defer { end = nil }
            return end
        }
        end?()
    }
}
