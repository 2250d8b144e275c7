import Expectations
import Testing

@testable import Reachability

private let second = IncidentTranscript.second

/// Incidents that an earlier process has left open.
@Suite struct IncidentContinuityTests {
    private typealias T = IncidentTranscript

    /// Returns an incident that began 100 s before the transcript.
    private func open(
        _ id: String, _ subject: Incident.Subject, _ cause: Cause = T.silentGateway, kind: Incident.Kind = .fault,
        targets: Range<Int> = 0..<2, waits: Bool = false
    ) throws -> OpenIncident {
        OpenIncident(
            Incident(
                id: id, kind: kind, state: .open, scope: .path, subject: subject, cause: cause, targetCount: 2,
                targets: try targets.map { try Endpoint("a\($0):1") },
                began: Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 900 * second), ended: nil,
                moment: Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 900 * second)),
            targets: Array(targets), waits: waits)
    }

    private let gateway = Incident.Subject(.gateway, "192.0.2.1")

    @Test func `targets that fail again because of the same subject continue its incident`() throws {
        var t = T(timing: .init(openAfter: 20 * second))
        t.book.restore([try open("old-7", gateway)], at: T.moment(0))
        expectEmpty(t.advance(by: 5))
        t.fail(0, T.silentGateway)
        t.now = 6 * second
        t.fail(1, T.severalNetworks)
        t.fail(2, T.silentGateway)
        let grown = t.take()
        #expect(grown.map(\.id) == ["old-7"] && grown.map(\.targetCount) == [3] && grown[0].from == T.moment(-100 * second).date)
        t.now = 9 * second
        for number in 0..<3 { t.succeed(number) }
        expectEqual(t.published(), ["over 7 gateway 192.0.2.1 ×3"])
    }

    @Test func `an incident whose targets are up at their first results ends then`() throws {
        var t = T()
        t.book.restore([try open("old-7", gateway)], at: T.moment(0))
        t.fail(0, T.silentGateway, .unknown)
        t.now = second
        t.succeed(0)
        expectEmpty(t.published())
        t.now = 2 * second
        t.succeed(1)
        expectEqual(t.published(), ["over 7 gateway 192.0.2.1 ×2"])
        #expect(t.book.openCount == 0 && t.book.memberCount == 0 && t.book.deadline == nil)
    }

    @Test func `targets that fail for another reason leave it`() throws {
        var t = T(timing: .init(openAfter: 20 * second))
        t.book.restore(
            [try open("old-7", gateway), try open("old-8", .init(.target, "a2:1"), T.refused, targets: 2..<3)], at: T.moment(0))
        t.fail(0, T.refused)
        t.fail(1, T.refused)
        expectEqual(t.published(), ["over 7 gateway 192.0.2.1 ×2"])
        // A nearer subject continues an incident that readers know.
        t.fail(2, T.noCarrier)
        expectEqual(t.published(), ["open 1 interface eth0 ×1", "merged 8 target a2:1 ×2 into 1"])
        for number in 0..<2 { try t.probe(number) }
        expectEqual(t.advance(by: 20).count, 2)
    }

    @Test func `an incident without targets ends as removed, at once or after a day without any target`() throws {
        var t = T()
        t.book.restore([try open("old-7", gateway, targets: 0..<0)], at: T.moment(0))
        expectEqual(t.published(), ["removed 7 gateway 192.0.2.1 ×2"])
        t.book.restore([try open("old-8", gateway, targets: 0..<0, waits: true)], at: T.moment(0))
        expectEmpty(t.advance(by: 86_399))
        expectEqual(t.advance(by: 1), ["removed 8 gateway 192.0.2.1 ×2 to 0"])
        // A target that fails meanwhile continues it.
        t.book.restore([try open("old-9", gateway, targets: 0..<0, waits: true)], at: T.moment(t.now))
        t.fail(0, T.silentGateway)
        #expect(t.advance(by: 200_000).isEmpty && t.book.openCount == 1)
        t.succeed(0)
        expectEqual(t.published(), ["over 9 gateway 192.0.2.1 ×2"])
    }

    @Test func `the second of two open incidents of one subject is over`() throws {
        var t = T()
        t.book.restore([try open("old-7", gateway), try open("old-8", gateway, T.oneNetwork)], at: T.moment(0))
        expectEqual(t.published(), ["over 8 gateway 192.0.2.1 ×2"])
        #expect(t.book.openCount == 1 && t.book.memberCount == 2)
    }

    @Test func `a flapping incident ends when its target flaps no longer`() throws {
        var t = T()
        t.book.restore([try open("old-7", .init(.target, "a0:1"), T.refused, kind: .flapping, targets: 0..<1)], at: T.moment(0))
        t.succeed(0, flapping: true)
        expectEmpty(t.published())
        t.succeed(0)
        expectEqual(t.published(), ["over 7 flapping target a0:1 ×2"])
    }

    @Test func `a target with other settings has the place of its predecessor until its first result`() {
        var t = T(timing: .init(openAfter: 20 * second))
        t.fail(0, T.silent, at: "198.51.100.7")
        t.fail(1, T.silent, at: "198.51.100.7")
        expectEqual(t.advance(by: 20), ["open 1 host 198.51.100.7 ×2 from 0"])
        t.book.replace(TargetID(1), by: TargetID(5))
        t.remove(1)
        t.fail(5, T.silent, .unknown, at: "198.51.100.7")
        #expect(t.advance(by: 5).isEmpty && t.book.memberCount == 2)
        t.fail(5, T.silent, at: "198.51.100.7")
        #expect(t.advance(by: 5).isEmpty && t.book.memberCount == 2)
        t.succeed(0, at: "198.51.100.7")
        t.succeed(5, at: "198.51.100.7")
        expectEqual(t.published().filter { $0.contains("host") }, ["over 1 host 198.51.100.7 ×2"])
        // One that answers is still known to answer.
        t.book.replace(TargetID(5), by: TargetID(6))
        t.remove(5)
        t.fail(6, T.silent, .unknown, at: "198.51.100.7")
        for number in 7..<9 { t.fail(number, T.silent, at: "198.51.100.7") }
        expectEqual(t.book.subject(of: TargetID(8))?.subject.kind, .target)
    }
}
