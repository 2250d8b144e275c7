/// The settings of a server's probes and of its status changes.
public struct ProbeSettings: Hashable, Sendable {
    /// The time between probes of a server that answers; at least 10 ms, default 10 s.
    public var interval: Duration
    /// The deadline of one probe, including name resolution; at least 1 ms, default 3 s. The monitor does not wait for the
    /// kernel's own timeouts.
    public var timeout: Duration
    /// The number of consecutive probes that must fail before the server counts as not reachable; at least 1, default 2.
    public var failAfter: Int
    /// The number of consecutive probes that must succeed before the server counts as reachable; at least 1, default 1.
    public var recoverAfter: Int
    /// The address families that probes use; default both. An empty set means both.
    public var families: Set<IPAddress.Family>
    /// The interface to which probes are bound (`SO_BINDTODEVICE`), by its name or an alternative name. `nil`, the default,
    /// leaves the choice to the kernel.
    public var interface: String?
    /// The limits of loss, round trip and jitter beyond which a server that answers is degraded; by default 20 % of loss alone.
    public var quality: QualityLimits
    /// Whether probes start only at the times of the schedule, the first at once, as in `netwatch probe`; false by default. No probe
    /// then confirms a result or follows a change of routes, and every scheduled probe has a report, even if no packet can be sent.
    package var isScheduledOnly = false

    /// Creates settings. Omitted values have their defaults; values below their minimum are raised to it.
    public init(
        interval: Duration = .seconds(10), timeout: Duration = .seconds(3), failAfter: Int = 2, recoverAfter: Int = 1,
        families: Set<IPAddress.Family> = [.v4, .v6], interface: String? = nil, quality: QualityLimits = QualityLimits()
    ) {
        self.interval = max(interval, .milliseconds(10))
        self.timeout = max(timeout, .milliseconds(1))
        self.failAfter = max(failAfter, 1)
        self.recoverAfter = max(recoverAfter, 1)
        self.families = families.isEmpty ? [.v4, .v6] : families
        self.interface = interface
        self.quality = quality
    }
}
