import Expectations
import Testing

@testable import Reachability

private let second = IncidentTranscript.second

/// Incidents with the numbers of all their targets, which the service records.
@Suite struct IncidentMembersTests {
    private typealias T = IncidentTranscript

    @Test func `an incident with members has the numbers of all its targets`() {
        var t = T(book: IncidentBook(hasMembers: true))
        for number in 0..<1_000 { t.fail(number, T.silentGateway) }
        let incident = t.take()[0]
        #expect(incident.members == TargetSet(0..<1_000) && incident.targets.count == 10)
        for number in 0..<1_000 { t.succeed(number) }
        expectEqual(t.take().map(\.members), [TargetSet(0..<1_000)])
    }

    @Test func `a further member is published after a second although the count does not grow`() {
        var t = T(book: IncidentBook(hasMembers: true))
        t.fail(3, T.silentGateway)
        t.fail(4, T.silentGateway)
        expectEqual(t.take().map(\.members), [TargetSet([3, 4])])
        t.now = second / 2
        t.succeed(3)
        t.fail(900, T.silentGateway)
        #expect(t.take().isEmpty && t.book.deadline == second)
        t.now = second
        let grown = t.take()
        #expect(grown.map(\.members) == [TargetSet([3, 4, 900])] && grown.map(\.targetCount) == [2])
        // A member that fails again is no further one.
        t.now = 3 * second
        t.succeed(900)
        t.fail(900, T.silentGateway)
        #expect(t.take().isEmpty && t.book.deadline == nil)
    }

    @Test func `without members nothing is published for them`() {
        var t = T()
        t.fail(3, T.silentGateway)
        t.fail(4, T.silentGateway)
        expectEqual(t.take().map(\.members), [TargetSet()])
        t.now = 2 * second
        t.succeed(3)
        t.fail(900, T.silentGateway)
        #expect(t.take().isEmpty && t.book.deadline == nil)
    }
}
