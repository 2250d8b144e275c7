import Expectations
import NetlinkBytes
import Testing

@testable import Reachability

/// A path machine whose clock and kernel the test controls.
///
/// The bench answers route queries and evidence requests within the turn, as the loop does, and dumps only when the test says so.
/// With every `.changed` it checks the universal property: the published changes applied to the previous snapshot give the next
/// one.
struct PathBench {
    private(set) var machine: PathMachine
    var now = Moment(monotonicNanoseconds: 1_000_000_000, wallClockNanoseconds: 1_700_000_000_000_000_000)
    /// The messages that a dump of each table shows.
    var tables: [KernelTable: [NetlinkEvent]] = [:]
    /// The answers to RTM_GETROUTE. A query that is missing here has no route.
    var routes: [RouteQuery: RouteAnswer] = [:]
    var evidence: [UInt32: InterfaceEvidence] = [:]
    /// The route queries that were asked, in order.
    var questions: [RouteQuery] = []
    /// The names of the interfaces whose evidence was read, in order.
    var evidenceRead: [String] = []
    /// The dump that the machine requested and the test has not answered.
    private(set) var dumping: (table: KernelTable, sequence: UInt32)?
    private var mirror = KernelSnapshot()

    init(_ configuration: MonitorConfiguration = MonitorConfiguration()) { machine = PathMachine(configuration) }

    // MARK: Events

    /// Handles events and ends the turn. - Returns: the effects except queries, evidence requests and dumps.
    @discardableResult
    mutating func turn(_ events: PathMachine.Event...) -> [PathMachine.Effect] {
        var effects: [PathMachine.Effect] = []
        for event in events { perform(machine.handle(event, at: now), &effects) }
        while true {
            let wanted = machine.handle(.turnEnded, at: now)
            if wanted.isEmpty { break }
            perform(wanted, &effects)
        }
        expectEqual(mirror, machine.snapshot, "the published changes do not lead to the snapshot")
        return effects
    }

    /// Prepares the machine for the loss of its path, as the loop does in an idle moment.
    mutating func foresee() { machine.foresee() }

    /// Returns whether the answers to the targets' queries must be requested again, since the last call.
    mutating func takeExpiredAnswers() -> Bool { machine.takeExpiredAnswers() }

    /// Makes the routes of targets use these interfaces, and ends the turn.
    @discardableResult
    mutating func follow(_ interfaces: Set<UInt32>) -> [PathMachine.Effect] {
        machine.setUsedInterfaces(interfaces)
        return turn(.turnEnded)
    }

    /// Delivers a datagram of these messages, as bytes, and ends the turn.
    @discardableResult
    mutating func receive(_ messages: RawMessage...) -> [PathMachine.Effect] {
        turn(.messages(NetlinkDecoder.decode(messages.bytes)))
    }

    /// Delivers a datagram of messages with these events, and ends the turn.
    @discardableResult
    mutating func deliver(_ events: NetlinkEvent...) -> [PathMachine.Effect] {
        turn(.messages(events.map { NetlinkMessage($0) }))
    }

    private mutating func perform(_ effects: [PathMachine.Effect], _ kept: inout [PathMachine.Effect]) {
        for effect in effects {
            switch effect {
            case .askRoute(let query):
                questions.append(query)
                perform(machine.handle(.route(query, routes[query] ?? .refused(errno: 101)), at: now), &kept)
            case .readEvidence(let link):
                evidenceRead.append(link.name)
                perform(machine.handle(.evidence(link.index, evidence[link.index] ?? InterfaceEvidence()), at: now), &kept)
            case .dump(let table, _, let sequence):
                expectNil(dumping, "one dump at a time")
                dumping = (table, sequence)
            case .changed(let changes):
                mirror.apply(changes)
                kept.append(effect)
            case .publish, .resynced, .gap, .ended: kept.append(effect)
            }
        }
    }

    // MARK: Dumps

    /// Delivers slices of the running dump, without its end.
    mutating func dumpSlice(_ events: [NetlinkEvent], interrupted: Bool = false) -> [PathMachine.Effect] {
        let sequence = dumping?.sequence ?? 0
        return turn(.dump(events.map { NetlinkMessage($0, sequence: sequence, wasInterrupted: interrupted) }))
    }

    /// Delivers the end of the running dump.
    mutating func dumpEnd(errno: Int32 = 0, interrupted: Bool = false) -> [PathMachine.Effect] {
        let sequence = dumping?.sequence ?? 0
        dumping = nil
        return turn(.dump([NetlinkMessage(.done(errno: errno), sequence: sequence, wasInterrupted: interrupted)]))
    }

    /// Answers the running dump completely, from the present tables.
    @discardableResult
    mutating func answerDump(interrupted: Bool = false) -> [PathMachine.Effect] {
        guard let table = dumping?.table else { return [] }
        return dumpSlice(tables[table] ?? []) + dumpEnd(interrupted: interrupted)
    }

    // MARK: Time

    mutating func wait(milliseconds: Int64) { now = now.advanced(by: .milliseconds(milliseconds)) }

