import Expectations
import Foundation
import Reachability
import Testing

@testable import netwatch_service

/// The history of a target on its page, from a history of many targets.
@Suite(.timeLimit(.minutes(5))) struct TargetHistoryTests {
    // The board's clock stands 187 seconds after noon.
    private let noon = TestHistory.noon
    private let history: TestHistory
    private let texts = (0..<30).map { "host-\($0).example:80" }

    init() throws { history = try TestHistory() }

    private func board(_ update: ServerUpdate, _ incidents: [BoardIncident] = []) -> Board {
        var board = PageSamples.board([PageSamples.target(update.endpoint.text, update)])
        board.incidents = incidents
        return board
    }

    private func detail(_ store: HistoryStore, _ board: Board) throws -> TargetDetail {
        let history = TargetHistory(target: try #require(board.targets.first), board: board, query: TargetQuery())
        return try store.query { try history.detail($0) }
    }

    private func incident(
        _ id: String, _ cause: Cause, _ scope: Incident.Scope = .path, from: Int64, to: Int64? = nil, targets: [String]? = nil
    ) -> Incident {
        PageSamples.incident(
            id, scope, scope == .path ? .init(.gateway, "192.0.2.1") : .init(.target, texts[24]), cause,
            targets ?? Array(texts.prefix(10)), count: 30, from: noon + from, to: to.map { noon + $0 }
        ).incident
    }

    private func sample(_ time: Int64, _ state: RecordedState) -> HistoryEvent {
        .sample(
            target: 24,
            Sample(
                time: noon + time, state: state, roundTrip: state == .up ? 100 : nil, responseTime: state == .up ? 400 : nil))
    }

    private func open() throws -> HistoryStore {
        let (store, _) = try history.open()
        store.register(texts.map { .init(id: nil, text: $0, title: $0) }) { _ in }
        store.record(noon, .begin(target: 24, .unknown, at: noon))
        return store
    }

    @Test func `the 25th target of an incident has its outage, and its changes have their causes`() throws {
        let store = try open()
        store.record(noon + 10_000, sample(10_000, .up))
        // The link is lost between two probes: a change without a result.
        store.record(noon + 20_000, .change(target: 24, .unreachable, at: noon + 15_000))
        store.record(noon + 40_000, sample(30_000, .unreachable), sample(38_000, .up))
        store.record(noon + 60_000, sample(50_000, .down), sample(55_000, .up))
        store.record(incident("gateway", PageSamples.gatewaySilent, from: 12_000, to: 39_000), of: TargetSet(0..<30)) {}
        store.record(
            incident("refused", PageSamples.refused, .server, from: 50_000, to: 55_000, targets: [texts[24]]), of: TargetSet([24])
        ) {}
        // An incident of another target.
        store.record(incident("other", PageSamples.refused, .server, from: 15_000, targets: [texts[3]]), of: TargetSet([3])) {}
        store.settle()
        let found = try detail(store, board(PageSamples.update(texts[24])))
        expectEqual(found.outages.map(\.incident), ["refused", "gateway"])
        expectEqual(found.outages.map(\.state), [.down, .unreachable])
        expectEqual(found.outages.map(\.cause?.code), [.refused, .gatewaySilent])
        expectEqual(found.changes.map { $0.time - noon }, [55_000, 50_000, 38_000, 15_000, 10_000])
        expectEqual(found.changes.map(\.state), [.up, .down, .up, .unreachable, .up])
        expectEqual(found.changes.map(\.cause?.code), [nil, .refused, nil, .gatewaySilent, nil])
        expectEqual(found.roundTrips.map(\.probes), [5])
        // That of a TCP target is its round trip.
        expectEmpty(found.responseTimes)
        store.close()
    }

    @Test func `hours that an earlier version has recorded have no point in the chart of response times`() {
        func summary(_ responseTime: UInt32?, lost: Bool = false) -> PeriodSummary {
            var summary = PeriodSummary(0..<3_600_000)
            summary.add(Sample(time: 0, state: .up, roundTrip: lost ? nil : 7, responseTime: responseTime))
            return summary
        }
        expectNil(TimePoint(responseTimesOf: summary(nil)))
        expectEqual(TimePoint(responseTimesOf: summary(90))?.highest, 90)
        // All lost.
        expectEqual(TimePoint(responseTimesOf: summary(nil, lost: true))?.lost, 1)
        expectEqual(TimePoint(roundTripsOf: summary(90)).median, 7)
    }

    @Test func `an incident that the history does not have yet is an outage of all its targets`() throws {
        let store = try open()
        store.record(noon + 20_000, sample(10_000, .up), sample(20_000, .unreachable))
        store.settle()
        let waiting = BoardIncident(
            incident: incident("gateway", PageSamples.gatewaySilent, from: 18_000), isRecorded: false,
            targets: TargetSet(20..<30))
        let found = try detail(store, board(PageSamples.update(texts[24]), [waiting]))
        #expect(found.outages.map(\.isRecorded) == [false] && found.outages.map(\.end) == [nil])
        expectEqual(found.changes.map(\.cause?.code), [.gatewaySilent, nil])
        let other = try detail(store, board(PageSamples.update(texts[3]), [waiting]))
        #expect(other.outages.isEmpty && other.changes.isEmpty)
        store.close()
    }

    @Test func `an outage of a target that one failing address degrades is no time down`() throws {
        let store = try open()
        store.record(noon + 20_000, sample(10_000, .up), sample(20_000, .degraded))
        store.record(
            incident("refused", PageSamples.refused, .server, from: 20_000, targets: [texts[24]]), of: TargetSet([24])
        ) {}
        store.settle()
        let found = try detail(store, board(PageSamples.update(texts[24], .degraded, PageSamples.refused, since: noon + 20_000)))
        expectEqual(found.outages.map(\.state), [.degraded])
        expectEqual(found.changes.map(\.cause?.code), [.refused, nil])
        store.close()
    }

    @Test func `a stop of the service is no change, and a maintenance window is one`() throws {
        let samples = [
            Sample(changeAt: 1, to: .unknown), Sample(time: 2, state: .up, roundTrip: 1), Sample(changeAt: 3, to: .notRecorded),
            Sample(changeAt: 4, to: .unknown), Sample(time: 5, state: .up, roundTrip: 1), Sample(changeAt: 6, to: .maintenance),
            Sample(changeAt: 7, to: .up),
        ]
        expectEqual(
            TargetHistory.changes(samples),
            [
                .init(time: 7, state: .up), .init(time: 6, state: .maintenance), .init(time: 2, state: .up),
            ])
    }

    @Test func `the first status of a new target is a change, that of a time within its history is none`() {
        let samples = [
            Sample(time: 2, state: .down, roundTrip: nil), Sample(time: 3, state: .down, roundTrip: nil),
            Sample(time: 4, state: .up, roundTrip: 1),
        ]
        expectEqual(TargetHistory.changes(samples).map(\.time), [4])
        expectEqual(TargetHistory.changes([Sample(changeAt: 1, to: .unknown)] + samples).map(\.time), [4, 2])
        expectEqual(TargetHistory.changes([Sample(changeAt: 1, to: .unknown)]), [])
    }
}
