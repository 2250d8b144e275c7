internal import EventLoop

/// The events of a session as an asynchronous sequence (``HTTPSessionManager/events``).
///
/// ```swift
/// let events = session.events
/// for await event in events {
///     if case .willRetry(let task, let error) = event { print(task, error) }
/// }
/// ```
///
/// A sequence receives the events that occur after it is made. Its iterators share the events. At most 1,000 events wait for a reader. If there
/// are more, the oldest are dropped, and ``SessionEvent/eventsDropped(count:)`` replaces them. The sequence ends with the session. A pending
/// event retains its task, and the task retains its session.
public struct SessionEvents: AsyncSequence, Sendable {
    /// An event of the session.
    public typealias Element = SessionEvent
    /// The sequence cannot fail.
    public typealias Failure = Never
    private let subscription: EventSubscription

    init(_ outbox: SessionOutbox) { subscription = EventSubscription(outbox) }

    /// Creates an iterator. All iterators of a sequence share its events.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: subscription) }

    /// An iterator of a session's events.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: EventSubscription

        /// The next event; `nil` when the session has ended, or the waiting Swift task is canceled.
        public mutating func next() async -> SessionEvent? { await subscription.buffer.next() }

        /// The next event, delivered on the given actor; `nil` when the session has ended, or the waiting Swift task is canceled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SessionEvent? {
            await subscription.buffer.next()
        }
    }
}

/// A place among the receivers of a session's events, until its last reference is released.
final class EventSubscription: Sendable {
    let buffer: EventBuffer
    private let outbox: SessionOutbox

    init(_ outbox: SessionOutbox) {
        self.outbox = outbox
        buffer = outbox.subscribe()
    }

    deinit { outbox.unsubscribe(buffer) }
}

/// The events that wait for the reader of a sequence.
final class EventBuffer: Sendable {
    static let limit = 1_000

    private struct State: Sendable {
        /// `nil` once it is taken, so that its task is released. A ring once it is full: `start` is the oldest.
        var events: [SessionEvent?] = []
        var start = 0
        var droppedCount = 0
        var waiters: [Waiter] = []
        var nextWaiter: UInt64 = 0
        var isFinished = false

        mutating func take() -> SessionEvent? {
            if droppedCount > 0 {
                defer { droppedCount = 0 }
                return .eventsDropped(count: droppedCount)
            }
            guard start < events.count else { return nil }
            defer {
                events[start] = nil
                start += 1
                if start == events.count {
                    events.removeAll(keepingCapacity: true)
                    start = 0
                }
            }
            return events[start]
        }

        /// - Returns: The event that was dropped, to be released outside of the lock.
        mutating func append(_ event: SessionEvent) -> SessionEvent? {
            var dropped: SessionEvent?
            if events.count - start >= limit {
                dropped = events[start]
                events[start] = nil
                start += 1
                droppedCount += 1
            }
            if start >= limit {
                events.removeFirst(start)
                start = 0
            }
            events.append(event)
            return dropped
        }
    }

    private struct Waiter: Sendable {
        let number: UInt64
        let continuation: CheckedContinuation<SessionEvent?, Never>
    }

    private let state = Locked(State())

    func append(_ event: SessionEvent) {
        let (waiter, dropped) = state.withLock { state -> (Waiter?, SessionEvent?) in
            if state.waiters.isEmpty { return (nil, state.append(event)) }
            return (state.waiters.removeFirst(), nil)
        }
        waiter?.continuation.resume(returning: event)
        withExtendedLifetime(dropped) {}
    }

    func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(returning: nil) }
    }

    func next() async -> SessionEvent? {
        let number = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWaiting: Bool
                let event: SessionEvent?
                (isWaiting, event) = state.withLock { state in
                    if let event = state.take() { return (false, event) }
                    guard !state.isFinished, !Task.isCancelled else { return (false, nil) }
                    state.waiters.append(Waiter(number: number, continuation: continuation))
                    return (true, nil)
                }
                if !isWaiting { continuation.resume(returning: event) }
            }
        } onCancel: {
            endWait(number)
        }
    }

    private func endWait(_ number: UInt64) {
        let waiter = state.withLock { state in
            state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
        }
        waiter?.continuation.resume(returning: nil)
    }
}
