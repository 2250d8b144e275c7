import Expectations
import Testing

@testable import Reachability

private let second = IncidentTranscript.second

/// What ends an incident, and what does not.
@Suite struct IncidentLifeTests {
    private typealias T = IncidentTranscript

    private let host = "198.51.100.7"

    private func open(_ id: String, _ subject: Incident.Subject, _ cause: Cause, targets: Range<Int>) throws -> OpenIncident {
        let began = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 900 * second)
        return OpenIncident(
            Incident(
                id: id, state: .open, scope: .server, subject: subject, cause: cause, targetCount: targets.count,
                targets: try targets.map { try Endpoint("a\($0):1") }, began: began, ended: nil, moment: began),
            targets: Array(targets))
    }

    // MARK: Reloads

    @Test func `a host of which all targets but one are removed stays at fault until something refutes it`() throws {
        var t = T(timing: .init(openAfter: 20 * second))
        for number in 0..<3 { t.fail(number, T.silent, at: host) }
        expectEqual(t.advance(by: 20), ["open 1 host 198.51.100.7 ×3 from 0"])
        t.remove(1)
        t.remove(2)
        #expect(t.advance(by: 60).isEmpty && t.book.openCount == 1)
        // A further target of the host joins it.
        t.fail(3, T.silent, at: host)
        #expect(t.advance(by: 30).isEmpty && t.book.openCount == 1)
        t.succeed(3, at: host)
        expectEqual(t.advance(by: 1), ["over 1 host 198.51.100.7 ×3"])
        // The remaining one has an incident of its own if it still fails.
        try t.probe(0)
        expectEqual(t.advance(by: 20), ["open 2 target a0:1 ×1 from 0"])
    }

    @Test func `a host stays at fault after a removal if another target is up by a probe from before`() throws {
        var t = T()
        t.succeed(3, at: host)
        t.now = second
        for number in 0..<2 { t.fail(number, T.silent, at: host) }
        expectEqual(t.published(), ["open 1 host 198.51.100.7 ×2"])
        t.remove(1)
        expectEmpty(t.advance(by: 60))
        try t.probe(3, fails: false)
        expectEqual(t.published(), ["over 1 host 198.51.100.7 ×2"])
    }

    @Test func `a gateway stays at fault if the target that proves it is removed`() {
        var t = T()
        t.fail(0, T.silentGateway)
        t.fail(1, T.oneNetwork, at: host)
        t.fail(2, T.oneNetwork, at: "198.51.100.8")
        expectEqual(t.published(), ["open 1 gateway 192.0.2.1 ×3"])
        t.remove(0)
        expectEmpty(t.advance(by: 60))
        // A target that is up refutes it, and the other has its own next result.
        t.succeed(1)
        expectEqual(t.advance(by: 0), ["over 1 gateway 192.0.2.1 ×3"])
        t.succeed(2)
        expectEmpty(t.advance(by: 60))
    }

    @Test func `a resolver stays at fault if the targets of the other domain are removed, until it resolves a name`() throws {
        var t = T()
        t.fail(0, T.unresolved("one.example"))
        t.fail(1, T.unresolved("two.other"))
        expectEqual(t.published(), ["open 1 resolver 192.0.2.53 ×2"])
        t.remove(1)
        expectEmpty(t.advance(by: 60))
        try t.resolve()
        expectEqual(t.published(), ["over 1 resolver 192.0.2.53 ×2"])
    }

    @Test func `a target with another text continues its incident, which has the new text`() {
        var t = T(timing: .init(openAfter: 20 * second))
        t.fail(0, T.refused)
        expectEqual(t.advance(by: 20), ["open 1 target a0:1 ×1 from 0"])
        t.book.replace(TargetID(0), by: TargetID(5))
        t.remove(0)
        t.texts[5] = "db2.example:5432"
        t.fail(5, T.refused, .unknown)
        expectEmpty(t.advance(by: 5))
        t.fail(5, T.cause(.http, .status))
        expectEqual(t.advance(by: 5), ["open 1 target db2.example:5432 ×1 from 0"])
        t.succeed(5)
        expectEqual(t.advance(by: 60), ["over 1 target db2.example:5432 ×1"])
    }

    @Test func `a host stays at fault if one of its two targets moves to another host`() {
        var t = T()
        for number in 0..<2 { t.fail(number, T.silent, at: host) }
        expectEqual(t.published(), ["open 1 host 198.51.100.7 ×2"])
        t.book.replace(TargetID(1), by: TargetID(5))
        t.remove(1)
        t.now = 5 * second
        t.succeed(5, at: "198.51.100.99")
        expectEmpty(t.advance(by: 60))
        t.succeed(0, at: host)
        expectEqual(t.published(), ["over 1 host 198.51.100.7 ×2"])
    }

    // MARK: Restarts

    @Test(arguments: [0, 20]) func `targets of a host that recovers after a restart have no incident of their own`(
        openAfter: Int64
    ) throws {
        var t = T(timing: .init(openAfter: openAfter * second))
        t.book.restore([try open("old-7", .init(.host, host), T.silent, targets: 0..<3)], at: T.moment(0))
        // Its targets fail one by one.
        for number in 0..<3 {
            t.fail(number, T.silent, at: host)
            expectEmpty(t.advance(by: 1))
        }
        t.now = 40 * second
        for number in 0..<3 {
            t.succeed(number, at: host)
            expectEqual(t.advance(by: 1), number == 0 ? ["over 7 host 198.51.100.7 ×3"] : [])
        }
        expectEmpty(t.advance(by: 60))
    }

    @Test func `a target that still fails after a restart and the host's recovery has the time of its earlier failure`() throws {
        var t = T()
        t.book.restore([try open("old-7", .init(.host, host), T.silent, targets: 0..<2)], at: T.moment(0))
        for number in 0..<2 { t.fail(number, T.silent, at: host) }
        t.now = 30 * second
        t.succeed(1, at: host)
        t.now = 40 * second
        try t.probe(0)
        expectEqual(t.published(), ["over 7 host 198.51.100.7 ×2 to 30", "open 1 target a0:1 ×1 from -100"])
    }

    @Test func `a target that fails for another reason after a restart begins then`() throws {
        var t = T()
        t.book.restore([try open("old-7", .init(.gateway, "192.0.2.1"), T.silentGateway, targets: 0..<1)], at: T.moment(0))
        t.now = 3 * second
        t.fail(0, T.refused, at: host)
        try t.probe(0)
        expectEqual(t.published(), ["over 7 gateway 192.0.2.1 ×1", "open 1 target a0:1 ×1"])
    }

    // MARK: Recoveries

    @Test func `members of a component that has recovered wait for the result of a probe that began since then`() throws {
        var t = T()
        for number in 0..<4 { t.fail(number, T.silent, at: host) }
        expectEqual(t.published(), ["open 1 host 198.51.100.7 ×4"])
        t.now = 60 * second
        t.succeed(0, at: host)
        expectEqual(t.published(), ["over 1 host 198.51.100.7 ×4"])
        t.now = 62 * second
        // It began before the recovery.
        try t.probe(1, after: .seconds(3))
        expectEmpty(t.advance(by: 3))
        t.succeed(1, at: host)
        try t.probe(2, after: .seconds(3))
        expectEqual(t.published(), ["open 2 target a2:1 ×1 from 0"])
        t.succeed(2, at: host)
        t.succeed(3, at: host)
        expectEqual(t.advance(by: 60), ["over 2 target a2:1 ×1"])
    }

    @Test func `a host that a router reported and that answers again is over, and not merged into the router`() throws {
        var t = T()
        for number in 0..<3 {
            t.fail(number, T.cause(.network, .hostUnreachable, ["hop": "203.0.113.1", "address": host]), at: host)
        }
        expectEqual(t.published(), ["open 1 host 198.51.100.7 ×3"])
        t.now = 2 * second
        t.succeed(0, at: host)
        expectEqual(t.published(), ["over 1 host 198.51.100.7 ×3"])
        t.succeed(1, at: host)
        t.succeed(2, at: host)
        expectEmpty(t.advance(by: 60))
    }

    @Test func `a probe that fails after the recovery of a gateway, and has begun before, opens no incident`() throws {
        var t = T(timing: .init(openAfter: 5 * second))
        for number in 0..<3 { t.fail(number, T.severalNetworks, at: "198.51.100.\(number)") }
        expectEqual(t.advance(by: 10), ["open 1 gateway 192.0.2.1 ×3 from 0"])
        t.succeed(0)
        // The first target is a witness that the others are down.
        for number in 1..<3 {
            try t.probe(number, after: .seconds(1))
            t.fail(number, T.silent, at: "198.51.100.\(number)")
        }
        expectEqual(t.advance(by: 1), ["over 1 gateway 192.0.2.1 ×3"])
        t.succeed(1)
        t.succeed(2)
        expectEmpty(t.advance(by: 60))
    }

    // MARK: A fault behind another one

    @Test func `the death of a resolver does not explain a server that was down before`() throws {
        var t = T(timing: .init(openAfter: 20 * second))
        t.fail(0, T.refused, at: host)
        expectEqual(t.advance(by: 30), ["open 1 target a0:1 ×1 from 0"])
        for number in 0..<3 { t.fail(number, T.unresolved(["one.example", "two.other", "three.test"][number])) }
        expectEqual(t.advance(by: 30), ["open 2 resolver 192.0.2.53 ×2 from 30"])
        expectEqual(t.book.subject(of: TargetID(0))?.id?.hasSuffix("-1"), true)
        try t.resolve()
        for number in 1..<3 { t.succeed(number) }
        t.fail(0, T.refused, at: host)
        expectEqual(t.advance(by: 60), ["over 2 resolver 192.0.2.53 ×2"])
        t.succeed(0)
        expectEqual(t.published(), ["over 1 target a0:1 ×1"])
    }

    @Test func `a gateway that becomes silent does not begin with the refusals of a server before`() {
        var t = T()
        t.fail(0, T.refused, at: host)
        expectEqual(t.published(), ["open 1 target a0:1 ×1"])
        t.now = 300 * second
        t.fail(0, T.silentGateway)
        expectEqual(t.published(), ["open 2 gateway 192.0.2.1 ×1", "merged 1 target a0:1 ×1 into 2"])
    }

    // MARK: Flapping

    @Test func `the cause of a flapping incident is that of its failures, although the status does not show them`() {
        var t = T()
        t.miss(0, T.refused)
        t.succeed(0, flapping: true)
        let opened = t.take()
        #expect(opened.map(\.kind) == [.flapping] && opened.map(\.cause) == [T.refused])
        // Loss is what the failures look like from afar.
        t.fail(0, T.cause(.quality, .loss), .degraded, flapping: true)
        t.now = 2 * second
        expectEmpty(t.take())
        t.miss(0, T.cause(.http, .status), flapping: true)
        expectEqual(t.take().map(\.cause.code), [.status])
        t.succeed(0)
        expectEqual(t.take().map(\.state), [.over])
    }

    @Test func `20 targets behind a gateway that loses every second probe are one flapping incident`() {
        var t = T()
        for number in 0..<20 { t.miss(number, T.silentGateway, flapping: true) }
        for number in 0..<20 { t.succeed(number, flapping: true) }
        expectEqual(t.published(), ["open 1 flapping gateway 192.0.2.1 ×20"])
    }

    @Test func `an outage after flapping is an incident of its own, from its first failure`() throws {
        var t = T(timing: .init(openAfter: 20 * second))
        t.miss(0, T.refused, flapping: true)
        expectEqual(t.published(), ["open 1 flapping target a0:1 ×1"])
        t.succeed(0, flapping: true)
        try t.probe(0, fails: false)
        expectEmpty(t.advance(by: 100))
        t.failingSince = t.now
        for result in 1...6 {
            try t.probe(0)
            if result == 2 { t.fail(0, T.refused, flapping: true) }
            if result < 6 { expectEmpty(t.advance(by: 10)) }
        }
        expectEqual(t.published(), ["over 1 flapping target a0:1 ×1 to 100", "open 2 target a0:1 ×1 from 100"])
        // Its end is no flapping, although the detector remembers the earlier results.
        t.failingSince = nil
        t.succeed(0, flapping: true)
        try t.probe(0, fails: false)
        expectEqual(t.advance(by: 100), ["over 2 target a0:1 ×1"])
        // It flaps again after as many changes.
        for number in 0..<6 {
            try t.probe(0, fails: number % 2 == 0)
            if number % 2 == 0 { t.miss(0, T.refused, flapping: true) } else { t.succeed(0, flapping: true) }
        }
        expectEqual(t.advance(by: 0), ["open 3 flapping target a0:1 ×1"])
    }
}
