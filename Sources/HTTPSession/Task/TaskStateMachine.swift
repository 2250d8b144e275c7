internal import Pacing

/// The state of a task, driven by events that return actions. Times are nanoseconds on a monotonic clock that includes system suspend.
///
/// ```
///              resume            admitted             ended
///  suspended ─────────▶ waiting ──────────▶ running ─────────▶ finished
///   ▲     ▲ ▲              │ ▲               │   │ attemptEnded    ▲
///   │     │ └───suspend────┘ └──deadline──┐  │   ▼                 │ cancel, deadlineReached: from every state
///   │     └─────────suspend───────────────┴─ backing off           │
///   └───────────────suspend──────────────────┘ (the transfer is suspended, and keeps its slot)
/// ```
///
/// The request timeout limits the time for which the server sends nothing: during an attempt since the last byte was sent or received, and together with
/// the earlier attempts that failed without a response. Time without a running attempt does not count.
///
/// A task that waits for connectivity resembles one that backs off, but ends when its time to wait has passed. A task that is suspended while it
/// backs off continues to back off after its resumption, until the same moment.
package struct TaskStateMachine: Sendable {
    /// The state of a task.
    package enum State: Hashable, Sendable {
        /// The task has not started, or was suspended without a transfer.
        case suspended
        /// The task was suspended together with its transfer.
        case suspendedWithTransfer
        /// The task waits in the session's queue for a slot.
        case waiting
        case running
        /// The task waits until the given moment before another attempt.
        case backingOff(until: Int64)
        /// The task waits until the network is restored.
        case waitingForConnectivity
        case finished
    }

    package enum Event: Sendable {
        case resume
        case suspend
        /// The queue has a slot for the task.
        case admitted
        /// The connection was established, or a byte was sent.
        case activity
        /// A byte was received, or the server's silence so far does not count, because there is another reason for it.
        case silenceEnded
        /// The attempt has failed: its silence counts for the next one.
        case attemptFailed
        /// The response's reader or file accepts no more bytes for now. The request timeout does not run meanwhile.
        case receiverFull
        /// The reader or file accepts bytes again.
        case receiverReady
        /// A handler was asked, or has answered. The handler timeout runs meanwhile instead of the request timeout.
        case handlerAsked
        case handlerAnswered
        /// The attempt has ended, and the task with it.
        case ended
        /// The attempt has ended; another may begin after `delay` nanoseconds.
        case attemptEnded(delay: Int64)
        /// The attempt that was due is postponed by `delay` nanoseconds.
        case postponed(delay: Int64)
        /// The attempt has ended; another may begin when the network is restored.
        case attemptEndedOffline
        /// The network is missing: the task waits for it instead of backing off.
        case networkLost
        /// The network is restored: another attempt may begin after `delay` nanoseconds.
        case networkRestored(delay: Int64)
        /// The head of a response has arrived.
        case answered
        case cancel
        /// A deadline may have passed; see ``TaskStateMachine/deadline``.
        case deadlineReached
    }

    package enum Action: Hashable, Sendable {
        case enqueue
        case dequeue
        /// Begins an attempt. The first one is 1.
        case begin(attempt: Int)
        case suspendTransfer
        case resumeTransfer
        /// Ends the current attempt.
        case abortAttempt
        /// Fails the attempt: the request timeout has passed without a byte of the server. ``Event/ended`` or ``Event/attemptEnded(delay:)``
        /// follows.
        case failAttemptByTimeout
        /// Frees the task's slot in the queue.
        case releaseQueueSlot
        case finish(Reason)
        case reportResumed
        case reportSuspended
    }

    package enum Reason: Hashable, Sendable {
        /// The result of the last attempt ends the task.
        case ended
        case cancelled
        case resourceTimedOut
        case handlerTimedOut
        /// No network appeared within ``Limits/connectivityTimeout``.
        case connectivityTimedOut
    }

    package struct Limits: Hashable, Sendable {
        package var requestTimeout: Int64
        package var resourceTimeout: Int64
        package var handlerTimeout: Int64
        /// The longest time to wait for connectivity, in all waits together since a response arrived; `.max` for no limit.
        package var connectivityTimeout: Int64

        package init(requestTimeout: Int64, resourceTimeout: Int64, handlerTimeout: Int64, connectivityTimeout: Int64 = .max) {
            self.requestTimeout = requestTimeout
            self.resourceTimeout = resourceTimeout
            self.handlerTimeout = handlerTimeout
            self.connectivityTimeout = connectivityTimeout
        }
    }

    package private(set) var state = State.suspended
    package private(set) var attempts = 0
    private var limits: Limits
    private var resourceDeadline: Int64?
    private var lastActivity: Int64 = 0
    /// The time for which earlier attempts have waited for a server that sent nothing.
    private var earlierSilence: Int64 = 0
    private var handlerSince: Int64?
    private var isReceiverFull = false
    /// The end of the backoff of a suspended task.
    private var backsOffUntil: Int64?
    /// The end of the time to wait for connectivity, if the task waits for it.
    private var waitsUntil: Int64 = .max
    /// The remaining time to wait for connectivity after the present wait.
    private var remainingWait: Int64

    package init(limits: Limits) {
        self.limits = limits
        remainingWait = limits.connectivityTimeout
    }

    /// Removes the limit of the time to wait for connectivity: a data task has become a download.
    package mutating func removeConnectivityTimeout() {
        limits.connectivityTimeout = .max
        remainingWait = .max
    }

    /// The nanoseconds until the resource timeout.
    package func remainingTime(now: Int64) -> Int64 { (resourceDeadline ?? .max) - max(0, now) }

    /// The nanoseconds for which the server has sent nothing, in this attempt and in earlier ones.
    package func silence(now: Int64) -> Int64 {
        guard state == .running, handlerSince == nil, !isReceiverFull else { return earlierSilence }
        return earlierSilence.addingSaturated(max(0, now - lastActivity))
    }

    /// Whether the server has sent nothing for the request timeout.
    package func isSilent(now: Int64) -> Bool { silence(now: now) >= limits.requestTimeout }

    /// Whether earlier attempts have waited for a server that sent nothing.
    package var hasEarlierSilence: Bool { earlierSilence > 0 }

    private var silenceDeadline: Int64 { lastActivity.addingSaturated(max(0, limits.requestTimeout - earlierSilence)) }

    /// The latest time at which ``Event/deadlineReached`` is due; `nil` if no deadline is pending.
    package var deadline: Int64? {
        var next: Int64?
        switch state {
        case .finished: return nil
        case .suspended, .suspendedWithTransfer, .waiting: next = nil
        case .waitingForConnectivity: next = waitsUntil == .max ? nil : waitsUntil
        case .running:
            if let handlerSince {
                next = handlerSince.addingSaturated(limits.handlerTimeout)
            } else {
                next = isReceiverFull ? nil : silenceDeadline
            }
        case .backingOff(let until): next = until
        }
        guard let resourceDeadline else { return next }
        return min(next ?? resourceDeadline, resourceDeadline)
    }

    /// Takes an event. An event that is impossible in the current state changes nothing.
    package mutating func handle(_ event: Event, now: Int64) -> [Action] {
        switch (event, state) {
        case (_, .finished): return []
        case (.resume, .suspended):
            if resourceDeadline == nil { resourceDeadline = now.addingSaturated(limits.resourceTimeout) }
            if let until = backsOffUntil {
                backsOffUntil = nil
                state = .backingOff(until: until)
                return [.reportResumed]
            }
            state = .waiting
            return [.reportResumed, .enqueue]
        case (.resume, .suspendedWithTransfer):
            state = .running
            lastActivity = now
            if handlerSince != nil { handlerSince = now }
            return [.reportResumed, .resumeTransfer]
        case (.suspend, .waiting):
            state = .suspended
            return [.dequeue, .reportSuspended]
        case (.suspend, .running):
            state = .suspendedWithTransfer
            return [.suspendTransfer, .reportSuspended]
        case (.suspend, .backingOff(let until)):
            state = .suspended
            backsOffUntil = until
            return [.reportSuspended]
        case (.suspend, .waitingForConnectivity):
            state = .suspended
            remainingWait = limits.connectivityTimeout
            return [.reportSuspended]
        case (.admitted, .waiting):
            state = .running
            attempts += 1
            lastActivity = now
            isReceiverFull = false
            return [.begin(attempt: attempts)]
        case (.activity, .running):
            lastActivity = now
            return []
        case (.silenceEnded, _):
            (lastActivity, earlierSilence) = (now, 0)
            return []
        case (.attemptFailed, _):
            earlierSilence = silence(now: now)
            // Counted once.
            lastActivity = now
            return []
        case (.receiverFull, .running), (.receiverFull, .suspendedWithTransfer):
            isReceiverFull = true
            return []
        case (.receiverReady, .running), (.receiverReady, .suspendedWithTransfer):
            isReceiverFull = false
            lastActivity = now
            return []
        case (.handlerAsked, .running), (.handlerAsked, .suspendedWithTransfer):
            handlerSince = now
            return []
        case (.handlerAnswered, .running), (.handlerAnswered, .suspendedWithTransfer):
            handlerSince = nil
            lastActivity = now
            return []
        case (.ended, .running), (.ended, .suspendedWithTransfer):
            state = .finished
            return [.releaseQueueSlot, .finish(.ended)]
        case (.ended, .waiting):
            state = .finished
            return [.dequeue, .finish(.ended)]
        case (.attemptEnded(let delay), .running):
            handlerSince = nil
            guard delay > 0 else {
                state = .waiting
                return [.releaseQueueSlot, .enqueue]
            }
            state = .backingOff(until: now.addingSaturated(delay))
            return [.releaseQueueSlot]
        case (.attemptEndedOffline, .running):
            handlerSince = nil
            waitForConnectivity(now)
            return [.releaseQueueSlot]
        case (.networkLost, .backingOff):
            waitForConnectivity(now)
            return []
        case (.networkRestored(let delay), .waitingForConnectivity), (.networkRestored(let delay), .backingOff):
            if state == .waitingForConnectivity { remainingWait = waitsUntil == .max ? .max : max(0, waitsUntil - now) }
            guard delay > 0 else {
                state = .waiting
                return [.enqueue]
            }
            state = .backingOff(until: now.addingSaturated(delay))
            return []
        case (.attemptEnded(let delay), .suspendedWithTransfer):
            handlerSince = nil
            state = .suspended
            if delay > 0 { backsOffUntil = now.addingSaturated(delay) }
            return [.releaseQueueSlot]
        case (.attemptEndedOffline, .suspendedWithTransfer):
            handlerSince = nil
            state = .suspended
            return [.releaseQueueSlot]
        case (.postponed(let delay), .backingOff):
            state = .backingOff(until: now.addingSaturated(delay))
            return []
        case (.answered, _):
            remainingWait = limits.connectivityTimeout
            return []
        case (.cancel, _): return finish(.cancelled)
        case (.deadlineReached, _): return timePassed(now)
        case (.resume, _), (.suspend, _), (.admitted, _), (.activity, _), (.receiverFull, _), (.receiverReady, _),
            (.handlerAsked, _), (.handlerAnswered, _), (.ended, _),
            (.attemptEnded, _), (.postponed, _), (.attemptEndedOffline, _), (.networkLost, _), (.networkRestored, _):
            return []
        }
    }

    private mutating func timePassed(_ now: Int64) -> [Action] {
        if let resourceDeadline, resourceDeadline <= now { return finish(.resourceTimedOut) }
        switch state {
        case .running:
            if let handlerSince {
                return handlerSince.addingSaturated(limits.handlerTimeout) <= now ? finish(.handlerTimedOut) : []
            }
            return !isReceiverFull && silenceDeadline <= now ? [.failAttemptByTimeout] : []
        case .backingOff(let until) where until <= now:
            state = .waiting
            return [.enqueue]
        case .waitingForConnectivity where waitsUntil <= now: return finish(.connectivityTimedOut)
        case .backingOff, .suspended, .suspendedWithTransfer, .waiting, .waitingForConnectivity, .finished: return []
        }
    }

    private mutating func waitForConnectivity(_ now: Int64) {
        waitsUntil = now.addingSaturated(remainingWait)
        state = .waitingForConnectivity
    }

    private mutating func finish(_ reason: Reason) -> [Action] {
        defer { state = .finished }
        switch state {
        case .waiting: return [.dequeue, .finish(reason)]
        case .running, .suspendedWithTransfer: return [.abortAttempt, .releaseQueueSlot, .finish(reason)]
        case .suspended, .backingOff, .waitingForConnectivity: return [.finish(reason)]
        case .finished: return []
        }
    }
}
