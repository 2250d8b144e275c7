/// Decides how many probes run at the same time.
///
/// A silent server keeps a probe running until the probe's deadline. A server that answers ends it after a few milliseconds. Without
/// shares, silent servers would occupy all probes of the process. Therefore the targets whose last probe received no answer, and
/// those without a result, have at most half of the probes, and each address family at most three quarters.
struct ProbeAdmission: Hashable, Sendable {
    /// A group of targets with a share of the probes.
    struct Lane: Hashable, Sendable {
        static let count = 4
        private let number: UInt8
        var index: Int { Int(number) }

        /// Creates a lane.
        ///
        /// - Parameters:
        ///   - family: the family of the address that is probed first.
        ///   - isSuspect: whether the target's last probe received no answer, or no probe has ended.
        init(_ family: IPAddress.Family, isSuspect: Bool) { number = (family == .v6 ? 1 : 0) + (isSuspect ? 2 : 0) }
    }

    /// The limit before the process's own limit is known.
    static let defaultLimit = 512
    /// The smallest limit.
    static let minimumLimit = 16

    /// The maximum number of running probes.
    private(set) var limit = defaultLimit
    /// The limit that the process's descriptors allow.
    private(set) var ceiling = defaultLimit
    private var running = [Int](repeating: 0, count: Lane.count)

    /// The number of running probes.
    var total: Int { running.reduce(0, +) }

    /// Sets the limit that the process's descriptors allow.
    mutating func setCeiling(_ ceiling: Int) {
        self.ceiling = max(ceiling, Self.minimumLimit)
        limit = self.ceiling
    }

    /// Returns whether a probe of this lane may start.
    func allows(_ lane: Lane) -> Bool {
        let total = self.total
        guard total < limit else { return false }
        let family = running[lane.index] + running[lane.index ^ 2]
        guard family < max(limit * 3 / 4, 1) else { return false }
        return lane.index < 2 || running[2] + running[3] < max(limit / 2, 1)
    }

    /// Counts a started probe, also beyond the limit.
    mutating func start(_ lane: Lane) { running[lane.index] += 1 }

    /// Counts the end of a probe, and raises a lowered limit by one.
    mutating func end(_ lane: Lane) {
        running[lane.index] -= 1
        // The limit returns slowly after a refusal: other parts of the process may still use the descriptors.
        if limit < ceiling { limit += 1 }
    }

    /// Lowers the limit after the system refused a socket (EMFILE, ENFILE, ENOBUFS): one probe less than those that run fits.
    mutating func refused() { limit = max(Self.minimumLimit, min(limit, total - 1)) }
}
