/// How a server is probed and when its state changes.
public struct ProbeSettings: Hashable, Sendable {
    /// The time between probes of a server that answers; default 10 s.
    public var interval: Duration
    /// One probe's deadline, name resolution included; default 3 s. The kernel's own time-outs are never waited for.
    public var timeout: Duration
    /// How many probes in a row must fail before the server counts as unreachable; at least 1, default 2.
    public var failAfter: Int
    /// How many must succeed before it counts as reachable; at least 1, default 1.
    public var recoverAfter: Int
    /// The families that are tried.
    public var families: Set<IPAddress.Family>
    /// The interface that probes are bound to, by its name or an alternative name; `nil` leaves the choice to the kernel.
    public var interface: String?

    /// Settings; what is not given is the default. Values out of range are brought into it.
    public init(
        interval: Duration = .seconds(10), timeout: Duration = .seconds(3), failAfter: Int = 2, recoverAfter: Int = 1,
        families: Set<IPAddress.Family> = [.v4, .v6], interface: String? = nil
    ) {
        self.interval = max(interval, .milliseconds(10))
        self.timeout = max(timeout, .milliseconds(1))
        self.failAfter = max(failAfter, 1)
        self.recoverAfter = max(recoverAfter, 1)
        self.families = families.isEmpty ? [.v4, .v6] : families
        self.interface = interface
    }
}
