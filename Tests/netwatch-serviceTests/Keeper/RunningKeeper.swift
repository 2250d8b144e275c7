import Console
import EventLoop
import NetworkLab
import Reachability

@testable import netwatch_service

/// A keeper with a real monitor and a real history, and without targets.
final class RunningKeeper {
    let keeper: Keeper
    let session: MonitorSession
    private let store: HistoryStore
    private let directory: ScratchDirectory

    init(
        watchdogInterval: Duration? = nil, board: @escaping @Sendable (Board) -> Void = { _ in },
        notify: @escaping @Sendable (ServiceManager.Notification) -> Void
    ) throws {
        directory = try ScratchDirectory()
        let started = Clock.now
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
        keeper = try Keeper(parts, .init(records: { _ in }, board: board, notify: notify))
    }

    func stop() {
        session.stop()
        keeper.stop()
        store.close()
    }
}
