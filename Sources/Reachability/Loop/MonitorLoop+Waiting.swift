internal import EventLoop

/// The wait between two turns.
extension MonitorLoop {
    /// Waits for the next input or deadline. In the first idle millisecond after a change, the machine prepares for the loss of the
    /// path; a storm leaves no such time. The events of a storm wait meanwhile, but nothing else does (``EventPacing``).
    func awaitInput() -> [EventLoop.Ready] {
        if let end = pacing.pauseEnd {
            let ready = loop.wait(until: min(deadline ?? end, end))
            guard MonotonicClock.now() >= end else { return ready }
            pacing.resume()
            watchEvents(.read)
            guard ready.isEmpty, mailbox.isEmpty else { return ready }
        }
        if machine.isForesightDue() {
            let idle = MonotonicClock.now() + 1_000_000
            let ready = loop.wait(until: min(deadline ?? idle, idle))
            guard ready.isEmpty, mailbox.isEmpty else { return ready }
            machine.foresee()
        }
        return loop.wait(until: deadline)
    }

    /// Watches for the kernel's events, or only for their overrun, which is an error of the socket. If the socket has failed, nothing is watched.
    func watchEvents(_ interest: EventLoop.Interest) {
        guard let descriptor = kernel.eventDescriptor else { return }
        try? loop.change(descriptor, interest: interest, token: Token.events)
    }

    private var deadline: Int64? {
        var due = machine.nextDeadline()
        if let nextPoll { due = min(due ?? nextPoll, nextPoll) }
        if let nextFileCheck { due = min(due ?? nextFileCheck, nextFileCheck) }
        if let next = names.deadline { due = min(due ?? next, next) }
        if let next = hostProber.deadline { due = min(due ?? next, next) }
        if let next = hopSearcher.deadline { due = min(due ?? next, next) }
        if let next = prober.levelDeadline { due = min(due ?? next, next) }
        return due
    }
}
