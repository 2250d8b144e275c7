import Pacing
import Reachability

@testable import netwatch_service

/// Boards for the tests of pages and for pictures. The clock stands at 2026-11-25 12:03:07 UTC, 13:03:07 in Berlin.
enum PageSamples {
    static let now: Int64 = 1_795_608_187_000
    static let hour: Int64 = 3_600_000

    static func moment(_ milliseconds: Int64 = now) -> Moment {
        Moment(
            monotonicNanoseconds: (milliseconds - now + 900_000_000_000) * 1_000_000,
            wallClockNanoseconds: milliseconds * 1_000_000)
    }

    static func address(_ text: String) -> IPAddress { IPAddress(text) ?? IPAddress(v4: 0) }

    static func endpoint(_ text: String) -> Endpoint {
        do {
            return try Endpoint(text)
        } catch {
            preconditionFailure("the sample '\(text)' is no endpoint: \(error)")
        }
    }

    static let eth0 = NetworkInterface(
        name: "eth0", index: 2, type: .wired, isVirtual: false, isExpensive: false, level: .routable,
        addresses: [IPPrefix(address("192.0.2.7"), length: 24), IPPrefix(address("2001:db8:7::7"), length: 64)])
    static let satisfied = NetworkPath(
        status: .satisfied, interface: eth0, interfaceV4: eth0, interfaceV6: eth0, supportsDNS: true,
        gateways: [.init(address("192.0.2.1"))], interfaces: [eth0])
    static let noCarrier = Cause(
        .link, .noCarrier, detail: "interface eth0 has no carrier",
        evidence: ["interface": .text("eth0"), "flags": .number(4099)])
    static let unsatisfied = NetworkPath(
        status: .unsatisfied, supportsDNS: true,
        interfaces: [
            NetworkInterface(
                name: "eth0", index: 2, type: .wired, isVirtual: false, isExpensive: false, level: .noCarrier, addresses: [])
        ], cause: noCarrier)
    static let refused = Cause(
        .tcp, .refused, detail: "198.51.100.9 refuses the connection to port 5432", evidence: ["errno": .text("ECONNREFUSED")])
    static let latency = Cause(
        .quality, .latency, detail: "the round trip of 412 ms is above the limit of 250 ms",
        evidence: ["rtt_ms": .number(412), "limit_ms": .number(250)])
    static let gatewaySilent = Cause(
        .neighbor, .gatewaySilent, detail: "the gateway 192.0.2.1 does not answer on its link",
        evidence: ["gateway": .text("192.0.2.1"), "interface": .text("eth0"), "errno": .text("EHOSTUNREACH")])
    static let expired = Cause(
        .tls, .certificateExpired, detail: "the certificate of shop.example expired on 2026-11-24",
        evidence: [
            "subject": .text("CN=shop.example"), "issuer": .text("CN=Example CA R3,O=Example"),
            "names": .list(["shop.example", "www.shop.example"]), "not_before": .text("2026-08-26T00:00:00Z"),
            "not_after": .text("2026-11-24T23:59:59Z"), "chain_length": .number(3), "version": .text("TLSv1.3"),
            "sha256": .text("5f2c1d0a8b7e6f4d3c2b1a09f8e7d6c5b4a3928170615243f5e4d3c2b1a09f8e"),
        ])

    static let withoutNameServer = NetworkPath(
        status: .satisfied, interface: eth0, interfaceV4: eth0, interfaces: [eth0])

    static func path(_ path: NetworkPath = satisfied) -> PathUpdate {
        PathUpdate(path: path, reasons: [], isInitial: true, coalescedEventCount: 0, moment: moment())
    }

    static func update(
        _ text: String, _ state: StatusName = .up, _ cause: Cause? = nil, since: Int64 = now - 26 * hour,
        roundTrip: Int64 = 12_300, response: Int64? = nil, certificateDays: Int64? = nil,
        addresses: [AddressStatus] = [], isFlapping: Bool = false
    ) -> ServerUpdate {
        let answers = state == .up || state == .degraded
        return ServerUpdate(
            endpoint: endpoint(text), statusName: state, cause: cause, since: moment(since),
            address: state == .unknown ? nil : address("198.51.100.9"), interface: state == .unknown ? nil : eth0,
            roundTrip: answers ? .microseconds(roundTrip) : nil,
            responseTime: answers ? .microseconds(response ?? roundTrip + 40) : nil,
            certificateEnd: certificateDays.map { now / 1_000 + $0 * 86_400 + 7_200 }, addresses: addresses,
            isFlapping: isFlapping, isInitial: false,
            moment: moment())
    }

