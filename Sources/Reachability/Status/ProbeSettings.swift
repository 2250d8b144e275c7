internal import ByteComparison

/// The settings of a server's probes and of its status changes.
public struct ProbeSettings: Hashable, Sendable {
    /// The time between probes of a server that answers; at least 10 ms, default 10 s.
    public var interval: Duration {
        get { values.value.interval }
        set { values.update { $0.interval = newValue } }
    }
    /// The deadline of one probe, including name resolution; at least 1 ms, default 3 s. The monitor does not wait for the
    /// kernel's own timeouts.
    public var timeout: Duration {
        get { values.value.timeout }
        set { values.update { $0.timeout = newValue } }
    }
    /// The number of consecutive probes that must fail before the server counts as not reachable; at least 1, default 2. Probes that begin less
    /// than ``interval`` after one that counted find the cause, and do not count (``ServerUpdate/pending``). What this machine alone determines,
    /// such as a missing route, needs no count.
    public var failAfter: Int {
        get { values.value.failAfter }
        set { values.update { $0.failAfter = newValue } }
    }
    /// The number of consecutive probes that must succeed before the server counts as reachable; at least 1, default 1. After a change of the
    /// path one suffices.
    public var recoverAfter: Int {
        get { values.value.recoverAfter }
        set { values.update { $0.recoverAfter = newValue } }
    }
    /// The time that a failure lasts before an incident opens (``Incident``), from its first counted probe; default 20 s. Failures that
    /// this machine alone determines, such as a lost carrier, open an incident at once.
    public var openAfter: Duration {
        get { values.value.openAfter }
        set { values.update { $0.openAfter = max(newValue, .zero) } }
    }
    /// The time after the end of an incident within which a further failure continues it; default 0. The end is published when this time
    /// has passed.
    public var closeAfter: Duration {
        get { values.value.closeAfter }
        set { values.update { $0.closeAfter = max(newValue, .zero) } }
    }
    /// The address families that probes use; default both. An empty set means both.
    public var families: Set<IPAddress.Family> {
        get { values.value.families }
        set { values.update { $0.families = newValue } }
    }
    /// The interface to which probes are bound (`SO_BINDTODEVICE`), by its name or an alternative name. `nil`, the default,
    /// leaves the choice to the kernel.
    public var interface: String? {
        get { values.value.interface?.wrappedValue }
        set { values.update { $0.interface = newValue.map { ExactString($0) } } }
    }

    /// The limits of loss, round trip, response time and jitter beyond which a server that answers is degraded; by default 20 % of loss alone.
    public var quality: QualityLimits {
        get { values.value.quality }
        set { values.update { $0.quality = newValue } }
    }
    /// The limits of probes over metered interfaces; by default a sixth of the probes, and 5 MB a day.
    public var metered: MeteredLimits {
        get { values.value.metered }
        set { values.update { $0.metered = newValue } }
    }
    /// The trust of TLS probes, and the certificate that they expect.
    public var tls: TLSProbeSettings {
        get { values.value.tls }
        set { values.update { $0.tls = newValue } }
    }
    /// The request of HTTP probes, and the response that they expect.
    public var http: HTTPProbeSettings {
        get { values.value.http }
        set { values.update { $0.http = newValue } }
    }
    /// Whether probes start only at the times of the schedule, the first at once, as in `netwatch probe`; false by default. No probe
    /// then confirms a result or follows a change of routes, and every scheduled probe has a report, even if no packet can be sent.
    package var isScheduledOnly: Bool {
        get { values.value.isScheduledOnly }
        set { values.update { $0.isScheduledOnly = newValue } }
    }

    /// Whether probes that examine a failure count like others, so that a verdict needs no interval, as in `netwatch why`; false by default.
    package var countsConfirmations: Bool {
        get { values.value.countsConfirmations }
        set { values.update { $0.countsConfirmations = newValue } }
    }

    /// The interval of the first probes, which then grows to ``interval`` with the time since the target was added or its route changed;
    /// `nil`, the default, for a constant interval. Such a target is also probed at once if the path or a neighbor changes.
    package var initialInterval: Duration? {
        get { values.value.initialInterval }
        set { values.update { $0.initialInterval = newValue.map { max($0, .milliseconds(10)) } } }
    }

    private struct Values: Hashable, Sendable {
        var interval: Duration
        var timeout: Duration
        var failAfter: Int
        var recoverAfter: Int
        var openAfter: Duration
        var closeAfter: Duration
        var families: Set<IPAddress.Family>
        var interface: ExactString?
        var quality: QualityLimits
        var metered: MeteredLimits
        var tls = TLSProbeSettings()
        var http = HTTPProbeSettings()
        var isScheduledOnly = false
        var countsConfirmations = false
        var initialInterval: Duration?
    }

    // All targets with the same settings share one box.
    private var values: Boxed<Values>

    /// Creates settings. Omitted values have their defaults; values below their minimum are raised to it.
    public init(
        interval: Duration = .seconds(10), timeout: Duration = .seconds(3), failAfter: Int = 2, recoverAfter: Int = 1,
        families: Set<IPAddress.Family> = [.v4, .v6], interface: String? = nil, quality: QualityLimits = QualityLimits(),
        metered: MeteredLimits = MeteredLimits(), openAfter: Duration = .seconds(20), closeAfter: Duration = .zero
    ) {
        values = Boxed(
            Values(
                interval: max(interval, .milliseconds(10)), timeout: max(timeout, .milliseconds(1)),
                failAfter: max(failAfter, 1), recoverAfter: max(recoverAfter, 1), openAfter: max(openAfter, .zero),
                closeAfter: max(closeAfter, .zero),
                families: families.isEmpty ? [.v4, .v6] : families, interface: interface.map { ExactString($0) },
                quality: quality,
                metered: metered))
    }
}
