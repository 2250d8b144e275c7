import Console
import EventLoop
import Reachability
import Records

/// The thread of the service between the monitor and its readers. In each turn it takes what the monitor has reported, decides with a
/// ``KeeperState``, and hands the results to the history and to the readers.
final class Keeper: Sendable {
    /// The receivers of the results. The keeper's thread calls them, so they must not block.
    struct Outputs: Sendable {
        /// Receives the records of a turn, without numbers. The first one is the settled path.
        var records: @Sendable ([Record]) -> Void
        /// Receives each board. ``Board/sequence`` is not set.
        var board: @Sendable (Board) -> Void
        /// Receives the line of the state for the service manager, if it has changed.
        var notify: @Sendable (ServiceManager.Notification) -> Void
    }

    /// The parts that a keeper connects. The monitor reports to the intake.
    struct Parts: Sendable {
        var state: KeeperState
        var session: MonitorSession
        var intake: Intake
        var store: HistoryStore
        var watchdogInterval: Duration?
        var instance: String
        var timeZone: String
        var offset: TimeZoneOffset
        var started: Moment
        /// The time in which the service did not run; `nil` for a new history.
        var gap: Range<Int64>?
        /// The settings of the targets' probes, for the comparison with another configuration.
        var loaded: KeeperLoop.Loaded
    }

    private let mailbox = Mailbox<KeeperLoop.Message>()
    private let thread: LoopThread

    init(_ parts: Parts, _ outputs: Outputs) throws(Failure) {
        let mailbox = mailbox
        do {
            thread = try LoopThread(name: "netwatch-keeper", namespace: nil) { () throws(LoopError) in
                let loop = try KeeperLoop(parts, outputs, mailbox)
                return { loop.run() }
            }
        } catch { throw Failure(ExitCode.system, "a thread cannot be started: \(error)") }
    }

    /// Reports a change of the recording.
    func recordingChanged(_ status: RecordingStatus) { mailbox.post(.recording(status)) }

    /// Applies another configuration. `done` receives the result. The status for the service manager follows it.
    func reload(_ reload: KeeperLoop.Reload, done: @escaping @Sendable (ReloadOutcome) -> Void) {
        mailbox.post(.reload(reload, done))
    }

    /// Shows that a configuration could not be loaded. The status for the service manager follows `done`.
    func reloadFailed(_ reason: String, done: @escaping @Sendable () -> Void) { mailbox.post(.reloadFailed(reason, done)) }

    /// Ends the thread after a last turn. The monitor must be stopped.
    func stop() {
        mailbox.post(.stop)
        thread.join()
    }
}