    /// A board with a history of each target. - Parameter shape: the state at an hour before now, and the part of the hour.
    static func target(
        _ key: String, title: String? = nil, group: String? = nil, _ update: ServerUpdate,
        shape: (Int64) -> (RecordedState, Double)? = { _ in nil }
    ) -> BoardTarget {
        var target = BoardTarget(key: key, id: key, title: title ?? key, group: group, update: update)
        for span in BarSpan.allCases {
            let bar = cells[span].map { cell in
                var times = StateTimes()
                let length = cell.upperBound - cell.lowerBound
                times[.up] = length
                if let (state, part) = shape((now - cell.upperBound) / hour) {
                    times[state] = Int64(Double(length) * part)
                    times[.up] = length - times[state]
                }
                return BarCell(times)
            }
            target.bars[span] = Bar(bar)
        }
        return target
    }

    /// The cells of all bars: hours, quarters of days, days, the last one until now.
    static let cells: SpanValues<[Range<Int64>]> = {
        var cells = SpanValues<[Range<Int64>]>(repeating: [])
        for (span, length) in [(BarSpan.day, hour), (.week, 6 * hour), (.quarter, 24 * hour)] {
            // Days begin at 23:00 UTC in winter.
            let end = now - (now + hour) % length
            cells[span] = (0..<span.cells).map { index in
                let start = end - Int64(span.cells - 1 - index) * length
                return start..<(index == span.cells - 1 ? now : start + length)
            }
        }
        return cells
    }()

    static func board(_ targets: [BoardTarget] = [], path: NetworkPath? = satisfied, groups: [Configuration.TargetGroup] = [])
        -> Board
    {
        Board(
            moment: moment(), instance: "edge-07", timeZone: "Europe/Berlin", timeZoneOffset: 3_600,
            started: moment(now - 52 * hour),
            sequence: 41, path: path.map { PageSamples.path($0) }, groups: groups, targets: targets, canary: nil, incidents: [],
            recording: RecordingStatus(reason: nil, since: now - 52 * hour), cells: cells, reloadProblem: nil)
    }

    static func incident(
        _ id: String, _ scope: Incident.Scope, _ subject: Incident.Subject, _ cause: Cause, _ targets: [String],
        count: Int? = nil, kind: Incident.Kind = .fault, end: Incident.State = .over, into: String? = nil,
        from: Int64, to: Int64? = nil, isRecorded: Bool = true
    ) -> BoardIncident {
        BoardIncident(
            incident: Incident(
                id: id, kind: kind, state: to == nil ? .open : end, into: into, scope: scope, subject: subject, cause: cause,
                targetCount: count ?? targets.count, targets: targets.map(endpoint), began: moment(from),
                ended: to.map { moment($0) },
                moment: moment(to ?? from)), isRecorded: isRecorded)
    }

