internal import EventLoop

/// The wait between two turns.
extension MonitorLoop {
    /// Waits for the next input or deadline. In the first idle millisecond after a change, the machine prepares for the loss of the
    /// path; a storm leaves no such time.
    func awaitInput() -> [EventLoop.Ready] {
        if machine.isForesightDue() {
            let idle = MonotonicClock.now() + 1_000_000
            let ready = loop.wait(until: min(deadline ?? idle, idle))
            guard ready.isEmpty, mailbox.isEmpty else { return ready }
            machine.foresee()
        }
        return loop.wait(until: deadline)
    }

    private var deadline: Int64? {
        var due = machine.nextDeadline()
        if let nextPoll { due = min(due ?? nextPoll, nextPoll) }
        if let nextFileCheck { due = min(due ?? nextFileCheck, nextFileCheck) }
        if let next = names.deadline { due = min(due ?? next, next) }
        if let next = hostProber.deadline { due = min(due ?? next, next) }
        if let next = prober.levelDeadline { due = min(due ?? next, next) }
        return due
    }
}
