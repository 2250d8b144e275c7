import Console
import Glibc
import Reachability

/// A monitor whose events the main thread feeds to a condition until that is done.
struct Watcher {
    /// What decides when enough was seen; pure.
    protocol Condition {
        mutating func see(_ event: MonitorEvent)
        func isDone(at now: Moment) -> Bool
        /// When to ask again although nothing happened; `nil` for never.
        func deadline(at now: Moment) -> Moment?
    }

    let session: MonitorSession
    private let inbox: Inbox

    init(_ configuration: MonitorConfiguration, targets: [(Endpoint, ProbeSettings)]) throws(Failure) {
        let inbox = try Inbox()
        self.inbox = inbox
        do {
            session = try MonitorSession(configuration, targets: targets) { inbox.put($0) }
            if session.isPolling { StandardError.sayPolling() }
        } catch {
            throw Failure(error)
        }
    }

    /// Returns whether the condition is done; `false` when the monitor's namespace went away before.
    @discardableResult
    func run(_ condition: inout some Condition) -> Bool {
        let loop = MainLoop(inbox.waker)
        while true {
            while let record = inbox.take() { condition.see(record.event) }
            let now = Clock.now
            if condition.isDone(at: now) { return true }
            if inbox.isFinished { return false }
            _ = loop.wait(until: condition.deadline(at: now)?.monotonicNanoseconds)
        }
    }
}
