@testable import Reachability

/// Plays events to a target's machine and lists its effects, one short line for each. Times are milliseconds.
struct Transcript {
    typealias Event = TargetMachine.Event

    var machine: TargetMachine
    var host = Host()
    /// The next hops of the route to the target, if it has several.
    var nextHops: [Route.NextHop] = []
    /// The reply of first hops and of the target's host; by default they are alive.
    var hostState = HopBook.State(isAlive: true, reply: HostReply(.answered), hasAnswered: true)
    /// The reply of the target's host, if it differs from that of the first hops.
    var targetState: HopBook.State?
    /// What is known about the way behind the first hop. By default a router there has answered if the first hop is alive.
    var beyond: WitnessBook.State?
    /// Whether further addresses are tried beside those that serve the probes.
    var allowsSurvey = false
    /// Whether updates are listed that report only a failure that does not change the status yet, or its end.
    var showsPending = false
    private var allowances: TargetMachine.Allowances { TargetMachine.Allowances(survey: allowsSurvey) }
    /// The complete effects of the last event.
    private(set) var effects: [TargetMachine.Effect] = []

    /// Without settings, each failed probe counts, so that two in a row give a verdict whenever they are: tests of causes need no schedule.
    init(_ endpoint: String, _ settings: ProbeSettings? = nil) throws {
        let settings = settings ?? Self.unscheduled()
        machine = TargetMachine(id: TargetID(0), endpoint: try Endpoint(endpoint), settings: settings, firstNumber: 1)
    }

    /// The default settings, with which each failed probe counts.
    static func unscheduled(interval: Duration = .seconds(10)) -> ProbeSettings {
        var settings = ProbeSettings(interval: interval)
        settings.countsConfirmations = true
        return settings
    }

    /// The state of this machine: lo (1), eth0 (2), wlan0 (3), tun0 (4), and its own address 10.0.0.2.
    struct Host {
        var levels: [UInt32: LinkLevel] = [1: .carrier, 2: .routable, 3: .routable, 4: .routable]
        var names: [UInt32: String] = [1: "lo", 2: "eth0", 3: "wlan0", 4: "tun0"]
        var pathCause: Cause?
        var hasResolver = true
        /// The addresses that cannot be the source of packets.
        var sourceFaults: [IPAddress: AddressFault] = [:]
        /// The metered interfaces.
        var metered: Set<UInt32> = []

        var localState: LocalState {
            let types: [UInt32: InterfaceType] = [1: .loopback, 2: .wired, 3: .wifi, 4: .tunnel]
            var interfaces: [UInt32: NetworkInterface] = [:]
            for (index, name) in names {
                interfaces[index] = NetworkInterface(
                    name: name, index: index, type: types[index] ?? .other, isVirtual: false,
                    isExpensive: metered.contains(index),
                    level: levels[index] ?? .off, addresses: [])
            }
            let sourceFaults = sourceFaults
            return LocalState(
                interfaces: interfaces, path: NetworkPath(status: pathCause == nil ? .satisfied : .unsatisfied, cause: pathCause),
                isOwn: { $0 == IPAddress(v4: 0x0a00_0002) }, hasResolver: hasResolver, sourceFault: { sourceFaults[$0] })
        }
    }

    /// Plays one event. - Returns: the lines of its effects.
    mutating func at(_ milliseconds: Int64, _ event: Event) -> [String] {
        var event = event
        if case .route(var query, let answer) = event, query.port == 0 {
            query.port = machine.endpoint.port
            query.selector = machine.settings.selector
            event = .route(query, answer)
        }
        let wasDue = machine.deadline ?? .max <= milliseconds * 1_000_000
        effects = machine.handle(
            event, in: host.localState, at: Self.moment(milliseconds), allowing: allowances)
        // A failed probe may query the route with all its next hops. That query is answered at once and has no line.
        while let place = effects.firstIndex(where: Self.asksForAll), case .askRoute(let query) = effects[place] {
            var route = ChosenRoute(interface: 2)
            route.nextHops = nextHops
            effects.remove(at: place)
            effects += machine.handle(
                .route(query, .route(route)), in: host.localState, at: Self.moment(milliseconds), allowing: allowances)
        }
        // A silent probe may be extended by a moment, in which nothing arrives.
        if event == .tick, wasDue, machine.runningAttempts.count > machine.surveyAttempts.count, let due = machine.deadline,
            due > milliseconds * 1_000_000, due - milliseconds * 1_000_000 < TargetMachine.extensionLimit
        {
            let end = Moment(monotonicNanoseconds: due, wallClockNanoseconds: due)
            effects += machine.handle(.tick, in: host.localState, at: end)
        }
        // Hosts are asked before the deadline. Their replies have no line.
        while let place = effects.firstIndex(where: Self.asksHost), case .askHost(let request) = effects[place] {
            effects.remove(at: place)
            let isTarget = request.query.host.address == request.address
            let event = Event.host(request.query.host, isTarget ? targetState ?? hostState : hostState)
            effects += machine.handle(
                event, in: host.localState, at: Self.moment(milliseconds), allowing: allowances)
        }
        // The same for searches behind the first hop.
        while let place = effects.firstIndex(where: Self.isSearch), case .search(let request) = effects[place] {
            effects.remove(at: place)
            let router = WitnessBook.Witness(
                kind: .router, address: IPAddress(v4: 0xcb00_7109), distance: 2, time: milliseconds * 1_000_000)
            let state = beyond ?? WitnessBook.State(witness: hostState.isAlive ? router : nil)
            effects += machine.handle(
                .searched(request.hop, state), in: host.localState, at: Self.moment(milliseconds), allowing: allowances)
        }
        return effects.compactMap { effect in
            guard case .publish(let update) = effect else { return Self.line(effect) }
            defer { published = update }
            let isOfPending = update.pending != nil || published?.pending != nil && Self.line(effect) == lastLine
            if update.pending == nil { lastLine = Self.line(effect) }
            return isOfPending && !update.isInitial && !showsPending ? nil : Self.line(effect)
        }
    }

