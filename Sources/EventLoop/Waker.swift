internal import CLinux
internal import Glibc

/// Wakes an ``EventLoop`` from any thread (eventfd(2)). Wake-ups before the loop looks count as one.
package final class Waker: Sendable {
    /// The eventfd, for loops that are not an ``EventLoop``.
    package let descriptor: Int32

    package init() throws(LoopError) {
        descriptor = eventfd(0, netwatch_EFD_FLAGS)
        guard descriptor >= 0 else { throw LoopError(call: "eventfd", errno: errno) }
    }

    deinit { close(descriptor) }

    /// Makes the loop's wait return. Never blocks; the counter cannot overflow in the life of a machine.
    package func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Takes the wake-up away, so that the next wait waits.
    package func acknowledge() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }

    /// Waits for a wake-up and takes it away, for threads that wait for nothing else.
    package func waitAndAcknowledge() {
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&poller, 1, -1)
        acknowledge()
    }
}
