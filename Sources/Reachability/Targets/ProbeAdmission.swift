/// Decides how many probes run at the same time. The unit is a socket: a probe counts once, and each further attempt of it again.
///
/// A silent server keeps a probe running until the probe's deadline. A server that answers ends it after a few milliseconds. Without
/// shares, silent servers would occupy all sockets of the process:
///
/// | share of the sockets, at most | for |
/// |---|---|
/// | three quarters | each address family |
/// | five eighths | targets without a result, and those whose last probe received no answer |
/// | three eighths | the latter alone; one eighth while targets without a result wait |
/// | one half | repeated attempts of a probe begin only below it |
///
/// A TLS handshake takes more memory than a socket, so that probes with one need one of ``handshakeLimit`` places too:
///
/// | share of the places, at most | for |
/// |---|---|
/// | three quarters | targets without a result, and those whose last probe received no answer |
/// | five eighths | the latter alone; one eighth while targets without a result wait |
///
/// A target that did not even accept the last connection needs no place. If it accepts the next one, the prober lets the handshake
/// wait (``TCPProber/unplacedHandshakeLimit``).
struct ProbeAdmission: Hashable, Sendable {
    /// The last result of a target, as far as it predicts the duration of the next probe.
    enum Experience: UInt8, Hashable, Sendable {
        /// The last probe received an answer of any kind.
        case answered
        /// No probe has ended yet.
        case untried
        /// The last probe received no answer.
        case silent
    }

    /// A group of targets with a share of the sockets.
    struct Lane: Hashable, Sendable {
        static let count = 12
        /// The lanes of targets without a result.
        static let untried = [false, true].flatMap {
            [Lane(.v4, .untried, hasHandshake: $0), Lane(.v6, .untried, hasHandshake: $0)]
        }

        let family: IPAddress.Family
        let experience: Experience
        /// Whether the probes need a place for a TLS handshake.
        let hasHandshake: Bool
        /// The place of the lane in the order in which waiting targets are served.
        var index: Int { (family == .v6 ? 1 : 0) + (hasHandshake ? 2 : 0) + 4 * Int(experience.rawValue) }

        /// Creates the lane of targets with an experience and the family of the address that is probed first.
        init(_ family: IPAddress.Family, _ experience: Experience, hasHandshake: Bool = false) {
            (self.family, self.experience, self.hasHandshake) = (family, experience, hasHandshake)
        }
    }

    /// The maximum number of probes with a TLS handshake at the same time. It takes about 39 kB (OpenSSL 3.0).
    static let handshakeLimit = 256

    /// The limit before the process's own limit is known.
    static let defaultLimit = 512
    /// The maximum limit, whatever the process's limits are: a socket has 4 kB in the kernel.
    static let maximum = 16_384

    /// The maximum number of sockets.
    private(set) var limit = defaultLimit
    /// Whether targets without a result wait for a socket.
    var hasUntriedWaiting = false
    private var used = [Int](repeating: 0, count: Lane.count)

    /// The number of sockets in use, or reserved for a probe that resolves a name or asks for routes.
    var total: Int { used.reduce(0, +) }

    /// Whether the limit follows from the process's descriptors.
    var isLimitedByFiles: Bool { limit < Self.maximum }

    /// Sets the number of sockets that the process's descriptors allow.
    mutating func setLimit(_ limit: Int) { self.limit = min(max(limit, 1), Self.maximum) }

    /// Returns whether a probe of this lane may start.
    func allows(_ lane: Lane) -> Bool { allowsSocket(lane) && (!lane.hasHandshake || allowsHandshake(lane.experience)) }

    /// Returns whether the sockets suffice for a probe of this lane.
    func allowsSocket(_ lane: Lane) -> Bool {
        guard total < limit, used({ $0.family == lane.family }) < max(limit * 3 / 4, 1) else { return false }
        if lane.experience == .answered { return true }
        let silent = used { $0.experience == .silent }
        guard silent + used({ $0.experience == .untried }) < max(limit * 5 / 8, 1) else { return false }
        return lane.experience == .untried || silent < max(limit * (hasUntriedWaiting ? 1 : 3) / 8, 1)
    }

    private func allowsHandshake(_ experience: Experience) -> Bool {
        let limit = Self.handshakeLimit
        guard used({ $0.hasHandshake }) < limit else { return false }
        if experience == .answered { return true }
        let silent = used { $0.hasHandshake && $0.experience == .silent }
        guard silent + used({ $0.hasHandshake && $0.experience == .untried }) < limit * 3 / 4 else { return false }
        return experience == .untried || silent < limit * (hasUntriedWaiting ? 1 : 5) / 8
    }

    private static let lanes: [Lane] = {
        let lanes = [IPAddress.Family.v4, .v6].flatMap { family in
            [Experience.answered, .untried, .silent].flatMap { experience in
                [false, true].map { Lane(family, experience, hasHandshake: $0) }
            }
        }
        return lanes.sorted { $0.index < $1.index }
    }()

    private func used(_ isCounted: (Lane) -> Bool) -> Int {
        var sum = 0
        for index in used.indices where used[index] > 0 && isCounted(Self.lanes[index]) { sum += used[index] }
        return sum
    }

    /// Whether a running probe may repeat an attempt. If sockets are scarce, the first attempts of other probes come before.
    var allowsRepetition: Bool { total < max(limit / 2, 1) }

    /// Counts sockets of a lane, also beyond the limit.
    mutating func add(_ count: Int, to lane: Lane) { used[lane.index] += count }
}
