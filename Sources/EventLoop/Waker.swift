internal import CLinux
internal import Glibc

/// Wakes an ``EventLoop`` from any thread (eventfd(2)). Wake-ups before the loop looks count as one.
public final class Waker: Sendable {
    /// The eventfd, for loops that are not an ``EventLoop``.
    package let descriptor: Int32

    /// - Parameter blocks: for threads that wait for nothing else, with ``waitAndAcknowledge()``.
    /// - Throws: `LoopError`, when the system gives no descriptor.
    package init(blocks: Bool = false) throws(LoopError) {
        descriptor = eventfd(0, netwatch_EFD_FLAGS & (blocks ? ~netwatch_EFD_NONBLOCK : ~0))
        guard descriptor >= 0 else { throw LoopError(call: "eventfd", errno: errno) }
    }

    deinit { close(descriptor) }

    /// Makes the loop's wait return. Never blocks; the counter cannot overflow in the life of a machine.
    public func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Takes the wake-up away, so that the next wait waits.
    package func acknowledge() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }

    /// Waits for a wake-up and takes it away, where the waker blocks: one system call between the wake-up and the work.
    package func waitAndAcknowledge() {
        acknowledge()
    }
}
