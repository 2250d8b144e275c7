internal import FoundationEssentials
internal import Pacing

/// One line of a recording after the header.
package struct RecordedInput: Hashable, Sendable {
    package var moment: Moment
    package var input: MonitorInput

    package init(moment: Moment, input: MonitorInput) {
        self.moment = moment
        self.input = input
    }
}

extension RecordedInput: Codable {
    private enum Keys: String, CodingKey {
        case t, w, input, bytes, seed, polling, errno, destination, interface, evidence, resolver, lookup, probe, asleep, limit
        case reply, bound, counters, source, mark
        case target, by, endpoint, scheme, settings, address, port, all, report
    }

    /// An input of a kind that this version does not know.
    struct UnknownKindError: Error {}

    /// Decodes one line.
    ///
    /// - Throws: ``UnknownKindError``, ``RecordedNumberError``, or `DecodingError` for a line that is valid in no version.
    package init(from decoder: any Decoder) throws {
        let line = try decoder.container(keyedBy: Keys.self)
        moment = Moment(
            monotonicNanoseconds: try line.decode(Int64.self, forKey: .t),
            wallClockNanoseconds: try line.decode(Int64.self, forKey: .w))
        func bytes() throws -> [UInt8] {
            let text = try line.decode(String.self, forKey: .bytes)
            guard let data = Data(base64Encoded: text) else {
                throw DecodingError.dataCorruptedError(forKey: .bytes, in: line, debugDescription: "not base64")
            }
            return [UInt8](data)
        }
        // Queries without a source address and a mark, and recordings of earlier versions, have neither.
        func selector() throws -> RouteSelector? {
            RouteSelector(
                source: try line.decodeIfPresent(IPAddress.self, forKey: .source),
                mark: try line.decodeIfPresent(UInt32.self, forKey: .mark) ?? 0)
        }
        let kind = try line.decode(String.self, forKey: .input)
        switch kind {
        case "began":
            input = .began(
                seed: try line.decode(UInt64.self, forKey: .seed), isPolling: try line.decode(Bool.self, forKey: .polling)
            )
        case "datagram": input = .datagram(try bytes())
        case "overrun": input = .overrun
        case "dump": input = .dump(try bytes())
        case "dump-failed": input = .dumpFailed(errno: try line.decode(Int32.self, forKey: .errno))
        case "route-reply":
            let query = RouteQuery(
                try line.decode(IPAddress.self, forKey: .destination),
                interface: try line.decode(UInt32.self, forKey: .interface),
                port: try line.decodeIfPresent(UInt16.self, forKey: .port) ?? 0,
                selector: try selector(),
                showsAll: try line.decodeIfPresent(Bool.self, forKey: .all) ?? false
            )
            input = .routeReply(query, try bytes())
        // Recordings of earlier versions have the British spelling.
        case "neighbor-reply", "neighbour-reply":
            let key = Neighbor.Key(
                interface: try line.decode(UInt32.self, forKey: .interface),
                address: try line.decode(IPAddress.self, forKey: .address)
            )
            input = .neighborReply(key, try bytes())
        case "evidence":
            input = .evidence(
                try line.decode(UInt32.self, forKey: .interface), try line.decode(InterfaceEvidence.self, forKey: .evidence)
            )
        case "resolver": input = .resolver(try line.decode(ResolverConfiguration.self, forKey: .resolver))
        case "lookup": input = .lookup(try line.decode(LookupAnswer.self, forKey: .lookup))
        case "probe": input = .probe(try line.decode(ProbeResult.self, forKey: .probe))
        case "host-reply":
            let key = Neighbor.Key(
                interface: try line.decode(UInt32.self, forKey: .interface),
                address: try line.decode(IPAddress.self, forKey: .address)
            )
            input = .hostReply(
                HostQuery(key, isBound: try line.decode(Bool.self, forKey: .bound), selector: try selector()),
                try line.decode(HostReply.self, forKey: .reply))
        case "search-reply":
            let key = Neighbor.Key(
                interface: try line.decode(UInt32.self, forKey: .interface),
                address: try line.decode(IPAddress.self, forKey: .address)
            )
            input = .searchReply(key, try line.decode(HopSearchReply.self, forKey: .reply))
        case "counters":
            input = .counters(
                try line.decode(UInt32.self, forKey: .interface), try line.decodeIfPresent(LinkCounters.self, forKey: .counters))
        case "passive-report":
            let endpoint = try Endpoint(line.decode(String.self, forKey: .endpoint))
            input = .passiveReport(PassiveReport(endpoint, try line.decode(RecordedReport.self, forKey: .report).outcome))
        case "heartbeat":
            input = .heartbeat(
                TargetID(try line.decode(Int.self, forKey: .target)),
                try line.decode(RecordedHeartbeat.self, forKey: .report).report)
        case "probe-limit": input = .probeLimit(try line.decode(Int.self, forKey: .limit))
        case "resumed": input = .resumed(nanosecondsAsleep: try line.decode(Int64.self, forKey: .asleep))
        case "namespace-gone": input = .namespaceGone
        case "poll-due": input = .pollDue
        case "target-added":
            let endpoint = try Endpoint(line.decode(String.self, forKey: .endpoint))
            let scheme = try line.decodeIfPresent(String.self, forKey: .scheme).flatMap(Endpoint.Scheme.init)
            input = .targetAdded(
                TargetID(try line.decode(Int.self, forKey: .target)), scheme.map { endpoint.with($0) } ?? endpoint,
                try line.decode(RecordedSettings.self, forKey: .settings).settings
            )
        case "target-removed": input = .targetRemoved(TargetID(try line.decode(Int.self, forKey: .target)))
        case "target-replaced":
            input = .targetReplaced(
                TargetID(try line.decode(Int.self, forKey: .target)), by: TargetID(try line.decode(Int.self, forKey: .by)))
        case "turn-ended": input = .turnEnded
        default: throw UnknownKindError()
        }
        try checkRanges()
    }

