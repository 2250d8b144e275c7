internal import Glibc

/// The number of descriptors that this process may open (getrlimit(2), `RLIMIT_NOFILE`) and the number that it has open.
package struct DescriptorUse: Hashable, Sendable {
    /// The soft limit.
    package let limit: Int
    package let open: Int

    package init(limit: Int, open: Int) {
        self.limit = limit
        self.open = open
    }

    /// Counts the process's open descriptors. Only the 16,384 lowest numbers are counted.
    package static func now() -> DescriptorUse {
        let limit = currentLimit
        // poll(2) marks closed descriptors with POLLNVAL, in one system call and without /proc.
        var entries = (0..<Int32(min(limit, 16_384))).map { pollfd(fd: $0, events: 0, revents: 0) }
        guard poll(&entries, nfds_t(entries.count), 0) >= 0 else { return DescriptorUse(limit: limit, open: 0) }
        return DescriptorUse(limit: limit, open: entries.count { Int32($0.revents) & POLLNVAL == 0 })
    }

    /// Whether the next descriptor of the process leaves at least `count` higher ones free. `descriptor`: any open one.
    package static func leavesFree(_ count: Int, duplicating descriptor: Int32) -> Bool {
        // The lowest free number, which accept(2) would use too.
        let next = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard next >= 0 else { return false }
        close(next)
        return Int(next) < currentLimit - count
    }

    /// The current soft limit.
    package static var currentLimit: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(7), &limit) == 0 else { return 1_024 }
        return Int(clamping: limit.rlim_cur)
    }
}
