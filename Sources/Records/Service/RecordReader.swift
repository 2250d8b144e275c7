import FoundationEssentials
import Reachability

/// The reader of the records of a service, for their text: the inverse of ``RecordEncoder``. Records and values that it does not know
/// are ignored, because a later version may add some.
package struct RecordReader {
    /// The header of the stream; `nil` before its first record.
    package private(set) var header: StreamHeader?
    private var targets: [String: TargetID] = [:]
    /// The last name and text of each target, by its identifier or its text.
    private var descriptions: [String: (name: String?, text: String)] = [:]
    private var names = TargetNames()
    private let decoder = JSONDecoder()

    package init() {}

    /// Returns the record of a line of JSON; `nil` for a line that is none, or one of another type.
    package mutating func record(_ json: [UInt8]) -> Record? {
        let data = Data(json)
        // A `path` record has the keys of a path itself, and records of targets and incidents share some of them.
        guard let keys = try? decoder.decode(Keys.self, from: data), let shared = try? decoder.decode(PathKeys.self, from: data),
            let seq = keys.seq, let event = event(keys, shared)
        else { return nil }
        let identity = keys.identity
        if case .server(_, let update) = event { describe(identity?.id, identity?.name, update.endpoint.text) }
        var record = Record(
            event: event, seq: seq, superseded: keys.superseded ?? 0, isRecorded: keys.recorded, identity: identity,
            gapReason: keys.reason.flatMap(GapReason.init) ?? .suspend)
        if case .incident(let incident) = event { record.targetNames = names.names(of: incident) }
        return record
    }

    private mutating func describe(_ id: String?, _ name: String?, _ text: String) {
        guard let former = descriptions.updateValue((name, text), forKey: id ?? text) else { return names.add(name, of: text) }
        // A reload of the service has renamed the target.
        if former != (name, text) { names = TargetNames(descriptions.values) }
    }

    private mutating func event(_ keys: Keys, _ shared: PathKeys) -> MonitorEvent? {
        guard let type = keys.type, let time = keys.ts, let monotonic = keys.mono_ns else { return nil }
        let clock = RecordClock(time: time, monotonic: monotonic)
        switch Record.Kind(rawValue: type) {
        case .hello:
            guard let path = keys.path?.path, let version = keys.version else { return nil }
            let identity = MonitorIdentity(
                bootID: keys.boot_id ?? "", namespaceName: keys.netns?.name, namespaceInode: keys.netns?.inode ?? 0)
            header = StreamHeader(
                version: version, identity: identity, targets: (keys.targets ?? []).compactMap { try? Endpoint($0) })
            return .path(
                PathUpdate(path: path, reasons: [], isInitial: true, coalescedEventCount: 0, moment: clock.now))
        case .path:
            guard let path = shared.path else { return nil }
            return .path(
                PathUpdate(
                    path: path, reasons: (keys.reasons ?? []).compactMap(PathChangeReason.init), isInitial: false,
                    coalescedEventCount: keys.suppressed ?? 0, moment: clock.now))
        case .target:
            guard let text = keys.target, let update = keys.server(shared, clock) else { return nil }
            let id = targets[keys.id ?? text] ?? TargetID(targets.count)
            targets[keys.id ?? text] = id
            return .server(id, update)
        case .incident: return keys.incident(clock, shared.cause).map { .incident($0) }
        case .resync: return keys.reason.flatMap(ResyncReason.init).map { .resync($0, clock.now) }
        case .gap:
            guard let from = keys.from, let to = keys.to else { return nil }
            return .gap(from: clock.moment(from), to: clock.moment(to))
        case .probe, nil: return nil
        }
    }
}

extension RecordReader {
    /// The keys of a service's status, beside its targets.
    struct StatusKeys {
        var moment: Moment
        /// The path; `nil` if it has not settled yet.
        var path: NetworkPath?
        var canary: ServerUpdate?
        var instance: String
        var next: String?
    }

    private struct StatusDecoding: Decodable {
        var ts: String
        var path: PathKeys?
        var canary: CanaryDecoding?
        var instance: String
        var next: String?
    }

    private struct CanaryDecoding: Decodable {
        var keys: Keys
        var shared: PathKeys

        init(from decoder: any Decoder) throws { (keys, shared) = (try Keys(from: decoder), try PathKeys(from: decoder)) }
    }

