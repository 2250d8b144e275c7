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
        case reply, bound, counters
        case target, by, endpoint, settings, address, port, all, report
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
                HostQuery(key, isBound: try line.decode(Bool.self, forKey: .bound)),
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
        case "probe-limit": input = .probeLimit(try line.decode(Int.self, forKey: .limit))
        case "resumed": input = .resumed(nanosecondsAsleep: try line.decode(Int64.self, forKey: .asleep))
        case "namespace-gone": input = .namespaceGone
        case "poll-due": input = .pollDue
        case "target-added":
            input = .targetAdded(
                TargetID(try line.decode(Int.self, forKey: .target)), try Endpoint(line.decode(String.self, forKey: .endpoint)),
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
private struct RecordedSettings: Codable {
    var interval, timeout: Int64
    var failAfter, recoverAfter: Int
    /// `nil` in recordings of earlier versions, in which each failure opened an incident at once. Without the key, 0.
    var openAfter, closeAfter: Int64?
    var families: [UInt8]
    var interface: String?
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

    /// The settings of TLS and HTTP that the verdict needs. Credentials and the request are not recorded. Omitted for targets without
    /// these levels, and in recordings of earlier versions.
    struct Levels: Codable {
        var serverName: String?
        var insecure: Bool
        var certificateDays: Int
        var host: String?
        var method: String
        var redirects: Bool
        var statuses: String?
        var versions: [String]
        var declared: Bool
        /// Omitted if false.
        var canary: Bool?
        /// The proxy's URL with `***` in place of credentials, and the list of hosts without it; omitted without a proxy.
        var proxy: String?
        var proxyExceptions: String?
    }

    var levels: Levels?

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
        case interval, initialInterval, timeout, failAfter, recoverAfter, openAfter, closeAfter, families, interface, quality,
            metered, levels, countsConfirmations
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
        let limits = settings.quality
        quality = Quality(
            loss: limits.loss, rtt: limits.roundTrip?.saturatingNanoseconds, jitter: limits.jitter?.saturatingNanoseconds,
            response: limits.responseTime?.saturatingNanoseconds, window: limits.window)
        isScheduledOnly = settings.isScheduledOnly ? true : nil
        countsConfirmations = settings.countsConfirmations
        initialInterval = settings.initialInterval?.saturatingNanoseconds
        metered = Metered(factor: settings.metered.intervalFactor, bytesPerDay: settings.metered.bytesPerDay)
        guard settings.tls != TLSProbeSettings() || settings.http != HTTPProbeSettings() else { return }
        levels = Levels(
            serverName: settings.tls.serverName, insecure: settings.tls.isInsecure,
            certificateDays: settings.tls.certificateDays, host: settings.http.host, method: settings.http.method,
            redirects: settings.http.followsRedirects, statuses: settings.http.statuses,
            versions: settings.http.versions.sorted(), declared: settings.http.expectation.isDeclared,
            canary: settings.http.isCanary ? true : nil, proxy: settings.http.proxy.map(\.recordedURL),
            proxyExceptions: settings.http.proxy?.exceptionList)
    }

    var settings: ProbeSettings {
        var settings = ProbeSettings(
            interval: .nanoseconds(interval), timeout: .nanoseconds(timeout), failAfter: failAfter, recoverAfter: recoverAfter,
            families: Set(families.compactMap { IPAddress.Family(rawValue: $0) }), interface: interface,
            quality: quality?.limits ?? QualityLimits(loss: nil),
            metered: MeteredLimits(intervalFactor: metered?.factor ?? 1, bytesPerDay: metered?.bytesPerDay),
            openAfter: .nanoseconds(openAfter ?? 0), closeAfter: .nanoseconds(closeAfter ?? 0)
        )
        settings.isScheduledOnly = isScheduledOnly ?? false
        settings.countsConfirmations = countsConfirmations ?? true
        settings.initialInterval = initialInterval.map { .nanoseconds($0) }
        if let levels {
            settings.tls.serverName = levels.serverName
            settings.tls.isInsecure = levels.insecure
            settings.tls.certificateDays = levels.certificateDays
            settings.http.method = levels.method
            settings.http.host = levels.host
            settings.http.followsRedirects = levels.redirects
            settings.http.statuses = levels.statuses
            settings.http.versions = Set(levels.versions)
            settings.http.hasFurtherRules = levels.declared
            settings.http.isCanary = levels.canary ?? false
            try? settings.http.setProxy(levels.proxy, except: levels.proxyExceptions ?? "")
        }
        return settings
    }
}

extension RecordedSettings.Quality {
    var limits: QualityLimits {
        QualityLimits(
            loss: loss, roundTrip: rtt.map { .nanoseconds($0) }, responseTime: response.map { .nanoseconds($0) },
            jitter: jitter.map { .nanoseconds($0) }, window: window)
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
