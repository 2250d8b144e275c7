import Expectations
import Glibc
import Pacing
import Testing

@testable import Reachability

private let second: Int64 = 1_000_000_000

/// A book with targets `a0:1`, `a1:1`, …, whose publications are written as text.
struct IncidentTranscript {
    var book = IncidentBook()
    var now: Int64 = 0

    static func moment(_ time: Int64) -> Moment {
        Moment(monotonicNanoseconds: time, wallClockNanoseconds: 1_000 * second + time)
    }

    static let silentGateway = Cause(
        .neighbor, .gatewaySilent, detail: "silent", evidence: ["gateway": .text("192.0.2.1"), "interface": .text("eth0")])
    static let refused = Cause(.tcp, .refused, detail: "refused", evidence: ["address": .text("192.0.2.7")])
    static let noCarrier = Cause(.link, .noCarrier, detail: "no carrier", evidence: ["interface": .text("eth0")])
    static func hop(_ address: String) -> Cause {
        Cause(.network, .netUnreachable, detail: "no route", evidence: ["hop": .text(address), "address": .text("192.0.2.7")])
    }

    mutating func fail(_ number: Int, _ cause: Cause, _ state: ServerState? = nil) {
        let found = state ?? (cause.layer == .tcp ? .down : .unreachable)
        record(number, found, cause)
    }

    mutating func succeed(_ number: Int) { record(number, .up, nil) }

    private mutating func record(_ number: Int, _ state: ServerState, _ cause: Cause?) {
        guard let endpoint = try? Endpoint("a\(number):1") else { return }
        let moment = Self.moment(now)
        book.record(
            TargetID(number),
            ServerUpdate(
                endpoint: endpoint, state: state, cause: cause, since: moment, address: nil, interface: nil, roundTrip: nil,
                isInitial: false, moment: moment))
    }

    mutating func take() -> [Incident] { book.take(at: Self.moment(now)) }

    /// Returns what is published now: `open 1 gateway 192.0.2.1 ×3`.
    mutating func published() -> [String] {
        take().map { incident in
            let number = incident.id.split(separator: "-").last ?? ""
            return "\(incident.state.rawValue) \(number) \(incident.subject) ×\(incident.targetCount)"
        }
    }
}

@Suite struct IncidentBookTests {
    private typealias T = IncidentTranscript

    // MARK: One fault of many targets

    @Test func `1,000 targets behind a gateway that becomes silent are one incident`() {
        var t = T()
        for number in 0..<1_000 { t.fail(number, T.silentGateway) }
        expectEqual(t.book.deadline, .min)
        let incidents = t.take()
        expectEqual(incidents.count, 1)
        let incident = incidents[0]
        #expect(incident.id == "1000000-1" && incident.state == .open && incident.scope == .path)
        #expect(incident.subject == Incident.Subject(.gateway, "192.0.2.1") && incident.cause == T.silentGateway)
        #expect(incident.targetCount == 1_000 && incident.targets.map(\.text) == (0..<10).map { "a\($0):1" })
        #expect(incident.began == T.moment(0) && incident.ended == nil)
        #expect(t.book.deadline == nil && t.take().isEmpty)
    }

    @Test func `an incident is over when its last target is up, and has its largest count`() {
        var t = T()
        for number in 0..<3 { t.fail(number, T.silentGateway) }
        expectEqual(t.published(), ["open 1 gateway 192.0.2.1 ×3"])
        t.now = 5 * second
        t.succeed(0)
        t.succeed(1)
        #expect(t.published().isEmpty && t.book.deadline == nil)
        t.now = 6 * second
        t.succeed(2)
        let over = t.take()
        #expect(over.map(\.state) == [.over] && over[0].targetCount == 3 && over[0].ended == T.moment(6 * second))
        #expect(over[0].began == T.moment(0) && t.book.count == 0)
    }

    @Test func `a growing incident is published at most once a second`() {
        var t = T()
        t.fail(0, T.silentGateway)
        expectEqual(t.published(), ["open 1 gateway 192.0.2.1 ×1"])
        var published: [String] = []
        for step in 1...30 as ClosedRange<Int64> {
            t.now = step * second / 10
            t.fail(Int(step), T.silentGateway)
            expectEqual(t.book.deadline, (step % 10 == 0 ? step / 10 : step / 10 + 1) * second)
            published += t.published()
        }
        expectEqual(published, [11, 21, 31].map { "open 1 gateway 192.0.2.1 ×\($0)" })
        expectNil(t.book.deadline)
        // A second after the last publication, growth is published at once.
        t.now = 9 * second
        t.fail(50, T.silentGateway)
        #expect((t.book.deadline.map { $0 <= t.now }) == true)
        expectEqual(t.published(), ["open 1 gateway 192.0.2.1 ×32"])
    }