    /// Reads the document of a service's status; `nil` if it is none.
    func statusKeys(_ json: [UInt8]) -> StatusKeys? {
        guard let keys = try? decoder.decode(StatusDecoding.self, from: Data(json)) else { return nil }
        let clock = RecordClock(time: keys.ts, monotonic: 0)
        return StatusKeys(
            moment: clock.now, path: keys.path?.path, canary: keys.canary.flatMap { $0.keys.server($0.shared, clock) },
            instance: keys.instance, next: keys.next)
    }
}

/// The clocks of a record, which give its times their monotonic time.
private struct RecordClock {
    let now: Moment

    init(time: String, monotonic: Int64) {
        now = Moment(monotonicNanoseconds: monotonic, wallClockNanoseconds: Self.nanoseconds(time))
    }

    func moment(_ text: String) -> Moment {
        let time = Self.nanoseconds(text)
        let elapsed = now.wallClockNanoseconds.subtractingReportingOverflow(time).partialValue
        return Moment(
            monotonicNanoseconds: now.monotonicNanoseconds.subtractingReportingOverflow(elapsed).partialValue,
            wallClockNanoseconds: time)
    }

    /// Returns the time of a text with milliseconds (RFC 3339); 1970 for another text.
    private static func nanoseconds(_ text: String) -> Int64 {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        guard let date = try? Date(text, strategy: style) else { return 0 }
        let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
        return abs(milliseconds) < 9e12 ? Int64(milliseconds) * 1_000_000 : 0
    }
}

/// An interface in a record.
private struct RecordInterface: Decodable {
    var name: String
    var index: UInt32?
    var type: String
    var virtual: Bool?
    var level: String?
    var expensive: Bool?
    var addresses: [String]?

    init(name: String, type: String) { (self.name, self.type) = (name, type) }

    var interface: NetworkInterface {
        NetworkInterface(
            name: name, index: index ?? 0, type: InterfaceType(rawValue: type) ?? .other, isVirtual: virtual ?? false,
            isExpensive: expensive ?? false, level: level.flatMap(LinkLevel.init) ?? .off,
            addresses: (addresses ?? []).compactMap(Self.prefix))
    }

    private static func prefix(_ text: String) -> IPPrefix? {
        let parts = text.split(separator: "/")
        guard parts.count == 2, let address = IPAddress(parts[0]), let length = UInt8(parts[1]) else { return nil }
        return IPPrefix(address, length: length)
    }
}

private struct RecordNameServer: Decodable {
    var address: String

    var server: ResolverConfiguration.Nameserver? {
        let parts = address.split(separator: "%", maxSplits: 1)
        guard let address = parts.first.flatMap({ IPAddress($0) }) else { return nil }
        return ResolverConfiguration.Nameserver(address, zone: parts.count > 1 ? String(parts[1]) : nil)
    }
}

private struct RecordAddress: Decodable {
    var address: String
    var status: String
    var cause: RecordCause?
    var since: String?

    func status(_ clock: RecordClock) -> AddressStatus? {
        guard let address = IPAddress(address), let status = StatusName(rawValue: status) else { return nil }
        return AddressStatus(address, status, cause: cause?.cause, since: since.map(clock.moment) ?? clock.now)
    }
}

private struct RecordCause: Decodable {
    var layer: String
    var code: String
    var detail: String

    var cause: Cause { Cause(Cause.Layer(rawValue: layer), Cause.Code(rawValue: code), detail: detail) }
}

/// The keys of a `path` record.
private struct PathKeys: Decodable {
    var status: String?
    var interface: String?
    var interface_v4: String?
    var interface_v6: String?
    var underlying: String?
    var dns: Bool?
    var dns_servers: [RecordNameServer]?
    var expensive: Bool?
    var constrained: Bool?
    var gateways: [String]?
    var interfaces: [RecordInterface]?
    var cause: RecordCause?
    var consistent: Bool?

    /// The path; `nil` if its status is not known.
    var path: NetworkPath? {
        guard let status = status.flatMap(NetworkPath.Status.init) else { return nil }
        let all = (interfaces ?? []).map(\.interface)
        func named(_ name: String?) -> NetworkInterface? { name.flatMap { name in all.first { $0.name == name } } }
        let selected = [interface, interface_v4, interface_v6, underlying].compactMap(named)
        // The record does not say which changes are published; these are those of every monitor.
        let notable = all.filter { !$0.isVirtual && $0.type != .loopback } + selected
        return NetworkPath(
            status: status, interface: named(interface), interfaceV4: named(interface_v4), interfaceV6: named(interface_v6),
            underlying: named(underlying), supportsDNS: dns ?? false,
            resolvers: (dns_servers ?? []).compactMap(\.server), isExpensive: expensive ?? false,
            isConstrained: constrained ?? false, gateways: (gateways ?? []).compactMap(Self.gateway), interfaces: all,
            cause: cause?.cause, isConsistent: consistent ?? true, notable: Set(notable.map(\.index)))
    }

