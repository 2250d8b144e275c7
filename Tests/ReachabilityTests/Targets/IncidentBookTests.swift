import Expectations
import Glibc
import Pacing
import Testing

@testable import Reachability

private let second = IncidentTranscript.second

@Suite struct IncidentBookTests {
    private typealias T = IncidentTranscript

    // MARK: One fault of many targets

    @Test func `1,000 targets behind a gateway that becomes silent are one incident`() {
        var t = T()
        for number in 0..<1_000 { t.fail(number, T.silentGateway) }
        #expect(t.book.deadline.map { $0 <= t.now } == true)
        let incidents = t.take()
        expectEqual(incidents.count, 1)
        let incident = incidents[0]
        #expect(incident.id == "1000000-1" && incident.state == .open && incident.scope == .path && incident.kind == .fault)
        #expect(incident.subject == Incident.Subject(.gateway, "192.0.2.1") && incident.cause == T.silentGateway)
        #expect(incident.targetCount == 1_000 && incident.targets.map(\.text) == (0..<10).map { "a\($0):1" })
        #expect(incident.began == T.moment(0) && incident.ended == nil)
        expectEmpty(t.take())
    }

    @Test func `an incident is over when its last target is up, and has its largest count`() {
        var t = T()
        for number in 0..<3 { t.fail(number, T.silentGateway) }
        expectEqual(t.published(), ["open 1 gateway 192.0.2.1 ×3"])
        t.now = 5 * second
        t.succeed(0)
        t.succeed(1)
        expectEmpty(t.published())
        t.now = 6 * second
        t.succeed(2)
        let over = t.take()
        #expect(over.map(\.state) == [.over] && over[0].targetCount == 3 && over[0].ended == T.moment(6 * second))
        #expect(over[0].began == T.moment(0) && t.book.openCount == 0 && t.book.deadline == nil)
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
        expectEqual(published, [11, 21, 31].map { "open 1 gateway 192.0.2.1 ×\($0) from 0" })
        expectNil(t.book.deadline)
        // A second after the last publication, growth is published at once.
        t.now = 9 * second
        t.fail(50, T.silentGateway)
        expectEqual(t.published(), ["open 1 gateway 192.0.2.1 ×32 from 0"])
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
    }

