import Testing

@testable import Reachability

/// A book with targets `a0:1`, `a1:1`, …, whose publications are written as text.
struct IncidentTranscript {
    static let second: Int64 = 1_000_000_000

    var book = IncidentBook()
    var timing = IncidentBook.Timing()
    var now: Int64 = 0
    /// The time of the first failure of the present row, for the next records; `nil` for their own time.
    var failingSince: Int64?
    /// The texts of targets that have others than the usual ones.
    var texts: [Int: String] = [:]

    static func moment(_ time: Int64) -> Moment {
        Moment(monotonicNanoseconds: time, wallClockNanoseconds: 1_000 * second + time)
    }

    static let silentGateway = cause(.neighbor, .gatewaySilent, ["gateway": "192.0.2.1", "interface": "eth0"])
    static let refused = cause(.tcp, .refused, ["address": "192.0.2.7"])
    static let silent = cause(.tcp, .timeout, ["witness": "10.0.0.9"])
    static let noCarrier = cause(.link, .noCarrier, ["interface": "eth0"])
    static let oneNetwork = cause(.network, .upstreamSilent, ["gateway": "192.0.2.1"])
    static let severalNetworks = Cause(
        .network, .upstreamSilent, detail: "", evidence: ["gateway": .text("192.0.2.1"), "silent_networks": .number(2)])

    static func hop(_ address: String, _ code: Cause.Code = .netUnreachable) -> Cause {
        cause(.network, code, ["hop": address, "address": "198.51.100.7"])
    }

    static func unresolved(_ name: String, _ code: Cause.Code = .resolverSilent) -> Cause {
        cause(.dns, code, ["resolver": "192.0.2.53", "name": name])
    }

    static func cause(_ layer: Cause.Layer, _ code: Cause.Code, _ evidence: [String: String] = [:]) -> Cause {
        Cause(layer, code, detail: code.rawValue, evidence: evidence.mapValues { .text($0) })
    }

    mutating func fail(
        _ number: Int, _ cause: Cause, _ state: StatusName? = nil, at address: String? = nil, flapping: Bool = false
    ) {
        let accusesServer = [.tcp, .tls, .http].contains(cause.layer)
        record(number, state ?? (accusesServer ? .down : .unreachable), cause, address, flapping)
    }

    mutating func succeed(_ number: Int, at address: String? = nil, flapping: Bool = false) {
        record(number, .up, nil, address, flapping)
    }

    /// A failure of a target that stays up, because its failures are too few.
    mutating func miss(_ number: Int, _ cause: Cause, flapping: Bool = false) {
        record(number, .up, nil, nil, flapping, pending: cause)
    }

    /// The end of a probe that has failed or succeeded, and that began `duration` earlier. A status that stays the same is not recorded again.
    mutating func probe(_ number: Int, _ cause: Cause = silent, fails: Bool = true, after duration: Duration = .zero) throws {
        var report = ProbeReport(endpoint: try Endpoint("a\(number):1"), moment: Self.moment(now))
        (report.connection, report.cause) = (duration, fails ? cause : nil)
        book.record(TargetID(number), report)
    }

    mutating func remove(_ number: Int) { book.remove(TargetID(number), at: Self.moment(now)) }

    private mutating func record(
        _ number: Int, _ state: StatusName, _ cause: Cause?, _ address: String?, _ isFlapping: Bool, pending: Cause? = nil
    ) {
        guard let endpoint = try? Endpoint(texts[number] ?? "a\(number):1") else { return }
        let moment = Self.moment(now)
        let update = ServerUpdate(
            endpoint: endpoint, statusName: state, cause: cause, pending: pending,
            failingSince: failingSince.map { Self.moment($0) }, since: moment, address: address.flatMap { IPAddress($0) },
            interface: nil, roundTrip: nil, isFlapping: isFlapping, isInitial: false, moment: moment)
        book.record(TargetID(number), update, timing)
    }

    /// Records that a name server has resolved a name.
    mutating func resolve(_ server: String = "192.0.2.53") throws {
        var report = ProbeReport(endpoint: try Endpoint("b.example:1"), moment: Self.moment(now))
        let address = try #require(IPAddress(server))
        report.lookup = LookupAnswer(id: 1, addresses: [address], answeredBy: .dns, server: .init(address))
        book.record(TargetID(1_000_000), report)
    }

    mutating func take() -> [Incident] { book.takeChanges(at: Self.moment(now)) }

    /// Advances the time in steps of 100 ms, as deadlines demand, and returns what is published meanwhile.
    mutating func advance(by seconds: Int64) -> [String] {
        let end = now + seconds * Self.second
        var texts = published()
        while let due = book.deadline, due <= end {
            now = max(now, due)
            texts += published()
        }
        now = end
        return texts
    }

    /// Returns what is published now: `open 1 gateway 192.0.2.1 ×3`, with the times of ends and of earlier beginnings in seconds.
    mutating func published() -> [String] { take().map(text) }

    private func text(_ incident: Incident) -> String {
        func number(_ id: String) -> Substring { id.split(separator: "-").last ?? "" }
        func seconds(_ moment: Moment) -> Int64 { moment.monotonicNanoseconds / Self.second }
        var text = "\(incident.state.rawValue) \(number(incident.id)) "
        if incident.kind == .flapping { text += "flapping " }
        text += "\(incident.subject) ×\(incident.targetCount)"
        if let into = incident.into { text += " into \(number(into))" }
        if incident.began != Self.moment(now), incident.isOpen { text += " from \(seconds(incident.began))" }
        if let ended = incident.ended, ended != Self.moment(now) { text += " to \(seconds(ended))" }
        return text
    }
}
