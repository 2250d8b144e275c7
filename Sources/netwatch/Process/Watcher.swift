import Console
import Glibc
import Reachability

/// A monitor whose events the main thread passes to a condition until the condition is done.
struct Watcher {
    /// A type that decides when enough events were received. It reads no clock and does no I/O.
    protocol Condition {
        mutating func receive(_ event: MonitorEvent)
        func isDone(at now: Moment) -> Bool
        /// Returns the time of the next check if no event arrives; `nil` for never.
        func deadline(at now: Moment) -> Moment?
    }

    let session: MonitorSession
    private let inbox: Inbox

    init(_ configuration: MonitorConfiguration, targets: [(Endpoint, ProbeSettings)]) throws(Failure) {
        let inbox = try Inbox()
        self.inbox = inbox
        do {
            session = try MonitorSession(configuration, targets: targets) { inbox.put($0) }
            if session.isPolling { StandardError.reportPolling() }
        } catch {
            throw Failure(error)
        }
    }

    /// Runs until the condition is done. Returns `false` if the monitor's namespace disappeared before.
    @discardableResult
    func run(_ condition: inout some Condition) -> Bool {
        let loop = MainLoop(inbox.waker)
        while true {
            while let record = inbox.take() {
                // A stream has the incident itself.
                if case .incident(let incident) = record.event, incident.state == .open, incident.cause.isShortageOfFiles {
                    StandardError.note("local/file-limit: \(incident.cause.detail); raise it with ulimit -n")
                }
                condition.receive(record.event)
            }
            let now = Clock.now
            if condition.isDone(at: now) { return true }
            if inbox.isFinished { return false }
            if inbox.rest() { continue }
            _ = loop.wait(until: condition.deadline(at: now)?.monotonicNanoseconds)
        }
    }
}

extension Cause {
    /// Whether the limit of open files delays probes, rather than fails one.
    fileprivate var isShortageOfFiles: Bool { layer == .local && code == .fileLimit && evidence["waiting"] != nil }
}
