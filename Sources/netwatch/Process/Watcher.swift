import Console
import EventLoop
import Glibc
import Reachability
import Records

/// A monitor whose events a condition receives until it is done, while the main thread waits.
struct Watcher {
    /// A type that decides when enough events were received. It reads no clock and does no I/O.
    protocol Condition: Sendable {
        mutating func receive(_ event: MonitorEvent)
        func isDone(at now: Moment) -> Bool
        /// Returns the time of the next check if no event arrives; `nil` for never.
        func deadline(at now: Moment) -> Moment?
    }

    let session: MonitorSession
    private let inbox: Inbox
    private let receiver: Receiver

    init(_ configuration: MonitorConfiguration, targets: [(Endpoint, ProbeSettings)]) throws(Failure) {
        let inbox = try Inbox()
        let receiver = Receiver(inbox)
        (self.inbox, self.receiver) = (inbox, receiver)
        do {
            session = try MonitorSession(configuration, targets: targets) { receiver.receive($0) }
            if session.isPolling { StandardError.reportPolling() }
        } catch {
            throw Failure(error)
        }
    }

    /// Runs until the condition is done.
    ///
    /// - Parameters:
    ///   - condition: the condition, which receives each event.
    ///   - progress: reports the condition, on the main thread; it returns the time of its next call.
    /// - Returns: `false` if the monitor's namespace disappeared before.
    @discardableResult
    func run<Value: Condition>(_ condition: inout Value, progress: ((Value, Moment) -> Moment)? = nil) -> Bool {
        let loop = MainLoop(inbox.waker)
        let running = Locked(condition)
        receiver.begin { event in
            running.withLock { condition in
                if let event { condition.receive(event) }
                let now = Moment.now
                return condition.isDone(at: now) ? .min : condition.deadline(at: now)?.monotonicNanoseconds ?? .max
            }
        }
        defer {
            receiver.end()
            condition = running.withLock { $0 }
        }
        var nextReport = progress == nil ? Int64.max : .min
        while true {
            let (due, hasEnded) = receiver.check()
            if let shortage = receiver.takeShortage() {
                StandardError.note("local/file-limit: \(shortage.detail); raise it with ulimit -n")
            }
            if due == .min { return true }
            if hasEnded { return false }
            if let progress, MonotonicClock.now() >= nextReport {
                nextReport = progress(running.withLock { $0 }, Moment.now).monotonicNanoseconds
            }
            let wake = min(due, nextReport)
            _ = loop.wait(until: wake == .max ? nil : wake)
        }
    }
}

/// Passes the monitor's events to a condition, on the monitor's thread: to hand each of 100,000 results to the main thread costs more
/// than to handle them.
private final class Receiver: Sendable {
    /// Handles an event, or `nil` for the passage of time. Returns the time of the next check if no event arrives: `.min` if the
    /// condition is done, `.max` for never.
    typealias Handler = @Sendable (MonitorEvent?) -> Int64

    private struct State {
        var handler: Handler?
        var hasEnded = false
        /// The cause for which probes wait, until the main thread reports it. A stream has the incident itself.
        var shortage: Cause?
        /// The time until which the main thread waits; `.min` if the condition is done.
        var due = Int64.max

        /// Notes the time of the next check.
        mutating func wait(until due: Int64) {
            self.due = min(self.due, due)
            if due == .min { handler = nil }
        }
    }

    private let inbox: Inbox
    private let state = Locked(State())

    init(_ inbox: Inbox) { self.inbox = inbox }

    /// Handles an event on the monitor's thread. Without a handler, the event is stored for the next one.
    func receive(_ event: MonitorEvent) {
        let mustWake = state.withLock { state in
            if case .ended = event { state.hasEnded = true }
            if case .incident(let incident) = event, incident.state == .open, incident.cause.isShortageOfFiles {
                state.shortage = incident.cause
            }
            guard let handler = state.handler else {
                inbox.put(Record(event: event))
                return false
            }
            let former = state.due
            state.wait(until: handler(event))
            return state.due < former || state.hasEnded || state.shortage != nil
        }
        if mustWake { inbox.waker.wake() }
    }

    /// Passes the stored events to a handler, and then each event as it arrives, until the condition is done. Further events are stored.
    func begin(_ handler: @escaping Handler) {
        state.withLock { state in
            (state.handler, state.due) = (handler, .max)
            while state.handler != nil, let record = inbox.take() { state.wait(until: handler(record.event)) }
        }
    }

    /// Returns the time of the next check, and whether the monitor has ended.
    func check() -> (due: Int64, hasEnded: Bool) {
        state.withLock { state in
            if let handler = state.handler {
                state.due = .max
                state.wait(until: handler(nil))
            }
            return (state.due, state.hasEnded)
        }
    }

    /// Returns the cause for which probes wait, once.
    func takeShortage() -> Cause? {
        state.withLock { state in
            defer { state.shortage = nil }
            return state.shortage
        }
    }

    func end() { state.withLock { $0.handler = nil } }
}

extension Cause {
    /// Whether the limit of open files delays probes, rather than fails one.
    fileprivate var isShortageOfFiles: Bool { layer == .local && code == .fileLimit && evidence["waiting"] != nil }
}