    /// Encodes one line.
    package func encode(to encoder: any Encoder) throws {
        var line = encoder.container(keyedBy: Keys.self)
        try line.encode(moment.monotonicNanoseconds, forKey: .t)
        try line.encode(moment.wallClockNanoseconds, forKey: .w)
        func put(_ kind: String, _ bytes: [UInt8]? = nil) throws {
            try line.encode(kind, forKey: .input)
            if let bytes { try line.encode(Data(bytes).base64EncodedString(), forKey: .bytes) }
        }
        func put(_ selector: RouteSelector?) throws {
            try line.encodeIfPresent(selector?.source, forKey: .source)
            if let mark = selector?.mark, mark != 0 { try line.encode(mark, forKey: .mark) }
        }
        switch input {
        case .began(let seed, let isPolling):
            try put("began")
            try line.encode(seed, forKey: .seed)
            try line.encode(isPolling, forKey: .polling)
        case .datagram(let bytes): try put("datagram", bytes)
        case .overrun: try put("overrun")
        case .dump(let bytes): try put("dump", bytes)
        case .dumpFailed(let errno):
            try put("dump-failed")
            try line.encode(errno, forKey: .errno)
        case .routeReply(let query, let bytes):
            try put("route-reply", bytes)
            try line.encode(query.destination, forKey: .destination)
            try line.encode(query.interface, forKey: .interface)
            if query.port != 0 { try line.encode(query.port, forKey: .port) }
            try put(query.selector)
            if query.showsAll { try line.encode(true, forKey: .all) }
        case .neighborReply(let key, let bytes):
            try put("neighbor-reply", bytes)
            try line.encode(key.interface, forKey: .interface)
            try line.encode(key.address, forKey: .address)
        case .evidence(let index, let evidence):
            try put("evidence")
            try line.encode(index, forKey: .interface)
            try line.encode(evidence, forKey: .evidence)
        case .resolver(let configuration):
            try put("resolver")
            try line.encode(configuration, forKey: .resolver)
        case .lookup(let answer):
            try put("lookup")
            try line.encode(answer, forKey: .lookup)
        case .probe(let result):
            try put("probe")
            try line.encode(result, forKey: .probe)
        case .hostReply(let query, let reply):
            try put("host-reply")
            try line.encode(query.host.interface, forKey: .interface)
            try line.encode(query.host.address, forKey: .address)
            try line.encode(query.isBound, forKey: .bound)
            try put(query.selector)
            try line.encode(reply, forKey: .reply)
        case .searchReply(let hop, let reply):
            try put("search-reply")
            try line.encode(hop.interface, forKey: .interface)
            try line.encode(hop.address, forKey: .address)
            try line.encode(reply, forKey: .reply)
        case .counters(let interface, let counters):
            try put("counters")
            try line.encode(interface, forKey: .interface)
            try line.encodeIfPresent(counters, forKey: .counters)
        case .passiveReport(let report):
            try put("passive-report")
            try line.encode(report.endpoint.text, forKey: .endpoint)
            try line.encode(RecordedReport(report.outcome), forKey: .report)
        case .heartbeat(let id, let report):
            try put("heartbeat")
            try line.encode(id.number, forKey: .target)
            try line.encode(RecordedHeartbeat(report), forKey: .report)
        case .probeLimit(let limit):
            try put("probe-limit")
            try line.encode(limit, forKey: .limit)
        case .resumed(let asleep):
            try put("resumed")
            try line.encode(asleep, forKey: .asleep)
        case .namespaceGone: try put("namespace-gone")
        case .pollDue: try put("poll-due")
        case .targetAdded(let id, let endpoint, let settings):
            try put("target-added")
            try line.encode(id.number, forKey: .target)
            try line.encode(endpoint.text, forKey: .endpoint)
            // The text of a target whose settings have a dialogue says nothing of it.
            if (try? Endpoint(endpoint.text).scheme) != endpoint.scheme {
                try line.encode(endpoint.scheme.rawValue, forKey: .scheme)
            }
            try line.encode(RecordedSettings(settings), forKey: .settings)
        case .targetRemoved(let id):
            try put("target-removed")
            try line.encode(id.number, forKey: .target)
        case .targetReplaced(let id, let other):
            try put("target-replaced")
            try line.encode(id.number, forKey: .target)
            try line.encode(other.number, forKey: .by)
        case .turnEnded: try put("turn-ended")
        }
    }
}