    private static func gateway(_ text: String) -> NetworkPath.Gateway? {
        let parts = text.split(separator: "%", maxSplits: 1)
        guard let address = parts.first.flatMap({ IPAddress($0) }) else { return nil }
        return NetworkPath.Gateway(address, zone: parts.count > 1 ? String(parts[1]) : nil)
    }
}

/// The keys of all records that text shows.
private struct Keys: Decodable {
    struct Namespace: Decodable {
        var name: String?
        var inode: UInt64?
    }
    struct Subject: Decodable {
        var kind: String
        var name: String?
    }

    var type: String?
    var seq: Int?
    var ts: String?
    var mono_ns: Int64?
    var superseded: Int?
    var version: String?
    var boot_id: String?
    var netns: Namespace?
    var path: PathKeys?
    var targets: [String]?
    var reasons: [String]?
    var suppressed: Int?
    var target: String?
    var id: String?
    var name: String?
    var group: String?
    var labels: [String: String]?
    var since: String?
    var rtt_ms: Double?
    var response_ms: Double?
    var phases_ms: [String: Double?]?
    var certificate_days_left: Int?
    var address: String?
    var addresses: [RecordAddress]?
    var interface_type: String?
    var flapping: Bool?
    var paused: Bool?
    var phase: String?
    var pending: Bool?
    var initial: Bool?
    var incident: String?
    var kind: String?
    var state: String?
    var into: String?
    var from: String?
    var to: String?
    var scope: String?
    var subject: Subject?
    var target_count: Int?
    var severity: String?
    var recorded: Bool?
    var reason: String?

    /// The names of the target; `nil` if it has none.
    var identity: TargetIdentity? {
        let identity = TargetIdentity(id: id, name: name, group: group, labels: labels ?? [:])
        return identity == TargetIdentity() ? nil : identity
    }

    /// The state of a server; `nil` if the keys are those of something else.
    func server(_ shared: PathKeys, _ clock: RecordClock) -> ServerUpdate? {
        guard let target, let endpoint = try? Endpoint(target), let state = shared.status.flatMap(StatusName.init) else {
            return nil
        }
        let isPending = pending ?? false
        let interface = shared.interface.map { RecordInterface(name: $0, type: interface_type ?? "").interface }
        return ServerUpdate(
            endpoint: endpoint, statusName: state, cause: isPending && state != .degraded ? nil : shared.cause?.cause,
            pending: isPending ? shared.cause?.cause : nil, since: since.map(clock.moment) ?? clock.now,
            address: address.flatMap { IPAddress($0) }, interface: interface,
            roundTrip: rtt_ms.map(Self.duration), responseTime: response_ms.map(Self.duration),
            phases: phases, certificateEnd: certificate_days_left.map { CertificateValidity.end(daysLeft: $0, at: clock.now) },
            addresses: (addresses ?? []).compactMap { $0.status(clock) }, isFlapping: flapping ?? false,
            isPaused: paused ?? false,
            job: phase.flatMap(JobPhase.init), isInitial: initial ?? false, moment: clock.now)
    }

    private var phases: PhaseTimes {
        var times = PhaseTimes()
        for phase in ProbePhase.allCases { times[phase] = (phases_ms?[phase.rawValue] ?? nil).map(Self.duration) }
        return times
    }

    private static func duration(_ milliseconds: Double) -> Duration {
        .nanoseconds(Int64((min(max(milliseconds, 0), 1e9) * 1_000_000).rounded()))
    }

    func incident(_ clock: RecordClock, _ cause: RecordCause?) -> Incident? {
        guard let incident, let state = state.flatMap(Incident.State.init), let scope = scope.flatMap(Incident.Scope.init),
            let subject, let kind = Incident.Subject.Kind(rawValue: subject.kind), let cause, let from
        else { return nil }
        let endpoints = (targets ?? []).compactMap { try? Endpoint($0) }
        return Incident(
            id: incident, kind: self.kind.flatMap(Incident.Kind.init) ?? .fault, state: state, into: into, scope: scope,
            subject: Incident.Subject(kind, subject.name), cause: cause.cause,
            targetCount: target_count ?? endpoints.count, targets: endpoints,
            severity: severity.flatMap(Incident.Severity.init), began: clock.moment(from),
            ended: to.map(clock.moment), moment: clock.now)
    }
}