    @Test func `the end of an incident does not wait for a second`() {
        var t = T()
        t.fail(0, T.silentGateway)
        _ = t.take()
        t.now = 1
        t.fail(1, T.silentGateway)
        expectEqual(t.book.deadline, second)
        t.succeed(0)
        t.succeed(1)
        expectEqual(t.published(), ["over 1 gateway 192.0.2.1 ×2"])
        expectNil(t.book.deadline)
        t.now = 2 * second
        expectEmpty(t.published())
    }

    @Test func `a target that fails again with the same cause is not counted twice`() {
        var t = T()
        t.fail(0, T.silentGateway)
        t.fail(1, T.silentGateway)
        t.fail(1, T.silentGateway)
        t.succeed(1)
        t.fail(1, T.silentGateway)
        expectEqual(t.take().map(\.targetCount), [2])
        t.succeed(1)
        t.now = 3 * second
        t.fail(1, T.silentGateway)
        expectEmpty(t.take())
    }

    // MARK: What belongs together

    @Test func `another layer, code or subject is another incident`() {
        var t = T()
        t.fail(0, T.silentGateway)
        t.fail(1, Cause(.neighbor, .gatewaySilent, detail: "", evidence: ["gateway": .text("192.0.2.2")]))
        t.fail(2, T.hop("192.0.2.1"))
        t.fail(3, Cause(.network, .adminProhibited, detail: "", evidence: ["hop": .text("192.0.2.1")]))
        expectEqual(
            t.published(),
            [
                "open 1 gateway 192.0.2.1 ×1", "open 2 gateway 192.0.2.2 ×1", "open 3 hop 192.0.2.1 ×1",
                "open 4 hop 192.0.2.1 ×1",
            ])
    }

    @Test func `a gateway that stays silent has one incident, whenever its targets are probed`() {
        var t = T()
        t.fail(0, T.silentGateway)
        _ = t.take()
        t.now = 3_600 * second
        t.fail(1, T.silentGateway)
        expectEqual(t.published(), ["open 1 gateway 192.0.2.1 ×2"])
    }

    @Test func `reports of a router belong together within two seconds of the last one`() {
        var t = T()
        t.fail(0, T.hop("198.51.100.1"))
        t.now = 2 * second
        t.fail(1, T.hop("198.51.100.1"))
        t.now = 4 * second
        t.fail(2, T.hop("198.51.100.1"))
        expectEqual(t.published(), ["open 1 hop 198.51.100.1 ×3"])
        t.now = 6 * second + 1
        t.fail(3, T.hop("198.51.100.1"))
        expectEqual(t.published(), ["open 2 hop 198.51.100.1 ×1"])
        t.succeed(0)
        t.succeed(1)
        t.succeed(2)
        t.fail(4, T.hop("198.51.100.1"))
        expectEqual(t.published(), ["over 1 hop 198.51.100.1 ×3"])
        t.now = 8 * second
        expectEqual(t.published(), ["open 2 hop 198.51.100.1 ×2"])
    }

    @Test func `a refused connection is the fault of its server, one incident for each`() {
        var t = T()
        t.fail(0, T.refused)
        t.fail(1, T.refused)
        let incidents = t.take()
        expectEqual(incidents.map(\.subject), [.init(.target, "a0:1"), .init(.target, "a1:1")])
        #expect(incidents.allSatisfy { $0.scope == .server && $0.targetCount == 1 })
    }

    @Test func `an unreachable target without a component at fault has the scope path`() {
        var t = T()
        t.fail(0, Cause(.tcp, .timeout, detail: "silent"), .unreachable)
        expectEqual(t.take().map(\.scope), [.path])
        // Now the route is known to work.
        t.fail(0, Cause(.tcp, .timeout, detail: "silent"), .down)
        expectEqual(t.take().map { "\($0.state) \($0.scope)" }, ["over path", "open server"])
    }