    /// A board as a small site has it: several groups, one of each state, one shared fault that is over.
    static let site: Board = {
        func calm(_ age: Int64) -> (RecordedState, Double)? { nil }
        let night: (Int64) -> (RecordedState, Double)? = { 9...11 ~= $0 ? (.unreachable, 0.6) : nil }
        var targets = [
            target(
                "db-main", title: "Main database", group: "Data center",
                update("db.example:5432", .down, refused, since: now - 742_000),
                shape: { $0 == 0 ? (.down, 0.2) : $0 == 30 ? (.down, 0.5) : night($0) }),
            target(
                "shop", title: "Shop", group: "Web",
                update("https://shop.example/health", .down, expired, since: now - 43_387_000, certificateDays: -1),
                shape: { $0 <= 12 ? (.down, 1) : nil }),
            target(
                "line-2", title: "Line 2 controller", group: "Plant",
                update("192.0.2.40:502", .unreachable, gatewaySilent, since: now - 95_000),
                shape: { $0 == 0 ? (.unreachable, 0.05) : night($0) }),
            target(
                "api", title: "Public API", group: "Web",
                update(
                    "https://api.example/v1/ping", .degraded, latency, since: now - 3_900_000, roundTrip: 412_000,
                    response: 1_930_000, certificateDays: 71, isFlapping: true),
                shape: { $0 < 2 ? (.degraded, 0.8) : 5...7 ~= $0 ? (.degraded, 0.3) : night($0) }),
            target(
                "site", title: "Web site", group: "Web",
                update("https://www.example/", roundTrip: 23_100, response: 61_200, certificateDays: 64),
                shape: night),
            target(
                "mail", title: "Mail", group: "Web",
                update("tls://mail.example:465", roundTrip: 31_800, response: 74_000, certificateDays: 19),
                shape: night),
            target("line-1", title: "Line 1 controller", group: "Plant", update("192.0.2.41:502", roundTrip: 310), shape: calm),
            target("line-3", title: "Line 3 controller", group: "Plant", update("192.0.2.42:502", roundTrip: 290), shape: calm),
            target(
                "camera", title: "Gate camera", group: "Plant", update("http://192.0.2.60/", roundTrip: 1_840, response: 9_300),
                shape: { 1_100...1_400 ~= $0 || 14...15 ~= $0 ? (.notRecorded, 1) : nil }),
            target(
                "backup", title: "Backup", group: "Data center", update("192.0.2.90:22", roundTrip: 780),
                shape: { 3...4 ~= $0 ? (.maintenance, 1) : night($0) }),
            target(
                "new", title: "New sensor", update("192.0.2.77:80", .unknown),
                shape: { $0 == 0 ? (.unknown, 0.1) : (.notRecorded, 1) }),
            target(
                "printer", title: "Label printer", update("192.0.2.55:9100", roundTrip: 2_200),
                shape: { $0 > 18 ? (.unknown, 1) : nil }),
        ]
        targets[9].isInMaintenance = true
        for index in 1...24 {
            targets.append(
                target(
                    "till-\(index)", title: "Till \(index)", group: "Tills",
                    update("192.0.2.\(100 + index):443", roundTrip: Int64(400 + index * 13))))
        }
        var board = Self.board(
            targets,
            groups: [.init(name: "Web"), .init(name: "Data center"), .init(name: "Plant"), .init(name: "Tills", isFolded: true)])
        board.canary = update("http://canary.example/generate_204", roundTrip: 18_000)
        board.incidents = [
            incident(
                "i4", .path, .init(.gateway, "192.0.2.1"), gatewaySilent, ["192.0.2.40:502"], from: now - 95_000,
                isRecorded: false),
            incident("i3", .server, .init(.target, "db.example:5432"), refused, ["db.example:5432"], from: now - 742_000),
            incident(
                "i2", .server, .init(.target, "https://shop.example/health"), expired, ["https://shop.example/health"],
                from: now - 43_387_000),
            incident(
                "i1", .local, .init(.interface, "eth0"), noCarrier,
                ["db.example:5432", "https://www.example/", "tls://mail.example:465", "https://api.example/v1/ping"], count: 31,
                from: now - 11 * hour, to: now - 9 * hour - 700_000),
            incident(
                "i0", .server, .init(.target, "db.example:5432"), refused, ["db.example:5432"], from: now - 31 * hour,
                to: now - 30 * hour),
        ]
        return board
    }()

    static let expiring = Cause(
        .tls, .certificateExpiring, detail: "the certificate of www.example expires in 9 days",
        evidence: ["days_left": .number(9), "subject": .text("CN=www.example")])

    /// The board of ``site``, whose web site has a certificate that expires soon.
    static let expiringSite: Board = {
        var board = site
        for place in board.targets.indices where board.targets[place].key == "site" {
            board.targets[place].update = update("https://www.example/", .degraded, expiring)
        }
        return board
    }()

    /// A board whose targets are up, while the canary fails. Each state has cells with times without a result.
    static let failingCanary: Board = {
        let states: [RecordedState] = [.up, .degraded, .down, .unreachable, .maintenance]
        var board = Self.board(
            states.map { state in
                target(state.name, title: "Once \(state.name)", update("192.0.2.9:80")) { age in
                    age / 24 % 3 == 1 || age < 24 && age % 4 == 1 ? (state, 1) : nil
                }
            })
        for place in board.targets.indices {
            for span in BarSpan.allCases {
                let cells = board.targets[place].bars[span].cells.enumerated().map { index, cell -> BarCell in
                    var times = cell.times
                    let missing = times.total * Int64(index % 10) / 10
                    for state in RecordedState.allCases { times[state] = times[state] * Int64(10 - index % 10) / 10 }
                    times[.notRecorded] += missing
                    return BarCell(times)
                }
                board.targets[place].bars[span] = Bar(cells)
            }
        }
        board.canary = update("http://canary.example/204", .down, refused)
        return board
    }()