    @Test func `a target that fails again is not counted twice`() {
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

    @Test func `an incident that ends before it is published is not published`() {
        var t = T()
        t.fail(0, T.silentGateway)
        t.succeed(0)
        #expect(t.take().isEmpty && t.book.memberCount == 0 && t.book.deadline == nil)
        t.fail(0, T.refused)
        expectEqual(t.published(), ["open 1 target a0:1 ×1"])
        // One that ends and begins again in one turn stays open.
        t.succeed(0)
        t.fail(0, T.refused)
        #expect(t.take().isEmpty && t.book.openCount == 1)
    }

    @Test func `targets without a component in common have an incident each`() {
        var t = T()
        t.fail(0, T.refused)
        t.fail(1, T.refused)
        t.fail(2, T.silentGateway)
        t.fail(3, T.cause(.http, .status))
        expectEqual(
            t.published(),
            ["open 1 target a0:1 ×1", "open 2 target a1:1 ×1", "open 3 gateway 192.0.2.1 ×1", "open 4 target a3:1 ×1"])
    }

    @Test func `a removed target ends its incident as removed`() {
        var t = T()
        t.fail(0, T.cause(.quality, .loss), .degraded)
        expectEqual(t.published(), ["open 1 target a0:1 ×1"])
        t.remove(0)
        t.remove(7)
        expectEqual(t.published(), ["removed 1 target a0:1 ×1"])
        #expect(t.book.openCount == 0 && t.book.memberCount == 0)
    }

    // MARK: One incident for one subject

    @Test func `another cause of the same subject is published in its incident, at most once a second`() {
        var t = T()
        t.fail(0, T.refused)
        expectEqual(t.take().map(\.cause.code), [.refused])
        t.now = second / 2
        t.fail(0, T.cause(.http, .status))
        expectEmpty(t.take())
        t.now = second
        let changed = t.take()
        #expect(changed.map(\.cause.code) == [.status] && changed.map(\.id) == ["1000000-1"] && changed[0].targetCount == 1)
        t.succeed(0)
        expectEqual(t.take().map(\.cause.code), [.status])
    }

    @Test func `the cause of an incident is that of most of its targets`() {
        var t = T()
        for number in 0..<3 { t.fail(number, T.hop("192.0.2.1")) }
        expectEqual(t.take().map(\.cause.code), [.netUnreachable])
        // A tie does not change it.
        for number in 3..<6 { t.fail(number, T.hop("192.0.2.1", .adminProhibited)) }
        t.now = second
        #expect(t.take().map { "\($0.cause.code) ×\($0.targetCount)" } == ["net-unreachable ×6"])
        t.succeed(0)
        t.now = 2 * second
        expectEqual(t.take().map(\.cause.code), [.adminProhibited])
        expectNil(t.book.deadline)
    }

    @Test func `an incident ends with the cause that most of its targets had, whichever recovers last`() {
        var t = T()
        t.fail(0, T.unresolved("one.example"))
        for number in 1..<10 { t.fail(number, T.silentGateway) }
        t.fail(10, T.hop("192.0.2.1"))
        t.fail(0, T.cause(.dns, .resolverSilent, ["gateway": "192.0.2.1", "name": "one.example"]))
        expectEqual(t.take().map(\.cause.code), [.gatewaySilent, .netUnreachable])
        for number in (0..<10).reversed() { t.succeed(number) }
        expectEqual(t.take().map { "\($0.state) \($0.cause.code) ×\($0.targetCount)" }, ["over gateway-silent ×10"])
    }

    @Test func `names that are not resolved do not name the cause of a gateway's incident, however many they are`() {
        var t = T()
        let unresolved = T.cause(.dns, .resolverSilent, ["gateway": "192.0.2.1", "name": "one.example"])
        for number in 0..<4 { t.fail(number, unresolved) }
        t.fail(4, T.severalNetworks)
        expectEqual(
            t.take().map { "\($0.subject) \($0.cause.code) ×\($0.targetCount)" }, ["gateway 192.0.2.1 upstream-silent ×5"])
        // Alone, each has an incident of its own.
        t.succeed(4)
        t.now = 2 * second
        for number in 0..<4 { try? t.probe(number) }
        let own = Array(repeating: "open resolver-silent", count: 4)
        expectEqual(t.take().map { "\($0.state) \($0.cause.code)" }.sorted(), own + ["over upstream-silent"])
    }

    @Test func `the last targets of an incident give it another cause if theirs changes`() {
        var t = T()
        for number in 0..<5 { t.fail(number, T.hop("192.0.2.1")) }
        expectEqual(t.take().map(\.cause.code), [.netUnreachable])
        for number in 0..<4 { t.succeed(number) }
        t.now = 2 * second
        t.fail(4, T.hop("192.0.2.1", .adminProhibited))
        expectEqual(t.take().map(\.cause.code), [.adminProhibited])
    }

    @Test func `a target that is unreachable and then down stays one incident, whose scope changes`() {
        var t = T()
        t.fail(0, T.silent, .unreachable)
        expectEqual(t.take().map(\.scope), [.path])
        t.now = second
        t.fail(0, T.silent, .down)
        expectEqual(t.take().map { "\($0.id) \($0.state) \($0.scope)" }, ["1000000-1 open server"])
    }

    @Test func `two silent targets of a host are its incident, and the first one's incident is merged`() {
        var t = T()
        t.fail(0, T.silent, at: "198.51.100.7")
        t.fail(1, T.silent, at: "198.51.100.8")
        expectEqual(t.published(), ["open 1 target a0:1 ×1", "open 2 target a1:1 ×1"])
        t.now = second
        t.fail(2, T.cause(.neighbor, .hostSilent), at: "198.51.100.7")
        expectEqual(t.published(), ["open 3 host 198.51.100.7 ×2 from 0", "merged 1 target a0:1 ×1 into 3"])
        t.now = 2 * second
        t.succeed(0)
        t.succeed(2)
        expectEqual(t.published(), ["over 3 host 198.51.100.7 ×2"])
    }

    @Test(arguments: ["up", "refused", "status"]) func `a host of which one port answers is not at fault`(answer: String) throws {
        var t = T()
        for number in 0..<2 { t.fail(number, T.silent, at: "198.51.100.7") }
        expectEqual(t.published(), ["open 1 host 198.51.100.7 ×2"])
        t.now = second
        switch answer {
        case "up": t.succeed(2, at: "198.51.100.7")
        case "refused": t.fail(2, T.refused, at: "198.51.100.7")
        default: t.fail(2, T.cause(.http, .status), at: "198.51.100.7")
        }
        for number in 0..<2 { try t.probe(number) }
        let split = [
            "over 1 host 198.51.100.7 ×2", "open 2 target a0:1 ×1 from 0", "open 3 target a1:1 ×1 from 0",
        ]
        expectEqual(t.published().filter { !$0.contains("a2") }.sorted(), split.sorted())
        // It is at fault again when that port does not answer either.
        t.now = 2 * second
        t.fail(2, T.silent, at: "198.51.100.7")
        #expect(t.published().contains { $0.contains("host 198.51.100.7 ×3 from 0") })
    }

    @Test func `a target that is up since before its host became silent does not refute it until it answers again`() throws {
        var t = T()
        t.succeed(2, at: "198.51.100.7")
        t.now = 10 * second
        for number in 0..<2 { t.fail(number, T.silent, at: "198.51.100.7") }
        expectEqual(t.published(), ["open 1 host 198.51.100.7 ×2"])
        t.now = 300 * second
        try t.probe(2, fails: false)
        for number in 0..<2 { try t.probe(number) }
        expectEqual(
            t.published().sorted(),
            ["open 2 target a0:1 ×1 from 10", "open 3 target a1:1 ×1 from 10", "over 1 host 198.51.100.7 ×2"])
        // A third port that is silent since then is not enough: the host has answered since the others are.
        t.now = 310 * second
        t.fail(3, T.silent, at: "198.51.100.7")
        expectEqual(t.published(), ["open 4 target a3:1 ×1"])
        t.now = 311 * second
        t.fail(4, T.silent, at: "198.51.100.7")
        #expect(t.published().contains("open 5 host 198.51.100.7 ×4 from 10"))
    }

    @Test func `a refused connection of a later probe is an answer too, and other silence of that probe is none`() throws {
        var t = T()
        t.fail(2, T.refused, at: "198.51.100.7")
        t.now = 10 * second
        for number in 0..<2 { t.fail(number, T.silent, at: "198.51.100.7") }
        #expect(t.published().contains("open 2 host 198.51.100.7 ×2"))
        t.now = 20 * second
        try t.probe(2)
        expectEmpty(t.published())
        try t.probe(2, T.refused)
        expectEqual(t.published(), ["over 2 host 198.51.100.7 ×2"])
    }

    @Test func `silence after the connection, and of one target alone, is not the host's`() {
        var t = T()
        t.fail(0, T.cause(.tls, .handshakeStalled), at: "198.51.100.7")
        t.fail(1, T.cause(.http, .timeout), at: "198.51.100.7")
        t.fail(2, T.silent, at: "198.51.100.7")
        expectEqual(t.take().map(\.subject.kind), [.target, .target, .target])
    }

    @Test func `a router that cannot reach one host of two ports leads to the host, and of two hosts to the router`() {
        func unreachable(_ address: String) -> Cause {
            T.cause(.network, .hostUnreachable, ["hop": "203.0.113.1", "address": address])
        }
        var t = T()
        t.fail(0, unreachable("198.51.100.7"), at: "198.51.100.7")
        expectEqual(t.published(), ["open 1 hop 203.0.113.1 ×1"])
        t.fail(1, unreachable("198.51.100.7"), at: "198.51.100.7")
        expectEqual(t.published(), ["open 2 host 198.51.100.7 ×2", "merged 1 hop 203.0.113.1 ×1 into 2"])
        t.now = second
        t.fail(2, unreachable("198.51.100.8"), at: "198.51.100.8")
        expectEqual(t.published(), ["open 3 hop 203.0.113.1 ×3 from 0", "merged 2 host 198.51.100.7 ×2 into 3"])
    }

    // MARK: Resolvers

    @Test func `a resolver is at fault if names of two domains fail, and one name alone is its target's fault`() {
        var t = T()
        t.fail(0, T.unresolved("www.one.example"))
        t.fail(1, T.unresolved("mail.one.example"))
        expectEqual(t.published(), ["open 1 target a0:1 ×1", "open 2 target a1:1 ×1"])
        t.now = second
        t.fail(2, T.unresolved("two.other", .resolverRefused))
        expectEqual(
            t.published(),
            [
                "open 3 resolver 192.0.2.53 ×3 from 0", "merged 1 target a0:1 ×1 into 3", "merged 2 target a1:1 ×1 into 3",
            ])
    }

    @Test func `a resolver that resolves another name is not at fault`() throws {
        var t = T()
        t.fail(0, T.unresolved("one.example", .serverFailure))
        t.now = second
        try t.resolve()
        t.now = 2 * second
        t.fail(1, T.unresolved("two.other", .serverFailure))
        expectEqual(t.take().map(\.subject.kind), [.target, .target])
        // Its answer to a third name fails: two domains without a success.
        t.fail(2, T.unresolved("three.test", .serverFailure))
        #expect(t.published().contains("open 3 resolver 192.0.2.53 ×3 from 0"))
        t.now = 3 * second
        try t.resolve("192.0.2.54")
        expectEmpty(t.published())
        try t.resolve()
        for number in 0..<3 { try t.probe(number) }
        let split = t.published()
        #expect(split.contains("over 3 resolver 192.0.2.53 ×3") && split.count { $0.contains("open") } == 3, "\(split)")
    }

    @Test func `a silent resolver joins the incident of the gateway that leads to it`() {
        func unresolved(_ name: String) -> Cause {
            T.cause(.dns, .resolverSilent, ["resolver": "198.51.100.53", "gateway": "192.0.2.1", "name": name])
        }
        var t = T()
        t.fail(0, unresolved("one.example"))
        t.fail(1, unresolved("two.other"))
        expectEqual(t.published(), ["open 1 resolver 198.51.100.53 ×2"])
        t.now = second
        t.fail(2, T.severalNetworks)
        expectEqual(
            t.published(), ["open 2 gateway 192.0.2.1 ×3 from 0", "merged 1 resolver 198.51.100.53 ×2 into 2"])
    }

    @Test func `a gateway that forwards names, and no packets either, is one incident`() {
        var t = T()
        t.fail(0, T.cause(.dns, .serverFailure, ["resolver": "192.0.2.1", "name": "one.example"]))
        t.fail(1, T.severalNetworks)
        expectEqual(t.published(), ["open 1 gateway 192.0.2.1 ×2"])
    }

    // MARK: Merging

    @Test(arguments: [0, 20]) func `50 targets that are silent one by one and then behind a silent gateway are one incident`(
        openAfter: Int64
    ) {
        var t = T(timing: .init(openAfter: openAfter * second))
        var texts: [String] = []
        for number in 0..<50 {
            let cause = [T.oneNetwork, T.cause(.tcp, .timeout, ["gateway": "192.0.2.1"]), T.cause(.neighbor, .hostSilent)][
                number % 3]
            t.fail(number, cause, .unreachable, at: "198.51.100.\(number)")
            texts += t.advance(by: 0)
            t.now += second / 10
        }
        for number in stride(from: 49, through: 0, by: -1) {
            t.fail(number, number % 2 == 0 ? T.severalNetworks : T.silentGateway, at: "198.51.100.\(number)")
            t.now += second / 10
            texts += t.advance(by: 0)
        }
        texts += t.advance(by: 60)
        #expect(t.book.openCount == 1 && t.book.memberCount == 50)
        let gateway = texts.filter { $0.hasPrefix("open") && $0.contains("gateway") }
        #expect(gateway.last?.contains("gateway 192.0.2.1 ×50 from 0") == true, "\(texts)")
        let openings = texts.count { $0.hasPrefix("open") && $0.contains("target") }
        let merged = texts.count { $0.hasPrefix("merged") && $0.contains("target") }
        #expect(openings == merged && openings == (openAfter == 0 ? 50 : 0), "\(texts)")
        for number in 0..<50 { t.succeed(number) }
        expectEqual(t.advance(by: 0).count, 1)
    }

    @Test func `a target that still fails after the nearer incident opens its own, from its own first failure`() throws {
        var t = T(timing: .init(openAfter: 20 * second))
        t.now = 5 * second
        for number in 0..<3 { t.fail(number, T.oneNetwork) }
        t.now = 10 * second
        t.fail(3, T.silentGateway)
        expectEqual(t.advance(by: 20), ["open 1 gateway 192.0.2.1 ×4 from 5"])
        // The other targets recover with their next probes.
        t.succeed(3)
        expectEqual(t.advance(by: 10), ["over 1 gateway 192.0.2.1 ×4"])
        t.succeed(1)
        t.succeed(2)
        try t.probe(0, after: .seconds(3))
        expectEqual(t.advance(by: 10), ["open 2 target a0:1 ×1 from 5"])
    }

    @Test func `a target that fails for another cause stays apart from the gateway's incident`() {
        var t = T()
        t.fail(0, T.cause(.http, .status), at: "198.51.100.7")
        t.fail(1, T.silent, at: "198.51.100.8")
        t.fail(2, T.silentGateway)
        t.fail(3, T.silentGateway)
        expectEqual(
            t.published(), ["open 1 target a0:1 ×1", "open 2 target a1:1 ×1", "open 3 gateway 192.0.2.1 ×2"])
    }

    @Test func `a nearer incident opens at once if it continues a published one`() throws {
        var t = T(timing: .init(openAfter: 20 * second))
        t.fail(0, T.silent, at: "198.51.100.7")
        expectEqual(t.advance(by: 20), ["open 1 target a0:1 ×1 from 0"])
        t.fail(0, T.noCarrier)
        // A fault of this machine does not begin with that of the server.
        expectEqual(t.published(), ["open 2 interface eth0 ×1", "merged 1 target a0:1 ×1 into 2"])
        // A component farther away is another fault, which must last.
        t.fail(0, T.silentGateway)
        expectEqual(t.published(), ["over 2 interface eth0 ×1"])
        try t.probe(0)
        expectEqual(t.advance(by: 20), ["open 3 gateway 192.0.2.1 ×1 from 20"])
    }

    // MARK: Opening and closing

    @Test func `an incident opens when a failure has lasted openAfter, from its beginning`() {
        var t = T(timing: .init(openAfter: 20 * second))
        t.now = 3 * second
        t.fail(0, T.refused)
        expectEqual(t.book.deadline, 23 * second)
        expectEmpty(t.advance(by: 19))
        expectEqual(t.advance(by: 1), ["open 1 target a0:1 ×1 from 3"])
        // A shorter failure is no incident.
        t.fail(1, T.refused)
        expectEmpty(t.advance(by: 19))
        t.succeed(1)
        #expect(t.advance(by: 60).isEmpty && t.book.deadline == nil)
    }

    @Test func `a fault of this machine, and of an interface, opens at once`() {
        var t = T(timing: .init(openAfter: 20 * second))
        for cause in [
            T.noCarrier, T.cause(.address, .noAddress), T.cause(.route, .noRoute), T.cause(.firewall, .localDrop),
            T.cause(.local, .cannotRead), T.cause(.dns, .noResolver), T.cause(.network, .tunnelSilent, ["interface": "wg0"]),
        ] {
            t.fail(0, cause)
            expectEqual(t.take().map(\.state), [.open], "\(cause)")
            t.succeed(0)
            expectEqual(t.take().map(\.state), [.over], "\(cause)")
        }
        t.fail(0, T.cause(.address, .duplicateAddress, ["link_address": "02:00:00:00:00:01"]))
        #expect(t.take().isEmpty && t.book.deadline == 20 * second)
    }

    @Test func `a further failure within closeAfter continues the incident, whose end is published later`() {
        var t = T(timing: .init(openAfter: 2 * second, closeAfter: 30 * second))
        t.fail(0, T.refused)
        expectEqual(t.advance(by: 10), ["open 1 target a0:1 ×1 from 0"])
        t.succeed(0)
        expectEmpty(t.advance(by: 29))
        t.fail(0, T.cause(.http, .status))
        // The same incident, with another cause.
        expectEqual(t.advance(by: 1), ["open 1 target a0:1 ×1 from 0"])
        t.succeed(0)
        expectEmpty(t.advance(by: 29))
        expectEqual(t.book.openCount, 1)
        t.now += second
        expectEqual(t.published(), ["over 1 target a0:1 ×1 to 40"])
        #expect(t.book.deadline == nil && t.book.openCount == 0)
        t.fail(0, T.refused)
        expectEqual(t.advance(by: 2), ["open 2 target a0:1 ×1 from 70"])
        // Nobody would see the end of a target that is no longer monitored.
        t.remove(0)
        expectEqual(t.published(), ["removed 2 target a0:1 ×1"])
    }

    // MARK: Flapping

    @Test func `a flapping target is one incident, whatever its status does`() {
        var t = T(timing: .init(openAfter: 20 * second))
        t.fail(0, T.refused)
        expectEqual(t.advance(by: 20), ["open 1 target a0:1 ×1 from 0"])
        t.fail(0, T.refused, flapping: true)
        expectEqual(t.published(), ["open 2 flapping target a0:1 ×1 from 0", "merged 1 target a0:1 ×1 into 2"])
        for _ in 0..<10 {
            t.succeed(0, flapping: true)
            expectEmpty(t.advance(by: 5))
            t.fail(0, T.refused, flapping: true)
            expectEmpty(t.advance(by: 5))
        }
        t.fail(0, T.refused)
        expectEqual(t.published(), ["over 2 flapping target a0:1 ×1"])
        expectEqual(t.advance(by: 20), ["open 3 target a0:1 ×1 from 120"])
    }

    @Test func `a target whose probes flap without a change of its status has an incident`() {
        var t = T()
        t.succeed(0, flapping: true)
        let opened = t.take()
        #expect(opened.map(\.kind) == [.flapping] && opened[0].cause.name == "quality/loss")
        t.succeed(0)
        expectEqual(t.published(), ["over 1 flapping target a0:1 ×1"])
    }

    @Test func `targets that begin to flap when their gateway recovers are its incident, and those of other faults their own`() {
        var t = T()
        for number in 0..<5 { t.miss(number, T.severalNetworks) }
        t.miss(5, T.refused)
        for number in 0..<6 { t.succeed(number, flapping: true) }
        expectEqual(t.published(), ["open 1 flapping gateway 192.0.2.1 ×5", "open 2 flapping target a5:1 ×1"])
        for number in 0..<5 { t.fail(number, T.severalNetworks, flapping: true) }
        for number in 0..<5 { t.succeed(number, flapping: true) }
        expectEmpty(t.advance(by: 5))
        for number in 0..<6 { t.succeed(number) }
        expectEqual(t.published(), ["over 1 flapping gateway 192.0.2.1 ×5", "over 2 flapping target a5:1 ×1"])
    }

    @Test func `targets behind a flapping gateway are one flapping incident of the gateway`() {
        var t = T()
        for number in 0..<20 { t.succeed(number, flapping: true) }
        expectEqual(t.published().count, 20)
        for number in 0..<20 { t.fail(number, T.silentGateway, flapping: true) }
        let merged = t.published()
        #expect(merged.first == "open 21 flapping gateway 192.0.2.1 ×20" && merged.count == 21, "\(merged)")
        for number in 0..<20 { t.succeed(number, flapping: true) }
        for number in 0..<20 { t.fail(number, T.silent, flapping: true) }
        #expect(t.advance(by: 5).isEmpty && t.book.openCount == 1)
        for number in 0..<20 { t.succeed(number) }
        expectEqual(t.published(), ["over 21 flapping gateway 192.0.2.1 ×20"])
    }

    // MARK: Limits of this process

    @Test func `targets that wait for a file descriptor are one incident, which ends with the shortage`() throws {
        var t = T(timing: .init(openAfter: 20 * second))
        let endpoints = try (0..<3).map { try Endpoint("w\($0):1") }
        let cause = Cause(.local, .fileLimit, detail: "few files", evidence: ["waiting": .number(40)])
        t.book.beginShortage(cause, of: endpoints, waiting: (0..<40).map { TargetID($0) }, at: T.moment(0))
        let opened = t.take()
        #expect(opened.map(\.targetCount) == [40] && opened.map(\.targets) == [endpoints] && opened.map(\.scope) == [.local])
        t.book.beginShortage(cause, of: endpoints, waiting: (0..<50).map { TargetID($0) }, at: T.moment(second))
        expectEqual(t.published(), [])
        t.now = 9 * second
        t.book.endShortage(at: T.moment(t.now))
        expectEqual(t.published(), ["over 1 interface ×40"])
        t.book.endShortage(at: T.moment(t.now))
        #expect(t.published() == [] && t.book.openCount == 0)
    }
}
