import Expectations
import FoundationEssentials
import Reachability
import Testing

@testable import netwatch_service

@Suite struct IncidentDeskTests {
    private static let millisecond: Int64 = 1_000_000

    @Test func `an incident is shown once the history has it`() throws {
        var desk = IncidentDesk()
        let number = desk.add(Self.incident("1"), at: 0)
        expectEmpty(desk.shown)
        expectEmpty(desk.takeOverdue(at: 199 * Self.millisecond))
        let shown = desk.committed("1", number)
        expectEqual(shown.map(\.isRecorded), [true])
        expectEqual(desk.shown.map(\.incident.id), ["1"])
        expectNil(desk.deadline)
    }

    @Test func `an incident that the history does not have in 200 ms is shown as not recorded, and later as recorded`() {
        var desk = IncidentDesk()
        let number = desk.add(Self.incident("1"), at: 0)
        expectEqual(desk.deadline, 200 * Self.millisecond)
        let overdue = desk.takeOverdue(at: 200 * Self.millisecond)
        expectEqual(overdue.map(\.isRecorded), [false])
        expectEqual(desk.shown.map(\.isRecorded), [false])
        // Readers learn that the history has it now.
        let published = desk.committed("1", number)
        expectEqual(published.map(\.isRecorded), [true])
        expectEqual(desk.shown.map(\.isRecorded), [true])
    }

    @Test func `readers see the states in the order of the monitor, whatever the order of their commits`() {
        var desk = IncidentDesk()
        let opened = desk.add(Self.incident("1"), at: 0)
        let gateway = desk.add(Self.incident("2"), at: 10 * Self.millisecond)
        let grown = desk.add(Self.incident("2", count: 5), at: 10 * Self.millisecond)
        let merged = desk.add(Self.incident("1", isOver: true, into: "2"), at: 10 * Self.millisecond)
        func texts(_ states: [BoardIncident]) -> [String] {
            states.map { "\($0.incident.id) \($0.incident.state) ×\($0.incident.targetCount) \($0.isRecorded)" }
        }
        expectEqual(texts(desk.committed("1", merged)), [])
        expectEqual(texts(desk.committed("1", opened)), ["1 open ×0 true"])
        expectEqual(texts(desk.committed("2", grown)), [])
        expectEqual(texts(desk.committed("2", gateway)), ["2 open ×0 true", "2 open ×5 true", "1 merged ×0 true"])
        // A state that the history does not have does not hold up the others for longer than the limit.
        let late = desk.add(Self.incident("3"), at: 1_000 * Self.millisecond)
        let next = desk.add(Self.incident("4"), at: 1_100 * Self.millisecond)
        expectEqual(texts(desk.committed("4", next)), [])
        expectEqual(texts(desk.takeOverdue(at: 1_200 * Self.millisecond)), ["3 open ×0 false", "4 open ×0 true"])
        expectEqual(texts(desk.committed("3", late)), ["3 open ×0 true"])
    }

    @Test func `another subject of an incident is published`() {
        var desk = IncidentDesk()
        _ = desk.committed("1", desk.add(Self.incident("1"), at: 0))
        let number = desk.add(Self.incident("1", subject: "db2.example:5432"), at: 0)
        expectEqual(desk.committed("1", number).map(\.incident.subject.name), ["db2.example:5432"])
    }

    @Test func `the commit of an earlier state does not count for a later one`() {
        var desk = IncidentDesk()
        let first = desk.add(Self.incident("1"), at: 0)
        let second = desk.add(Self.incident("1", isOver: true), at: 50 * Self.millisecond)
        expectEqual(desk.committed("1", first).map(\.incident.state), [.open])
        expectEqual(desk.deadline, 250 * Self.millisecond)
        expectEqual(desk.committed("1", second).map(\.incident.state), [.over])
        expectEqual(desk.shown.count, 1)
    }