/// Probe settings with their durations in nanoseconds.
struct RecordedSettings: Codable {
    var interval, timeout: Int64
    var failAfter, recoverAfter: Int
    /// `nil` in recordings of earlier versions, in which each failure opened an incident at once. Without the key, 0.
    var openAfter, closeAfter: Int64?
    var families: [UInt8]
    var interface: String?
    /// Omitted without a value, as in recordings of earlier versions.
    var sourceAddress: IPAddress?
    var mark: UInt32?
    var resolver: NameServerAddress?
    /// Omitted for any address, as in recordings of earlier versions.
    var addresses: String?
    /// `nil` in recordings of earlier versions, which had no limits.
    var quality: Quality?
    /// Omitted if false.
    var isScheduledOnly: Bool?
    /// `nil` in recordings of earlier versions, in which every failed probe counted.
    var countsConfirmations: Bool?
    /// Omitted if the interval is constant.
    var initialInterval: Int64?
    /// `nil` in recordings of earlier versions, in which metered interfaces were like others.
    var metered: Metered?

    /// The settings of the target's kind of probe, by their names. Omitted for default settings, and in recordings of earlier versions.
    private var kinds: RecordedKinds?
    /// The settings of TLS and HTTP in recordings of earlier versions, beside each other.
    private var levels: EarlierLevels?

    struct Metered: Codable {
        var factor: Int
        var bytesPerDay: Int?
    }

    struct Quality: Codable {
        var loss: Double?
        var rtt, jitter: Int64?
        /// Omitted without a limit.
        var response: Int64?
        var window: Int
    }

    private enum CodingKeys: String, CodingKey {
        case interval, initialInterval, timeout, failAfter, recoverAfter, openAfter, closeAfter, families, interface,
            sourceAddress, mark, resolver, addresses,
            quality, metered, kinds, levels, countsConfirmations
        case isScheduledOnly = "scheduledOnly"
    }

    init(_ settings: ProbeSettings) {
        interval = settings.interval.saturatingNanoseconds
        timeout = settings.timeout.saturatingNanoseconds
        failAfter = settings.failAfter
        recoverAfter = settings.recoverAfter
        openAfter = settings.openAfter == .zero ? nil : settings.openAfter.saturatingNanoseconds
        closeAfter = settings.closeAfter == .zero ? nil : settings.closeAfter.saturatingNanoseconds
        families = settings.families.map(\.rawValue).sorted()
        interface = settings.interface
        sourceAddress = settings.sourceAddress
        mark = settings.mark == 0 ? nil : settings.mark
        resolver = settings.resolver
        addresses = settings.addresses == .any ? nil : settings.addresses.rawValue
        let limits = settings.quality
        quality = Quality(
            loss: limits.loss, rtt: limits.roundTrip?.saturatingNanoseconds, jitter: limits.jitter?.saturatingNanoseconds,
            response: limits.responseTime?.saturatingNanoseconds, window: limits.window)
        isScheduledOnly = settings.isScheduledOnly ? true : nil
        countsConfirmations = settings.countsConfirmations
        initialInterval = settings.initialInterval?.saturatingNanoseconds
        metered = Metered(factor: settings.metered.intervalFactor, bytesPerDay: settings.metered.bytesPerDay)
        if !settings.ofKinds.isEmpty { kinds = RecordedKinds(values: settings.ofKinds) }
    }