    @Test func `a target that changes its cause leaves its incident and belongs to another one`() {
        var t = T()
        t.fail(0, T.silentGateway)
        t.fail(1, T.silentGateway)
        _ = t.take()
        t.now = second
        t.fail(0, T.noCarrier)
        t.fail(1, T.noCarrier)
        expectEqual(t.published(), ["open 2 interface eth0 ×2", "over 1 gateway 192.0.2.1 ×2"])
    }

    @Test func `a degraded target has an incident, and a removed one leaves it`() {
        var t = T()
        t.fail(0, Cause(.quality, .loss, detail: "lossy"), .degraded)
        expectEqual(t.published(), ["open 1 target a0:1 ×1"])
        t.book.remove(TargetID(0))
        t.book.remove(TargetID(7))
        expectEqual(t.published(), ["over 1 target a0:1 ×1"])
    }

    @Test func `an incident that is over before it is published is not published`() {
        var t = T()
        t.fail(0, T.silentGateway)
        t.succeed(0)
        #expect(t.take().isEmpty && t.book.count == 0 && t.book.deadline == nil)
        t.fail(0, T.refused)
        expectEqual(t.published(), ["open 2 target a0:1 ×1"])
    }

    @Test func `an incident that is over and begins again before the end is published stays open`() {
        var t = T()
        t.fail(0, T.silentGateway)
        _ = t.take()
        t.succeed(0)
        t.fail(1, T.silentGateway)
        #expect(t.take().isEmpty && t.book.count == 1)
    }

    // MARK: Subjects

    private func key(_ cause: Cause, unreachable: Bool = true) throws -> String {
        let key = IncidentKey(cause, of: try Endpoint("b:2"), isUnreachable: unreachable)
        return "\(key.scope.rawValue) \(key.subject)"
    }

    private func cause(_ layer: Cause.Layer, _ code: Cause.Code, _ evidence: [String: String] = [:]) -> Cause {
        Cause(layer, code, detail: "", evidence: evidence.mapValues { .text($0) })
    }

    @Test func `the subject is taken from the evidence`() throws {
        try expectEqual(key(cause(.link, .interfaceDown, ["interface": "eth0"])), "local interface eth0")
        try expectEqual(key(cause(.address, .noAddress, ["interface": "eth0"])), "local interface eth0")
        try expectEqual(key(cause(.route, .routeBlackhole, ["address": "192.0.2.1"])), "local interface")
        try expectEqual(key(cause(.firewall, .localDrop, ["interface": "eth0"])), "local interface eth0")
        try expectEqual(key(cause(.local, .fileLimit)), "local interface")
        try expectEqual(key(cause(.neighbor, .gatewaySilent, ["gateway": "192.0.2.1"])), "path gateway 192.0.2.1")
        let linkLocal = cause(.neighbor, .gatewaySilent, ["gateway": "fe80::1", "interface": "eth0"])
        try expectEqual(key(linkLocal), "path gateway fe80::1%eth0")
        try expectEqual(key(cause(.neighbor, .hostSilent)), "path target b:2")
        try expectEqual(key(cause(.dns, .noResolver)), "local resolver")
        try expectEqual(key(cause(.dns, .resolverSilent, ["resolver": "192.0.2.53"])), "path resolver 192.0.2.53")
        try expectEqual(key(cause(.dns, .serverFailure, ["resolver": "192.0.2.53"])), "path resolver 192.0.2.53")
        try expectEqual(key(cause(.dns, .nameNotFound), unreachable: false), "server target b:2")
        try expectEqual(key(cause(.network, .tunnelSilent, ["interface": "wg0"])), "path interface wg0")
        try expectEqual(
            key(cause(.network, .hostUnreachable, ["hop": "192.0.2.1", "address": "192.0.2.9"])), "path hop 192.0.2.1")
        let own = cause(.network, .portFiltered, ["hop": "192.0.2.9", "address": "192.0.2.9"])
        try expectEqual(key(own, unreachable: false), "server target b:2")
        try expectEqual(key(cause(.tls, .certificateExpired), unreachable: false), "server target b:2")
    }

    @Test func `every layer and code has a subject`() throws {
        let evidence = ["hop": "192.0.2.1", "interface": "eth0", "gateway": "192.0.2.2", "resolver": "192.0.2.3"]
        for layer in Cause.Layer.allCases {
            for code in Cause.Code.allCases {
                _ = try key(cause(layer, code, evidence))
                _ = try key(cause(layer, code))
            }
        }
    }

