internal import CLinux
internal import Dispatch

/// libdispatch's descriptors, opened before others can take the last ones.
///
/// libdispatch (Swift 6.3) opens its epoll, its eventfd and a timerfd for each clock when they are first needed, and ends the process by SIGILL,
/// or never fires a timer, if that fails (src/event/event_epoll.c). Once open they stay. One more is needed for a moment once a second: it reads
/// /proc/TID/stat of each thread that serves a concurrent queue (src/event/workqueue.c). So a process must not use its last descriptors.
package enum DispatchStart {
    /// How many descriptors libdispatch takes: epoll, eventfd, three timers, and /proc/TID/stat.
    package static let descriptors = 6

    private static let started: Void = {
        let fired = DispatchSemaphore(value: 0)
        let context = UInt(bitPattern: Unmanaged.passRetained(fired).toOpaque())
        HomeThread.run {
            netwatch_start_dispatch_timers(UnsafeMutableRawPointer(bitPattern: context)) { context in
                guard let context else { return }
                Unmanaged<DispatchSemaphore>.fromOpaque(context).takeRetainedValue().signal()
            }
        }
        // The manager takes timers in their order: behind the last one the others have their descriptors. It takes about 1 ms.
        _ = fired.wait(timeout: .now() + 5)
    }()

    /// Opens them, once in a process. At least ``descriptors`` must be free.
    package static func run() { started }
}