    @Test func `further targets of an incident whose count does not grow are not published, and are on the board`() {
        var desk = IncidentDesk()
        _ = desk.committed("1", desk.add(Self.incident("1"), of: TargetSet([3]), at: 0))
        let number = desk.add(Self.incident("1"), of: TargetSet([3, 800]), at: 0)
        #expect(desk.shown.map(\.targets) == [TargetSet([3, 800])] && desk.deadline == nil)
        let overdue = desk.takeOverdue(at: .max)
        let published = desk.committed("1", number)
        #expect(overdue.isEmpty && published.isEmpty)
        // A number that is missing in a later state, because its target was removed, remains.
        let last = desk.committed("1", desk.add(Self.incident("1", isOver: true), of: TargetSet([800]), at: 0))
        #expect(last.map(\.incident.state) == [.over] && desk.shown.map(\.targets) == [TargetSet([3, 800])])
    }

    @Test func `a clock that is set back during an incident leaves its duration`() {
        var desk = IncidentDesk()
        let began = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 100_000 * Self.millisecond)
        _ = desk.add(desk.dated(Self.incident("1", from: began), at: 100_000), at: 0)
        // The wall clock is a minute behind after six seconds.
        let ended = Moment(monotonicNanoseconds: 6_000 * Self.millisecond, wallClockNanoseconds: 46_000 * Self.millisecond)
        let dated = desk.dated(Self.incident("1", from: began, to: ended), at: 106_000)
        #expect(dated.began == began && dated.ended?.wallClockNanoseconds == 106_000 * Self.millisecond)
    }

    @Test func `an incident before the clock has the right time lasts as long as it did`() {
        var desk = IncidentDesk()
        let began = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 0)
        let open = desk.dated(Self.incident("1", from: began), at: 900_000_000, isRepeated: true)
        _ = desk.add(open, at: 0)
        expectEqual(open.began.milliseconds, 900_000_000)
        // Three minutes later, the wall clock has the right time, a day after the end of the history.
        let ended = Moment(
            monotonicNanoseconds: 180_000 * Self.millisecond, wallClockNanoseconds: 986_400_000 * Self.millisecond)
        let over = desk.dated(Self.incident("1", from: began, to: ended), at: 986_400_000)
        #expect(over.began.milliseconds == 900_000_000 && over.ended?.milliseconds == 900_180_000)
    }

    @Test func `an incident that began after a withdrawal's time begins and ends at it`() {
        var desk = IncidentDesk()
        let began = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 900_000 * Self.millisecond)
        _ = desk.committed("1", desk.add(desk.dated(Self.incident("1", from: began), at: 900_000), at: 0))
        desk.limit(to: 5_000)
        expectEqual(desk.shown.map(\.incident.began.milliseconds), [5_000])
        let ended = Moment(monotonicNanoseconds: 7_000 * Self.millisecond, wallClockNanoseconds: 12_000 * Self.millisecond)
        let dated = desk.dated(Self.incident("1", from: began, to: ended), at: 12_000)
        #expect(dated.began.milliseconds == 5_000 && dated.ended?.milliseconds == 12_000)
    }

    @Test func `all open incidents are shown, and the last hundred that are over`() {
        var desk = IncidentDesk()
        for number in 0..<250 {
            let id = "\(number)"
            _ = desk.committed(id, desk.add(Self.incident(id, isOver: number % 2 == 0), at: 0))
        }
        expectEqual(desk.shown.filter { $0.incident.state == .open }.count, 125)
        expectEqual(desk.shown.filter { $0.incident.state == .over }.count, IncidentDesk.recentLimit)
        expectEqual(desk.shown.first?.incident.id, "249")
    }

    private static func incident(
        _ id: String, isOver: Bool = false, count: Int = 0, subject: String = "db.example:5432", into: String? = nil
    ) -> Incident {
        Incident(
            id: id, scope: .server, subject: .init(.target, subject),
            cause: Cause(.tcp, .refused, detail: "the server refuses connections"), targetCount: count,
            from: Date(timeIntervalSince1970: 0), to: isOver ? Date(timeIntervalSince1970: 60) : nil, into: into)
    }

    private static func incident(_ id: String, from began: Moment, to ended: Moment? = nil) -> Incident {
        Incident(
            id: id, state: ended == nil ? .open : .over, scope: .server, subject: .init(.target, "db.example:5432"),
            cause: Cause(.tcp, .refused, detail: "the server refuses connections"), targetCount: 1, targets: [], began: began,
            ended: ended, moment: ended ?? began)
    }
}
