internal import CLinux
internal import Glibc

/// An epoll loop for one thread, with descriptors, one deadline, and a wake-up from other threads (epoll(7)).
///
/// The loop has no policy: its owner waits, reads the clock once, and handles the ready descriptors. Only the thread that
/// created a loop may use it; only its ``waker`` may be shared.
package struct EventLoop: ~Copyable {
    /// The events for which a descriptor is watched. Errors and hang-ups are always reported.
    package struct Interest: OptionSet, Hashable, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        package static let read = Interest(rawValue: netwatch_EPOLLIN)
        package static let write = Interest(rawValue: netwatch_EPOLLOUT)
        /// As ``write``, but the descriptor is reported once only, until ``EventLoop/change(_:interest:token:)`` (EPOLLONESHOT).
        package static let writeOnce = Interest(rawValue: netwatch_EPOLLOUT | netwatch_EPOLLONESHOT)
    }

    /// A descriptor that is ready.
    package struct Ready: Hashable, Sendable {
        /// The number that was passed to ``add(_:interest:token:)``.
        package let token: UInt64
        private let events: UInt32

        init(token: UInt64, events: UInt32) {
            self.token = token
            self.events = events
        }

        package var isReadable: Bool { events & netwatch_EPOLLIN != 0 }
        package var isWritable: Bool { events & netwatch_EPOLLOUT != 0 }
        /// Whether the descriptor has an error or a hang-up.
        package var isBroken: Bool { events & (netwatch_EPOLLERR | netwatch_EPOLLHUP) != 0 }
    }

    /// The maximum number of descriptors that one wait reports; the next wait reports the others.
    package static let batch = Int(netwatch_epoll_batch)

    package let waker: Waker
    private let epoll: Int32
    private var events = [UInt32](repeating: 0, count: EventLoop.batch)
    private var tokens = [UInt64](repeating: 0, count: EventLoop.batch)
    private static let wakeToken = UInt64.max

    /// Creates a loop and opens its two descriptors.
    package init() throws(LoopError) {
        let waker = try Waker()
        let epoll = epoll_create1(netwatch_EPOLL_CLOEXEC)
        guard epoll >= 0 else { throw LoopError(call: "epoll_create1", errno: errno) }
        guard netwatch_epoll_ctl(epoll, EPOLL_CTL_ADD, waker.descriptor, netwatch_EPOLLIN, Self.wakeToken) == 0 else {
            let number = errno
            close(epoll)
            throw LoopError(call: "epoll_ctl", errno: number)
        }
        self.waker = waker
        self.epoll = epoll
    }

    deinit { close(epoll) }

    /// Watches a descriptor. Its events carry `token`, any number but `UInt64.max`.
    package func add(_ descriptor: Int32, interest: Interest, token: UInt64) throws(LoopError) {
        guard netwatch_epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, interest.rawValue, token) == 0 else {
            throw LoopError(call: "epoll_ctl", errno: errno)
        }
    }

    /// Changes the events for which a descriptor is watched.
    package func change(_ descriptor: Int32, interest: Interest, token: UInt64) throws(LoopError) {
        guard netwatch_epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, interest.rawValue, token) == 0 else {
            throw LoopError(call: "epoll_ctl", errno: errno)
        }
    }

    /// Stops watching a descriptor. Closing its last copy has the same effect.
    package func remove(_ descriptor: Int32) {
        _ = netwatch_epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, 0, 0)
    }

    /// Waits until a descriptor is ready, the waker is woken, or `CLOCK_MONOTONIC` reaches `deadline` (`nil` for no deadline).
    /// The deadline is rounded up to whole milliseconds, so that the wait never ends too early.
    ///
    /// - Returns: The ready descriptors; empty after a wake-up, a deadline or a signal.
    package mutating func wait(until deadline: Int64?) -> [Ready] {
        var milliseconds: Int32 = -1
        if let deadline {
            let (left, isLongPast) = deadline.subtractingReportingOverflow(MonotonicClock.now())
            milliseconds = left <= 0 || isLongPast ? 0 : Int32(clamping: (left - 1) / 1_000_000 + 1)
        }
        let count = netwatch_epoll_wait(epoll, &events, &tokens, milliseconds)
        guard count > 0 else { return [] }
        var ready: [Ready] = []
        ready.reserveCapacity(Int(count))
        for index in 0..<Int(count) {
            if tokens[index] == Self.wakeToken {
                waker.acknowledge()
            } else {
                ready.append(Ready(token: tokens[index], events: events[index]))
            }
        }
        return ready
    }
}

/// The failure of a system call.
package struct LoopError: Error, Hashable, Sendable, CustomStringConvertible {
    package let call: String
    package let errno: Int32

    package init(call: String, errno: Int32) {
        self.call = call
        self.errno = errno
    }

    package var description: String { "\(call): \(String(cString: strerror(errno)))" }
}

/// Readings of the clocks of processor time in nanoseconds.
package enum ProcessorClock {
    /// The time for which the calling thread has run (`CLOCK_THREAD_CPUTIME_ID`).
    package static func ofThread() -> Int64 { netwatch_clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID) }
}

/// Readings of `CLOCK_MONOTONIC` and related clocks in nanoseconds.
package enum MonotonicClock {
    package static func now() -> Int64 { netwatch_clock_nanoseconds(netwatch_CLOCK_MONOTONIC) }
    /// Reads `CLOCK_REALTIME`: nanoseconds since 1970.
    package static func wallClock() -> Int64 { netwatch_clock_nanoseconds(netwatch_CLOCK_REALTIME) }
    /// Returns how long the machine has been suspended since boot: `CLOCK_BOOTTIME` − `CLOCK_MONOTONIC`.
    package static func timeSuspended() -> Int64 {
        // In this order of readings, the difference may be too large by the time between them, but never too small.
        let monotonic = netwatch_clock_nanoseconds(netwatch_CLOCK_MONOTONIC)
        return netwatch_clock_nanoseconds(netwatch_CLOCK_BOOTTIME) - monotonic
    }
}
