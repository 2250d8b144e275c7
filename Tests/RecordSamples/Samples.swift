package import Reachability
package import Records

/// Sample values of a monitor, on a clock that starts at 2026-08-02T12:00:00Z.
package enum Samples {
    package static func moment(_ seconds: Double) -> Moment {
        Moment(
            monotonicNanoseconds: 5_000_000_000 + Int64(seconds * 1_000_000_000),
            wallClockNanoseconds: 1_785_672_000_000_000_000 + Int64(seconds * 1_000_000_000)
        )
    }

    package static func address(_ text: String) -> IPAddress {
        IPAddress(text) ?? IPAddress(v4: 0)
    }

    package static func prefix(_ text: String, _ length: UInt8) -> IPPrefix {
        IPPrefix(address(text), length: length)
    }

    package static func endpoint(_ text: String) -> Endpoint {
        do {
            return try Endpoint(text)
        } catch {
            preconditionFailure("the sample '\(text)' is no endpoint: \(error)")
        }
    }

    package static let eth0 = NetworkInterface(
        name: "eth0", index: 2, type: .wired, isVirtual: false, isExpensive: false, level: .routable,
        addresses: [prefix("192.0.2.7", 24), prefix("fe80::7", 64)], evidence: ["ARPHRD_ETHER", "driver e1000e"]
    )
    package static let lo = NetworkInterface(
        name: "lo", index: 1, type: .loopback, isVirtual: true, isExpensive: false, level: .carrier,
        addresses: [prefix("127.0.0.1", 8)]
    )

    package static let satisfied = NetworkPath(
        status: .satisfied, interface: eth0, interfaceV4: eth0, interfaceV6: eth0, supportsDNS: true,
        resolvers: [.init(address("192.0.2.53"))],
        gateways: [.init(address("192.0.2.1")), .init(address("fe80::1"), zone: "eth0")], interfaces: [eth0, lo], notable: [2]
    )
    package static let noCarrier = Cause(
        .link, .noCarrier, detail: "eth0 has no carrier", evidence: ["interface": .text("eth0"), "flags": .number(4099)]
    )
    package static let unsatisfied = NetworkPath(
        status: .unsatisfied, supportsDNS: true, resolvers: [.init(address("192.0.2.53"))],
        interfaces: [
            NetworkInterface(
                name: "eth0", index: 2, type: .wired, isVirtual: false, isExpensive: false, level: .noCarrier, addresses: []),
            lo,
        ],
        cause: noCarrier, notable: [2]
    )
    package static let refused = Cause(
        .tcp, .refused, detail: "192.0.2.9 refuses port 22", evidence: ["errno": .text("ECONNREFUSED")])

    package static let hello = MonitorEvent.path(
        PathUpdate(path: satisfied, reasons: [], isInitial: true, coalescedEventCount: 0, moment: moment(0)))

    package static func path(
        _ path: NetworkPath = unsatisfied, _ reasons: [PathChangeReason] = [.interfaceChanged], suppressed: Int = 0,
        at seconds: Double = 1
    ) -> MonitorEvent {
        .path(
            PathUpdate(path: path, reasons: reasons, isInitial: false, coalescedEventCount: suppressed, moment: moment(seconds)))
    }

    package static func server(
        _ number: Int = 0, _ text: String = "192.0.2.9:22", _ state: StatusName = .up, cause: Cause? = nil,
        pending: Cause? = nil, addresses: [AddressStatus] = [],
        initial: Bool = false, at seconds: Double = 1
    ) -> MonitorEvent {
        let isUp = state == .up
        var phases = PhaseTimes()
        if isUp { phases[.connect] = .microseconds(1300) }
        return .server(
            TargetID(number),
            ServerUpdate(
                endpoint: endpoint(text), statusName: state, cause: cause, pending: pending, since: moment(seconds),
                address: state == .unknown ? nil : address("192.0.2.9"), interface: state == .unknown ? nil : eth0,
                roundTrip: isUp ? .microseconds(1250) : nil, responseTime: isUp ? .microseconds(1300) : nil, phases: phases,
                addresses: addresses, isInitial: initial,
                moment: moment(seconds)
            ))
    }

    /// The addresses of a name that are all probed, of each status.
    package static let addresses = [
        AddressStatus(address("192.0.2.9"), .up, since: moment(1)),
        AddressStatus(address("192.0.2.10"), .down, cause: refused, since: moment(2)),
        AddressStatus(address("2001:db8::9"), .unreachable, since: moment(1)),
        AddressStatus(address("192.0.2.11"), .unknown, since: moment(1)),
    ]

    package static func probe(_ number: Int = 0, failed: Bool = false, at seconds: Double = 1) -> MonitorEvent {
        .probe(
            TargetID(number),
            ProbeReport(
                endpoint: endpoint("192.0.2.9:22"), roundTrip: failed ? nil : .microseconds(1250), address: address("192.0.2.9"),
                connection: .nanoseconds(1_300_499), cause: failed ? refused : nil, moment: moment(seconds)
            ))
    }

    package static func incident(
        _ count: Int = 1, kind: Incident.Kind = .fault, cause: Cause = noCarrier, subject: Incident.Subject? = nil,
        over seconds: Double? = nil, into: String? = nil, at time: Double = 1
    ) -> MonitorEvent {
        .incident(
            Incident(
                id: "1785672001000-3", kind: kind, state: seconds == nil ? .open : into == nil ? .over : .merged, into: into,
                scope: .local, subject: subject ?? .init(.interface, "eth0"), cause: cause, targetCount: count,
                targets: (0..<min(10, count)).map { endpoint("192.0.2.\($0):22") }, began: moment(time),
                ended: seconds.map(moment), moment: moment(seconds ?? time)))
    }

    package static let header = StreamHeader(
        version: "0.1.0", identity: MonitorIdentity(bootID: "b0071d", namespaceName: nil, namespaceInode: 4_026_531_840),
        targets: [endpoint("192.0.2.9:22")]
    )
    package static let encoder = RecordEncoder(header: header)

    package static func text(_ event: MonitorEvent, seq: Int = 1, superseded: Int = 0) -> String {
        String(decoding: encoder.encode(Record(event: event, seq: seq, superseded: superseded)), as: UTF8.self)
    }

    /// One record of each type.
    package static let oneOfEach: [MonitorEvent] = [
        hello, path(), server(), probe(), incident(), .resync(.overrun, moment(2)), .gap(from: moment(3), to: moment(60)),
    ]
}