    /// Answers dumps and moves the clock to the machine's deadlines until it has none.
    @discardableResult
    mutating func settle() -> [PathMachine.Effect] {
        var effects: [PathMachine.Effect] = []
        for _ in 0..<200 {
            if dumping != nil {
                effects += answerDump()
            } else if let deadline = machine.deadline {
                let ahead = max(0, deadline - now.monotonicNanoseconds)
                now = now.advanced(by: .nanoseconds(ahead))
                effects += turn(.turnEnded)
            } else {
                return effects
            }
        }
        Issue.record("the machine never settled")
        return effects
    }

    /// Starts the machine and settles it with the contents of the tables.
    @discardableResult
    mutating func start(
        seed: UInt64 = 1, isPolling: Bool = false,
        resolver: ResolverConfiguration = ResolverConfiguration(nameservers: [.init(Net.gateway)], exists: true)
    ) -> [PathMachine.Effect] {
        turn(.began(seed: seed, isPolling: isPolling), .resolver(resolver)) + settle()
    }

    /// A started machine with one Ethernet interface, an IPv4 address and a default route, 5 s after its dumps.
    static func online(_ configuration: MonitorConfiguration = MonitorConfiguration()) -> PathBench {
        var bench = PathBench(configuration)
        bench.connect()
        bench.start()
        bench.wait(milliseconds: 5_000)
        return bench
    }

    /// Puts eth0 with its address and default route into the tables and the answers.
    mutating func connect() {
        tables[.links] = [.link(Net.lo), .link(Net.eth0)]
        tables[.addresses] = [.address(Net.loopback), .address(Net.address)]
        tables[.routesV4] = [.route(Net.defaultRoute), .route(Net.onLink)]
        routes[RouteQuery(Net.anywhere)] = Net.answer
        routes[RouteQuery(Net.anywhere, interface: 2)] = Net.answer
    }

    /// Takes eth0 down in the tables and the kernel's answers.
    mutating func disconnect() {
        tables[.links] = [.link(Net.lo), .link(Net.eth0.with(flags: [], state: .down))]
        tables[.routesV4] = []
        routes = [:]
    }
}

/// Names and values of the tests' network.
enum Net {
    static let up: Link.Flags = [.up, .running, .lowerUp]
    static let lo = Link(
        index: 1, name: "lo", flags: [.up, .running, .lowerUp, .loopback], hardwareType: 772, mtu: 65_536,
        hardwareAddress: [0, 0, 0, 0, 0, 0])
    static let eth0 = Link(
        index: 2, name: "eth0", flags: up, operationalState: .up, hardwareAddress: [2, 0, 0, 0, 0, 2], parentBus: "pci")
    static let eth1 = Link(
        index: 3, name: "eth1", flags: up, operationalState: .up, hardwareAddress: [2, 0, 0, 0, 0, 3], parentBus: "pci")
    static let loopback = Address(interface: 1, prefix: IPPrefix(IPAddress(v4: 0x7f00_0001), length: 8), scope: 254)
    static let address = Address(interface: 2, prefix: IPPrefix(source, length: 24))
    static let source = IPAddress(v4: 0xc000_0207)
    static let gateway = IPAddress(v4: 0xc000_0201)
    static let anywhere = IPAddress(v4: 0xc633_6401)
    static let anywhere6 = IPAddress(v6: 0x2001_0db8_ffff_0000, 1)
    static let nowhere = IPPrefix(IPAddress(v4: 0), length: 0)
    static let nowhere6 = IPPrefix(IPAddress(v6: 0, 0), length: 0)
    static let defaultRoute = Route(Route.Key(destination: nowhere), nextHops: [Route.NextHop(interface: 2, gateway: gateway)])
    static let onLink = Route(
        Route.Key(destination: IPPrefix(IPAddress(v4: 0xc000_0200), length: 24)), nextHops: [Route.NextHop(interface: 2)],
        origin: 2,
        scope: 253, preferredSource: source)
    static let answer = RouteAnswer.route(ChosenRoute(interface: 2, gateway: gateway, source: source))
    static let source6 = IPAddress(v6: 0x2001_0db8_0000_0001, 7)
    static let linkLocal6 = IPAddress(v6: 0xfe80 << 48, 1)
}

extension Link {
    func with(flags: Flags, state: OperationalState) -> Link {
        var link = self
        link.flags = flags
        link.operationalState = state
        return link
    }

    /// The link switched on, without carrier.
    var unplugged: Link { with(flags: .up, state: .down) }
    /// The link switched off.
    var off: Link { with(flags: [], state: .down) }
}

extension [PathMachine.Effect] {
    var published: [PathUpdate] {
        compactMap { effect in
            if case .publish(let update) = effect { update } else { nil }
        }
    }

    var changes: [KernelChange] {
        flatMap { effect in
            if case .changed(let changes) = effect { changes } else { [KernelChange]() }
        }
    }

    var resyncs: [ResyncReason] {
        compactMap { effect in
            if case .resynced(let reason) = effect { reason } else { nil }
        }
    }
}
