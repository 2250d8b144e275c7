import Console
import EventLoop
import NetworkLab
import Reachability
import RecordSamples
import Records

@testable import netwatch_service

/// A keeper with a real monitor and a real history, and without targets.
final class RunningKeeper {
    let keeper: Keeper
    let session: MonitorSession
    let boards = BoardSource()
    private let store: HistoryStore
    private let directory: ScratchDirectory

    init(
        watchdogInterval: Duration? = nil,
        notify: @escaping @Sendable (ServiceManager.Notification) -> Void
    ) throws {
        directory = try ScratchDirectory()
        let started = Moment.now
        let now = ClockReading(started)
        let offset: TimeZoneOffset = { _ in 0 }
        store = try HistoryStore.open(
            .init(directory: directory.path), calendar: DayCalendar(offset: offset), now: now, onStatus: { _ in }
        ).store
        let intake = Intake(targets: 0)
        session = try MonitorSession(MonitorConfiguration(), sink: intake.put)
        var calendar = DayCalendar(offset: offset)
        let machine = KeeperMachine(
            Configuration(), targets: [], canary: nil, ledgers: [:], recorder: HistoryRecorder(now),
            frame: BarFrame(at: now.wall, in: &calendar), offset: offset, at: started)
        let parts = Keeper.Parts(
            machine: machine, session: session, intake: intake, store: store, watchdogInterval: watchdogInterval,
            instance: "here",
            timeZone: "UTC", offset: offset, started: started, gap: nil,
            loaded: .init(configuration: Configuration(), settings: []))
        let outputs = Keeper.Outputs(
            sink: { _ in }, events: EventFeed(), encoder: RecordEncoder(header: Samples.header), boards: boards, notify: notify)
        keeper = try Keeper(parts, outputs)
    }

    func stop() {
        session.stop()
        keeper.stop()
        store.close()
    }
}
