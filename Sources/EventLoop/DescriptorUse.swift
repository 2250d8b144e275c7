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

    /// The current soft limit.
    package static var currentLimit: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(7), &limit) == 0 else { return 1_024 }
        return Int(clamping: limit.rlim_cur)
    }
}
