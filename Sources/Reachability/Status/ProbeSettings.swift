internal import ByteComparison

/// The settings of a server's probes and of its status changes. Values below their minimum are raised to it.
public struct ProbeSettings: Hashable, Sendable {
    /// The time between probes of a server that answers; at least 10 ms, default 10 s.
    public var interval: Duration {
        get { values.value.interval }
        set { values.update { $0.interval = max(newValue, Self.shortestInterval) } }
    }
    /// The deadline of one probe, including name resolution; at least 1 ms, default 3 s. The monitor does not wait for the
    /// kernel's own timeouts.
    public var timeout: Duration {
        get { values.value.timeout }
        set { values.update { $0.timeout = max(newValue, Self.shortestTimeout) } }
    }
    /// The number of consecutive probes that must fail before the server counts as not reachable; at least 1, default 2. Probes that begin less
    /// than ``interval`` after one that counted find the cause, and do not count (``ServerUpdate/pending``). What this machine alone determines,
    /// such as a missing route, needs no count.
    public var failAfter: Int {
        get { values.value.failAfter }
        set { values.update { $0.failAfter = max(newValue, 1) } }
    }
    /// The number of consecutive probes that must succeed before the server counts as reachable; at least 1, default 1. After a change of the
    /// path one suffices.
    public var recoverAfter: Int {
        get { values.value.recoverAfter }
        set { values.update { $0.recoverAfter = max(newValue, 1) } }
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
        set { values.update { $0.families = newValue.isEmpty ? [.v4, .v6] : newValue } }
    }
    /// The interface to which probes are bound (`SO_BINDTODEVICE`), by its name or an alternative name. `nil`, the default,
    /// leaves the choice to the kernel.
    public var interface: String? {
        get { values.value.interface?.wrappedValue }
        set { values.update { $0.interface = newValue.map { ExactString($0) } } }
    }
    /// The source address of the packets of probes (bind(2)), which policy rules may choose a route by. Only addresses of a server of the same
    /// family are probed. While this machine does not have the address, the server is unreachable: ``Cause/Layer/address``; an IPv6 address has to be
    /// one of an interface. Names are resolved without it. `nil`, the default, leaves the choice to the kernel, as the unspecified address does.
    public var sourceAddress: IPAddress? {
        get { values.value.selector?.source }
        set {
            let source = newValue.flatMap { $0.unmapped.isUnspecified ? nil : $0.unmapped }
            values.update { $0.selector = RouteSelector(source: source, mark: $0.selector?.mark ?? 0) }
        }
    }
    /// The mark of the packets of probes (`SO_MARK`, socket(7)), which policy rules and packet filters may compare; 0, the default, for none. It
    /// needs CAP_NET_ADMIN, or CAP_NET_RAW since Linux 5.17; without them the server is unreachable: ``Cause/Code/notPermitted``. Names are
    /// resolved without it.
    public var mark: UInt32 {
        get { values.value.selector?.mark ?? 0 }
        set { values.update { $0.selector = RouteSelector(source: $0.selector?.source, mark: newValue) } }
    }
    /// The name server that alone resolves the names of the server, of its proxy and of its redirects: neither hosts(5) nor the search list of
    /// resolv.conf(5) has a part in it. `nil`, the default, resolves names as this machine does.
    public var resolver: NameServerAddress? {
        get { values.value.resolver?.value }
        set { values.update { $0.resolver = newValue.map { Boxed($0) } } }
    }

    /// Which addresses of a name are probed; by default ``ProbedAddresses/any``.
    public var addresses: ProbedAddresses {
        get { values.value.addresses }
        set { values.update { $0.addresses = newValue } }
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
    /// ``sourceAddress`` and ``mark``; `nil` without both.
    package var selector: RouteSelector? { values.value.selector }
    /// ``resolver``, in the box that requests share.
    var sharedResolver: Boxed<NameServerAddress>? { values.value.resolver }
    /// The families of the addresses that are probed: ``families``, but only that of the source address if there is one.
    package var probedFamilies: Set<IPAddress.Family> {
        guard let source = values.value.selector?.source else { return values.value.families }
        return values.value.families.intersection([source.family])
    }
    /// The settings of one kind of probe. Those of the other kinds have no effect.
    package subscript<Settings: KindSettings>(kind kind: Settings.Type) -> Settings {
        get { values.value.kinds[kind] }
        set { values.update { $0.kinds[kind] = newValue } }
    }
    /// The settings of the kinds of probes that differ from their defaults.
    package var ofKinds: [any KindSettings] { values.value.kinds.values }

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
        set { values.update { $0.initialInterval = newValue.map { max($0, Self.shortestInterval) } } }
    }

    private static let shortestInterval = Duration.milliseconds(10)
    private static let shortestTimeout = Duration.milliseconds(1)

    private struct Values: Hashable, Sendable {
        var interval: Duration
        var timeout: Duration
        var failAfter: Int
        var recoverAfter: Int
        var openAfter: Duration
        var closeAfter: Duration
        var families: Set<IPAddress.Family>
        var interface: ExactString?
        // By reference: few targets have them.
        var selector: RouteSelector?
        var resolver: Boxed<NameServerAddress>?
        var quality: QualityLimits
        var metered: MeteredLimits
        var kinds = SettingsOfKinds()
        var addresses = ProbedAddresses.any
        var isScheduledOnly = false
        var countsConfirmations = false
        var initialInterval: Duration?
    }

    // All targets with the same settings share one box.
    private var values: Boxed<Values>

    /// The limits of ``failAfter`` and ``recoverAfter`` for users of the programs.
    package static let resultCounts = 1...1_000_000

    /// Creates settings. Omitted values have their defaults; values below their minimum are raised to it.
    public init(
        interval: Duration = .seconds(10), timeout: Duration = .seconds(3), failAfter: Int = 2, recoverAfter: Int = 1,
        families: Set<IPAddress.Family> = [.v4, .v6], interface: String? = nil, quality: QualityLimits = QualityLimits(),
        metered: MeteredLimits = MeteredLimits(), openAfter: Duration = .seconds(20), closeAfter: Duration = .zero
    ) {
        values = Boxed(
            Values(
                interval: max(interval, Self.shortestInterval), timeout: max(timeout, Self.shortestTimeout),
                failAfter: max(failAfter, 1), recoverAfter: max(recoverAfter, 1), openAfter: max(openAfter, .zero),
                closeAfter: max(closeAfter, .zero),
                families: families.isEmpty ? [.v4, .v6] : families, interface: interface.map { ExactString($0) },
                quality: quality,
                metered: metered))
    }
}