    /// A board with this many targets. One in a hundred has a problem, and one in twenty a history of them.
    static func large(_ count: Int, seed: UInt64 = 3) -> Board {
        var random = SplitMix64(seed: seed)
        let targets = (0..<count).map { index -> BoardTarget in
            let kind = random.next() % 1_000
            let text = "shop-\(index).branches.example:443"
            let update =
                kind < 4
                ? update(text, .down, refused, since: now - 300_000)
                : kind < 8
                    ? update(text, .unreachable, gatewaySilent, since: now - 95_000)
                    : kind < 12
                        ? update(text, .degraded, latency, roundTrip: 412_000)
                        : update(text, roundTrip: Int64(random.next() % 90_000))
            let bad = Set(
                (0..<(kind < 12 ? 5 : kind < 50 ? 2 : 0)).map { _ in Int64(random.next() % 2_160) % (kind < 12 ? 24 : 2_160) })
            return target(
                "shop-\(index)", title: "Shop \(index), branch office", group: "Region \(index % 12)", update,
                shape: { bad.contains($0) || (kind < 12 && $0 == 0) ? (kind % 3 == 0 ? .unreachable : .down, 0.3) : nil })
        }
        var board = Self.board(targets)
        board.incidents = targets.filter { $0.state == .down }.prefix(40).map {
            incident("i-\($0.key)", .server, .init(.target, $0.key), refused, [$0.update.endpoint.text], from: now - 300_000)
        }
        return board
    }

    /// The history of one target of ``site``.
    static func detail(_ state: RecordedState = .down, cause: Cause? = refused, span: BarSpan = .day) -> TargetDetail {
        var detail = TargetDetail()
        var random = SplitMix64(seed: 5)
        let length = span == .day ? hour / 4 : span == .week ? hour : 24 * hour
        let count = span == .day ? 96 : span == .week ? 168 : 90
        detail.roundTrips = (0..<count).map { index in
            let start = now - Int64(count - index) * length
            let base = UInt32(1_000 + random.next() % 300) + (30...38 ~= index ? 2_600 : 0)
            let lost = 38...44 ~= index ? 90 : index % 17 == 0 ? 4 : index % 29 == 0 ? 12 : 0
            let isSilent = lost == 90 || (state == .down && index == count - 1)
            return TimePoint(
                period: start..<start + length, minimum: isSilent ? nil : base - 120, median: isSilent ? nil : base,
                high: isSilent ? nil : base + UInt32(200 + random.next() % 700), probes: 90, lost: isSilent ? 90 : lost)
        }
        detail.responseTimes = detail.roundTrips.map { point in
            var times = point
            (times.minimum, times.median) = (point.minimum.map { $0 * 3 }, point.median.map { $0 * 4 })
            (times.high, times.highest) = (point.high.map { $0 * 5 }, point.high.map { $0 * 8 })
            return times
        }
        detail.outages = [
            .init(
                start: now - 742_000, end: state == .up ? now - 600_000 : nil, state: .down, cause: cause, incident: "i3",
                isRecorded: false),
            .init(start: now - 11 * hour, end: now - 9 * hour - 700_000, state: .unreachable, cause: noCarrier, incident: "i1"),
            .init(start: now - 31 * hour, end: now - 30 * hour, state: .down, cause: refused, incident: "i0"),
        ]
        detail.changes = [
            .init(time: now - 742_000, state: .down, cause: cause), .init(time: now - 9 * hour - 700_000, state: .up, cause: nil),
            .init(time: now - 11 * hour + 40, state: .unreachable, cause: noCarrier),
        ]
        detail.pathEvents = [
            .init(
                time: now - 9 * hour - 700_900, isSatisfied: true, interface: "eth0",
                reasons: ["interface-changed", "gateways-changed"], cause: nil),
            .init(
                time: now - 11 * hour, isSatisfied: false, interface: nil,
                reasons: ["interface-changed", "families-changed", "cause-changed"], cause: noCarrier),
        ]
        detail.gaps = [.init(period: now - 15 * hour..<now - 14 * hour, reason: .stopped)]
        return detail
    }

    static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
