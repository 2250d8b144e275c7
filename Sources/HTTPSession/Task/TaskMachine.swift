internal import Pacing

/// The life of a task, as events and actions. Times are nanoseconds on a clock that does not stop while the task waits.
///
/// ```
///              resume            admitted             ended
///  suspended ─────────▶ waiting ──────────▶ running ─────────▶ finished
///   ▲     ▲ ▲              │ ▲               │   │ ended(again)    ▲
///   │     │ └───suspend────┘ └──time──┐      │   ▼                 │ cancel, time: from every state
///   │     └─────────suspend───────────┴─ backing off               │
///   └───────────────suspend──────────────────┘ (the transfer is held, and keeps its place)
/// ```
///
/// A task whose network is gone waits for it as one that backs off waits for its time. One that is suspended while it backs off goes on
/// backing off when it is resumed, until the same moment.
package struct TaskMachine: Sendable {
    /// Where a task is.
    package enum State: Hashable, Sendable {
        /// Not started, or stopped while nothing was under way.
        case suspended
        /// Stopped in the middle of a transfer, which is held.
        case suspendedHoldingTransfer
        /// In the session's queue.
        case waiting
        case running
        /// Until the moment given, before another attempt.
        case backingOff(until: Int64)
        /// Until somebody says that the network is back.
        case waitingForConnectivity
        case finished
    }

    package enum Event: Sendable {
        case resume
        case suspend
        /// The queue has a place for it.
        case admitted
        /// A byte went or came, or a handler answered.
        case activity
        /// The response's reader or file takes no more for now: the time that this takes is not the server's.
        case receiverFull
        /// It takes more again.
        case receiverReady
        /// A handler of the user's is asked, or has answered: its time is its own, not the server's.
        case handlerAsked
        case handlerAnswered
        /// The attempt is over, and so is the task.
        case ended
        /// The attempt is over, and another may begin so many nanoseconds from now.
        case endedForNow(delay: Int64)
        /// The attempt that was to begin has to wait so many nanoseconds more.
        case postponed(delay: Int64)
        /// The attempt is over, and another may begin when the network is back.
        case endedUntilConnected
        /// What the task backs off from is the network's absence: it waits for that instead.
        case networkIsGone
        /// It may go on, after so many nanoseconds.
        case networkIsBack(delay: Int64)
        case cancel
        /// The time may have come for something; see ``TaskMachine/deadline``.
        case time
    }

    package enum Action: Hashable, Sendable {
        case enqueue
        case dequeue
        /// Begin an attempt; the first is 1.
        case begin(attempt: Int)
        case hold
        case letGo
        /// End the attempt under way.
        case abort
        /// Nothing came or went for the request timeout: the attempt has failed, and ``Event/ended`` or ``Event/endedForNow(delay:)``
        /// says what follows.
        case failTimedOut
        /// The place in the queue's count is free.
        case leave
        case finish(Reason)
        case announceResumed
        case announceSuspended
    }

    package enum Reason: Hashable, Sendable {
        /// By what the attempt brought.
        case ended
        case cancelled
        case resourceTimedOut
        case handlerTimedOut
    }

    package struct Limits: Hashable, Sendable {
        package var requestTimeout: Int64
        package var resourceTimeout: Int64
        package var handlerTimeout: Int64

        package init(requestTimeout: Int64, resourceTimeout: Int64, handlerTimeout: Int64) {
            self.requestTimeout = requestTimeout
            self.resourceTimeout = resourceTimeout
            self.handlerTimeout = handlerTimeout
        }
    }

    package private(set) var state = State.suspended
    package private(set) var attempts = 0
    private let limits: Limits
    private var resourceDeadline: Int64?
    private var lastActivity: Int64 = 0
    private var handlerSince: Int64?
    private var isReceiverFull = false
    /// Until when the suspended task would back off.
    private var backsOffUntil: Int64?

    package init(limits: Limits) { self.limits = limits }

    /// Nanoseconds until the resource timeout.
    package func remainingTime(now: Int64) -> Int64 { (resourceDeadline ?? .max) - max(0, now) }

    /// When ``Event/time`` is due at the latest; `nil`: never.
    package var deadline: Int64? {
        var next: Int64?
        switch state {
        case .finished: return nil
        case .suspended, .suspendedHoldingTransfer, .waiting, .waitingForConnectivity: next = nil
        case .running:
            if let handlerSince {
                next = handlerSince.addingSaturated(limits.handlerTimeout)
            } else {
                next = isReceiverFull ? nil : lastActivity.addingSaturated(limits.requestTimeout)
            }
        case .backingOff(let until): next = until
        }
        guard let resourceDeadline else { return next }
        return min(next ?? resourceDeadline, resourceDeadline)
    }

    /// Takes an event; what is not possible in this state changes nothing.
    package mutating func handle(_ event: Event, now: Int64) -> [Action] {
        switch (event, state) {
        case (_, .finished): return []
        case (.resume, .suspended):
            if resourceDeadline == nil { resourceDeadline = now.addingSaturated(limits.resourceTimeout) }
            if let until = backsOffUntil {
                backsOffUntil = nil
                state = .backingOff(until: until)
                return [.announceResumed]
            }
            state = .waiting
            return [.announceResumed, .enqueue]
        case (.resume, .suspendedHoldingTransfer):
            state = .running
            lastActivity = now
            if handlerSince != nil { handlerSince = now }
            return [.announceResumed, .letGo]
        case (.suspend, .waiting):
            state = .suspended
            return [.dequeue, .announceSuspended]
        case (.suspend, .running):
            state = .suspendedHoldingTransfer
            return [.hold, .announceSuspended]
        case (.suspend, .backingOff(let until)):
            state = .suspended
            backsOffUntil = until
            return [.announceSuspended]
        case (.suspend, .waitingForConnectivity):
            state = .suspended
            return [.announceSuspended]
        case (.admitted, .waiting):
            state = .running
            attempts += 1
            lastActivity = now
            isReceiverFull = false
            return [.begin(attempt: attempts)]
        case (.activity, .running):
            lastActivity = now
            return []
        case (.receiverFull, .running), (.receiverFull, .suspendedHoldingTransfer):
            isReceiverFull = true
            return []
        case (.receiverReady, .running), (.receiverReady, .suspendedHoldingTransfer):
            isReceiverFull = false
            lastActivity = now
            return []
        case (.handlerAsked, .running), (.handlerAsked, .suspendedHoldingTransfer):
            handlerSince = now
            return []
        case (.handlerAnswered, .running), (.handlerAnswered, .suspendedHoldingTransfer):
            handlerSince = nil
            lastActivity = now
            return []
        case (.ended, .running), (.ended, .suspendedHoldingTransfer):
            state = .finished
            return [.leave, .finish(.ended)]
        case (.ended, .waiting):
            state = .finished
            return [.dequeue, .finish(.ended)]
        case (.endedForNow(let delay), .running):
            handlerSince = nil
            guard delay > 0 else {
                state = .waiting
                return [.leave, .enqueue]
            }
            state = .backingOff(until: now.addingSaturated(delay))
            return [.leave]
        case (.endedUntilConnected, .running):
            handlerSince = nil
            state = .waitingForConnectivity
            return [.leave]
        case (.networkIsGone, .backingOff):
            state = .waitingForConnectivity
            return []
        case (.networkIsBack(let delay), .waitingForConnectivity), (.networkIsBack(let delay), .backingOff):
            guard delay > 0 else {
                state = .waiting
                return [.enqueue]
            }
            state = .backingOff(until: now.addingSaturated(delay))
            return []
        case (.endedForNow(let delay), .suspendedHoldingTransfer):
            handlerSince = nil
            state = .suspended
            if delay > 0 { backsOffUntil = now.addingSaturated(delay) }
            return [.leave]
        case (.endedUntilConnected, .suspendedHoldingTransfer):
            handlerSince = nil
            state = .suspended
            return [.leave]
        case (.postponed(let delay), .backingOff):
            state = .backingOff(until: now.addingSaturated(delay))
            return []
        case (.cancel, _): return finish(.cancelled)
        case (.time, _): return timePassed(now)
        case (.resume, _), (.suspend, _), (.admitted, _), (.activity, _), (.receiverFull, _), (.receiverReady, _),
            (.handlerAsked, _), (.handlerAnswered, _), (.ended, _),
            (.endedForNow, _), (.postponed, _), (.endedUntilConnected, _), (.networkIsGone, _), (.networkIsBack, _):
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
            return !isReceiverFull && lastActivity.addingSaturated(limits.requestTimeout) <= now ? [.failTimedOut] : []
        case .backingOff(let until) where until <= now:
            state = .waiting
            return [.enqueue]
        case .backingOff, .suspended, .suspendedHoldingTransfer, .waiting, .waitingForConnectivity, .finished: return []
        }
    }

    private mutating func finish(_ reason: Reason) -> [Action] {
        defer { state = .finished }
        switch state {
        case .waiting: return [.dequeue, .finish(reason)]
        case .running, .suspendedHoldingTransfer: return [.abort, .leave, .finish(reason)]
        case .suspended, .backingOff, .waitingForConnectivity: return [.finish(reason)]
        case .finished: return []
        }
    }
}
