internal import CLinux
internal import Dispatch

/// The early start of libdispatch, so that it has its descriptors before other code takes the last ones.
///
/// libdispatch (Swift 6.3) opens its epoll, its eventfd and a timerfd for each clock at their first use. If that fails, it ends
/// the process by SIGILL or never fires a timer (src/event/event_epoll.c). Open descriptors stay open. Once a second it briefly
/// needs one more: it reads /proc/TID/stat of each thread that serves a concurrent queue (src/event/workqueue.c). So a process
/// must not use its last descriptors.
package enum DispatchStart {
    /// The number of descriptors that libdispatch needs: epoll, eventfd, three timers, and /proc/TID/stat.
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
        // The manager thread handles timers in order: when the last one has fired, the others have their descriptors. That takes
        // about 1 ms.
        _ = fired.wait(timeout: .now() + 5)
    }()

    /// Opens libdispatch's descriptors, once in a process. At least ``descriptors`` must be free.
    package static func run() { started }
}