    // MARK: Random events

    @Test func `each failing target belongs to one incident, and each incident opens and ends once, for random events`() {
        let causes = [T.silentGateway, T.noCarrier, T.refused, T.hop("198.51.100.1"), T.hop("198.51.100.2")]
        for seed in 0..<40 as Range<UInt64> {
            var (t, random) = (T(), SplitMix64(seed: seed))
            var failing: [Int: Cause] = [:]
            var open: [String: Incident] = [:]
            var lastPublication: [String: Int64] = [:]
            for _ in 0..<1_500 {
                let number = Int.random(in: 0..<20, using: &random)
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<4:
                    let cause = causes[Int.random(in: 0..<causes.count, using: &random)]
                    t.fail(number, cause)
                    failing[number] = cause
                case 4..<7:
                    t.succeed(number)
                    failing[number] = nil
                case 7:
                    t.book.remove(TargetID(number))
                    failing[number] = nil
                default: t.now += Int64.random(in: 0...(second / 2), using: &random)
                }
                guard Bool.random(using: &random) else { continue }
                for incident in t.take() {
                    let known = open[incident.id]
                    switch incident.state {
                    case .open:
                        if let known {
                            #expect(incident.targetCount > known.targetCount, "seed \(seed)")
                            #expect(t.now - (lastPublication[incident.id] ?? 0) >= second, "seed \(seed)")
                        }
                        open[incident.id] = incident
                        lastPublication[incident.id] = t.now
                    case .over:
                        #expect(known != nil && incident.targetCount >= known?.targetCount ?? 0, "seed \(seed)")
                        open[incident.id] = nil
                    }
                }
                expectEqual(t.book.count, open.count, "seed \(seed)")
                #expect(t.book.deadline.map { $0 > t.now } ?? true, "seed \(seed)")
                expectEqual(
                    Set(open.values.map(\.cause.code.rawValue)), Set(failing.values.map(\.code.rawValue)), "seed \(seed)")
                let servers = Set(open.values.filter { $0.subject.kind == .target }.compactMap(\.subject.name))
                expectEqual(servers, Set(failing.filter { $0.value.layer == .tcp }.map { "a\($0.key):1" }), "seed \(seed)")
            }
            for number in 0..<20 { t.succeed(number) }
            #expect(Set(t.take().map(\.id)) == Set(open.keys) && t.book.count == 0 && t.book.deadline == nil, "seed \(seed)")
        }
    }

    @Test func `20,000 targets that fail for one cause or for their own cause need constant time each`() {
        // Other programs do not use the thread's time.
        func processorTime() -> Int64 {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
        }
        for cause in [T.silentGateway, T.refused] {
            var times: [Int64] = []
            for count in [2_000, 20_000] {
                var (t, published) = (T(), 0)
                let start = processorTime()
                for number in 0..<count {
                    t.fail(number, cause)
                    // A turn handles at most 512 targets.
                    if number % 512 == 511 { published += t.take().count }
                }
                published += t.take().count
                for number in 0..<count { t.succeed(number) }
                published += t.take().count
                times.append(processorTime() - start)
                #expect(published == (cause == T.refused ? 2 * count : 2) && t.book.count == 0)
            }
            // Ten times as many targets; quadratic work would need a hundred times as long.
            #expect(times[1] < times[0] * 40, "\(times)")
        }
    }

    // MARK: Limits of this process

    @Test func `targets that wait for a file descriptor are one incident, which ends with the shortage`() throws {
        var t = T()
        let endpoints = try (0..<3).map { try Endpoint("w\($0):1") }
        let cause = Cause(.local, .fileLimit, detail: "few files", evidence: ["waiting": .number(40)])
        t.book.beginShortage(cause, of: endpoints, waiting: (0..<40).map { TargetID($0) }, at: T.moment(0))
        let opened = t.take()
        #expect(opened.map(\.targetCount) == [40] && opened.map(\.targets) == [endpoints] && opened.map(\.scope) == [.local])
        t.book.beginShortage(cause, of: endpoints, waiting: (0..<50).map { TargetID($0) }, at: T.moment(second))
        expectEqual(t.published(), [])
        t.now = 9 * second
        t.book.endShortage()
        expectEqual(t.published(), ["over 1 interface ×40"])
        t.book.endShortage()
        #expect(t.published() == [] && t.book.count == 0)
    }
}