    /// The last update.
    private(set) var published: ServerUpdate?
    /// The line of the last update without a pending failure.
    private var lastLine: String?

    /// The status that was published last.
    var state: StatusName? { published?.statusName }

    private static func isSearch(_ effect: TargetMachine.Effect) -> Bool {
        if case .search = effect { true } else { false }
    }

    private static func asksHost(_ effect: TargetMachine.Effect) -> Bool {
        if case .askHost = effect { true } else { false }
    }

    private static func asksForAll(_ effect: TargetMachine.Effect) -> Bool {
        if case .askRoute(let query) = effect { query.showsAll } else { false }
    }

    /// The attempts that the last event has begun.
    var attempts: [ProbeAttempt] {
        effects.compactMap { if case .connect(let attempt) = $0 { attempt } else { nil } }
    }

    /// The time in milliseconds at which the machine wants its next tick.
    var tickDue: Int64? { machine.deadline.map { $0 / 1_000_000 } }

    /// The cause of the last event's update or report.
    var cause: Cause? {
        for effect in effects.reversed() {
            switch effect {
            case .publish(let update): return update.pending ?? update.cause
            case .report(let report): return report.cause
            default: continue
            }
        }
        return nil
    }

    static func moment(_ milliseconds: Int64) -> Moment {
        Moment(monotonicNanoseconds: milliseconds * 1_000_000, wallClockNanoseconds: milliseconds * 1_000_000)
    }

    private static func line(_ effect: TargetMachine.Effect) -> String? {
        switch effect {
        case .resolve(let request):
            "resolve \(request.id) \(request.name)" + (request.resolver.map { " by \($0.value)" } ?? "")
        case .askRoute(let query):
            "route? \(query.destination)" + (query.interface == 0 ? "" : " over \(query.interface)")
                + (query.selector?.phrase ?? "")
        case .connect(let attempt):
            "connect \(attempt.id) \(attempt.address)" + (attempt.zone == 0 ? "" : "%\(attempt.zone)")
                + (attempt.interface.map { " by \($0)" } ?? "") + (attempt.selector?.phrase ?? "")
        case .cancel(let attempt): "cancel \(attempt)"
        case .askNeighbor(let key): "neighbor? \(key.address) on \(key.interface)"
        case .askHost, .search, .noteAlive, .note: nil
        case .readCounters(let interface): "counters? \(interface)"
        case .publish(let update):
            "\(update.isInitial ? "initial " : "")\(update.statusName.rawValue)" + word(update.cause)
                + (update.pending.map { " pending" + word($0) } ?? "")
                + (update.address.map { " \($0)" } ?? "") + (update.interface.map { " \($0.name)" } ?? "")
        case .report(let report): "report" + (report.cause == nil ? " ok" : word(report.cause))
        }
    }

    private static func word(_ cause: Cause?) -> String {
        cause.map { " \($0.layer.rawValue)/\($0.code.rawValue)" } ?? ""
    }
}

extension TargetMachine.Event {
    /// The kernel's answer for an address: by default over eth0 through the gateway 10.0.0.1.
    static func route(
        to address: String, over interface: UInt32 = 2, gateway: String? = "10.0.0.1", kind: Route.Kind = .unicast,
        source: String? = "10.0.0.2", bound: UInt32 = 0
    ) -> Self {
        let route = ChosenRoute(
            kind: kind, interface: interface, gateway: gateway.flatMap { IPAddress($0) }, source: source.flatMap { IPAddress($0) }
        )
        return .route(RouteQuery(IPAddress(address) ?? IPAddress(v4: 0), interface: bound), .route(route))
    }

    /// The kernel refuses a route to an address.
    static func noRoute(to address: String, _ number: SystemErrorNumber = .networkUnreachable) -> Self {
        .route(RouteQuery(IPAddress(address) ?? IPAddress(v4: 0)), .refused(errno: number.rawValue))
    }

    /// The kernel does not answer a route query.
    static func unanswered(_ address: String) -> Self {
        .route(RouteQuery(IPAddress(address) ?? IPAddress(v4: 0)), .unanswered)
    }

    static func connected(_ id: UInt64) -> Self { .probe(ProbeResult(id: id, roundTripNanoseconds: 5_000_000)) }

    static func failed(
        _ id: UInt64, _ number: SystemErrorNumber, call: String = "handshake", icmp: (UInt8, UInt8)? = nil, from: String? = nil
    ) -> Self {
        let reporter = icmp.map {
            ProbeResult.Reporter(origin: 2, type: $0.0, code: $0.1, offender: from.flatMap { IPAddress($0) })
        }
        return .probe(ProbeResult(id: id, errno: number.rawValue, call: call, reporter: reporter))
    }

    static func found(_ id: UInt64, _ addresses: String...) -> Self {
        .lookup(LookupAnswer(id: id, addresses: addresses.compactMap { IPAddress($0) }))
    }

    static func notFound(_ id: UInt64, _ code: ResolverCode, after milliseconds: Int64 = 5) -> Self {
        .lookup(LookupAnswer(id: id, code: code.rawValue, elapsedNanoseconds: milliseconds * 1_000_000))
    }
}