    var settings: ProbeSettings {
        var settings = ProbeSettings(
            interval: .nanoseconds(interval), timeout: .nanoseconds(timeout), failAfter: failAfter, recoverAfter: recoverAfter,
            families: Set(families.compactMap { IPAddress.Family(rawValue: $0) }), interface: interface,
            quality: quality?.limits ?? QualityLimits(loss: nil),
            metered: MeteredLimits(intervalFactor: metered?.factor ?? 1, bytesPerDay: metered?.bytesPerDay),
            openAfter: .nanoseconds(openAfter ?? 0), closeAfter: .nanoseconds(closeAfter ?? 0)
        )
        if let sourceAddress { settings.sourceAddress = sourceAddress }
        if let mark { settings.mark = mark }
        if let resolver { settings.resolver = resolver }
        settings.addresses = addresses.flatMap(ProbedAddresses.init) ?? .any
        settings.isScheduledOnly = isScheduledOnly ?? false
        settings.countsConfirmations = countsConfirmations ?? true
        settings.initialInterval = initialInterval.map { .nanoseconds($0) }
        for value in (kinds?.values ?? []) + (levels?.values ?? []) { settings.adopt(value) }
        return settings
    }
}

extension ProbeSettings {
    fileprivate mutating func adopt<Settings: KindSettings>(_ value: Settings) { self[kind: Settings.self] = value }
}

/// The settings of kinds of probes, each under its name.
private struct RecordedKinds: Codable {
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    let values: [any KindSettings]

    init(values: [any KindSettings]) { self.values = values }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        var values: [any KindSettings] = []
        func read<Settings: KindSettings>(_: Settings.Type) throws {
            let recorded = try container.decodeIfPresent(Settings.Recorded.self, forKey: Name(stringValue: Settings.name))
            if let recorded { values.append(Settings(recorded)) }
        }
        for type in ProbeKinds.all.flatMap(\.settings) { try read(type) }
        self.values = values
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Name.self)
        func write<Settings: KindSettings>(_ settings: Settings) throws {
            try container.encode(settings.recorded, forKey: Name(stringValue: Settings.name))
        }
        for settings in values { try write(settings) }
    }
}

/// The settings of TLS and HTTP that earlier versions have recorded in one map.
private struct EarlierLevels: Codable {
    let values: [any KindSettings]

    init(from decoder: any Decoder) throws {
        func read<Settings: KindSettings>(_: Settings.Type) throws -> any KindSettings {
            Settings(try Settings.Recorded(from: decoder))
        }
        values = try [read(TLSProbeSettings.self), read(HTTPProbeSettings.self)]
    }

    func encode(to encoder: any Encoder) throws {}
}

extension RecordedSettings.Quality {
    var limits: QualityLimits {
        QualityLimits(
            loss: loss, roundTrip: rtt.map { .nanoseconds($0) }, responseTime: response.map { .nanoseconds($0) },
            jitter: jitter.map { .nanoseconds($0) }, window: window)
    }
}

/// The report of a job.
private struct RecordedHeartbeat: Codable {
    /// `started`, `succeeded` or `failed`.
    var kind: String
    var code: Int32?
    var text: String?
    var time: Int64?

    init(_ report: HeartbeatReport) {
        switch report.kind {
        case .started: kind = "started"
        case .succeeded: kind = "succeeded"
        case .failed(let code): (kind, self.code) = ("failed", code)
        }
        (text, time) = (report.text.isEmpty ? nil : report.text, report.time)
    }

    var report: HeartbeatReport {
        let kinds: [String: HeartbeatReport.Kind] = ["started": .started, "succeeded": .succeeded]
        return HeartbeatReport(kinds[kind] ?? .failed(code: code), text: text ?? "", time: time)
    }
}

/// The outcome of a reported connection.
private struct RecordedReport: Codable {
    var ok: Bool
    var address: IPAddress?
    /// In nanoseconds.
    var rtt: Int64?

    init(_ outcome: PassiveReport.Outcome) {
        switch outcome {
        case .success(let address, let roundTrip):
            (ok, self.address, rtt) = (true, address, roundTrip?.saturatingNanoseconds)
        case .failure: (ok, address, rtt) = (false, nil, nil)
        }
    }

    var outcome: PassiveReport.Outcome {
        ok ? .success(address: address, roundTrip: rtt.map { .nanoseconds($0) }) : .failure
    }
}
