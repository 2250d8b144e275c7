internal import CLinux
internal import Glibc

/// An object that wakes an ``EventLoop`` from any thread (eventfd(2)). Several wake-ups before the loop handles them count as
/// one.
public final class Waker: Sendable {
    /// The eventfd, for loops other than ``EventLoop``.
    package let descriptor: Int32

    /// - Parameter blocks: Whether reading blocks, for threads that wait for nothing else, with ``waitAndAcknowledge()``.
    /// - Throws: `LoopError` if the system has no descriptor left.
    package init(blocks: Bool = false) throws(LoopError) {
        descriptor = eventfd(0, netwatch_EFD_FLAGS & (blocks ? ~netwatch_EFD_NONBLOCK : ~0))
        guard descriptor >= 0 else { throw LoopError(call: "eventfd", errno: errno) }
    }

    deinit { close(descriptor) }

    /// Makes the loop's wait return. Never blocks: the counter cannot overflow in the life of a machine.
    public func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Clears the wake-up, so that the next wait blocks.
    package func acknowledge() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }

    /// Waits for a wake-up and clears it, in one system call. The waker must have been created with `blocks`.
    package func waitAndAcknowledge() {
        acknowledge()
    }
}
