import Expectations
import Foundation
import Reachability
import Testing

@testable import netwatch_service

/// The cause of each change in the timeline of a target.
@Suite struct ChangeCausesTests {
    private static let now = PageSamples.now
    private typealias Change = TargetDetail.StateChange

    private static func update(
        _ state: StatusName, _ cause: Cause?, since: Int64 = 0, moment: Int64? = nil, text: String = "db.example:5432"
    ) -> ServerUpdate {
        ServerUpdate(
            endpoint: PageSamples.endpoint(text), statusName: state, cause: cause, since: PageSamples.moment(now + since),
            address: nil,
            interface: nil, roundTrip: nil, isInitial: false, moment: PageSamples.moment(now + (moment ?? since)))
    }

    private static func incident(
        _ id: String, _ cause: Cause, from: Int64, to: Int64? = nil, targets: [String] = ["db.example:5432"]
    ) -> Incident {
        let isOwn = cause.layer == .tcp || cause.layer == .quality
        return PageSamples.incident(
            id, isOwn ? .server : .path, isOwn ? .init(.target, "db.example:5432") : .init(.gateway, "192.0.2.1"), cause, targets,
            from: now + from, to: to.map { now + $0 }
        ).incident
    }

    private func causes(_ incidents: [Incident], _ update: ServerUpdate = Self.update(.up, nil)) -> ChangeCauses {
        ChangeCauses(update: update, incidents: incidents)
    }

    private func code(_ causes: ChangeCauses, _ state: RecordedState, at time: Int64) -> Cause.Code? {
        causes.cause(of: Change(time: Self.now + time, state: state))?.code
    }

    @Test func `a change has the cause of the incident that began with it`() {
        let found = causes([
            Self.incident("gateway", PageSamples.gatewaySilent, from: -100_000),
            Self.incident("refused", PageSamples.refused, from: -60_000, to: -30_000),
            Self.incident("slow", PageSamples.latency, from: -20_000, to: -10_000),
        ])
        expectEqual(code(found, .unreachable, at: -100_000), .gatewaySilent)
        expectEqual(code(found, .down, at: -60_000), .refused)
        expectEqual(code(found, .degraded, at: -20_000), .latency)
        #expect(code(found, .up, at: -10_000) == nil && code(found, .maintenance, at: -60_000) == nil)
    }

    @Test func `a target that joins an incident later has its cause`() {
        let found = causes([Self.incident("gateway", PageSamples.gatewaySilent, from: -100_000, to: -10_000)])
        expectEqual(code(found, .unreachable, at: -95_000), .gatewaySilent)
        #expect(code(found, .unreachable, at: -10_000) == nil && code(found, .unreachable, at: -100_001) == nil)
        // The silence of a gateway never makes a server down.
        expectNil(code(found, .down, at: -95_000))
    }

    @Test func `a cause is never guessed among several incidents`() {
        let dead = Cause(.dns, .resolverSilent, detail: "the name server does not answer", evidence: [:])
        let incidents = [
            Self.incident("gateway", PageSamples.gatewaySilent, from: -100_000),
            Self.incident("resolver", dead, from: -50_000),
        ]
        expectNil(code(causes(incidents), .unreachable, at: -40_000))
        expectEqual(code(causes(incidents), .unreachable, at: -50_000), .resolverSilent)
        expectEqual(code(causes(incidents), .unreachable, at: -60_000), .gatewaySilent)
        // An incident that is not known could be the one.
        var part = causes([incidents[0]])
        part.areAll = false
        #expect(code(part, .unreachable, at: -60_000) == nil && code(part, .unreachable, at: -100_000) == .gatewaySilent)
    }

    @Test func `the last change has the cause of the status, unless the cause has changed since`() {
        let down = causes([], Self.update(.down, PageSamples.refused, since: -5_000))
        expectEqual(code(down, .down, at: -5_000), .refused)
        #expect(code(down, .down, at: -6_000) == nil && code(down, .unreachable, at: -5_000) == nil)
        let changed = Self.update(.unreachable, PageSamples.gatewaySilent, since: -5_000, moment: -1_000)
        expectNil(code(causes([], changed), .unreachable, at: -5_000))
        let first = Self.incident("link", PageSamples.noCarrier, from: -5_000, to: -1_000)
        let second = Self.incident("gateway", PageSamples.gatewaySilent, from: -1_000)
        expectEqual(code(causes([second, first], changed), .unreachable, at: -5_000), .noCarrier)
    }

    @Test func `the facts of an incident's first target are not those of the others`() {
        let cause = Cause(
            .network, .hostUnreachable, detail: "192.0.2.1 cannot reach 198.51.100.7",
            evidence: ["hop": .text("192.0.2.1"), "address": .text("198.51.100.7"), "errno": .text("EHOSTUNREACH")])
        let targets = ["first.example:443", "db.example:5432"]
        let of = Self.incident("hop", cause, from: -5_000, targets: targets)
        let other = causes([of]).cause(of: of)
        #expect(other.code == .hostUnreachable && other.evidence == ["hop": .text("192.0.2.1")])
        #expect(!other.detail.contains("198.51.100.7"))
        let own = causes([of], Self.update(.unreachable, cause, text: "first.example:443"))
        expectEqual(own.cause(of: of), cause)
        let gateway = Self.incident("gateway", PageSamples.gatewaySilent, from: -5_000, targets: targets)
        expectEqual(causes([gateway]).cause(of: gateway).detail, PageSamples.gatewaySilent.detail)
    }
}
