extension DurableSession {
    /// The events of tasks without a registered handler, in the order in which the tasks ended.
    ///
    /// ```swift
    /// for await event in session.events {
    ///     print(event.task.url, event.outcome)
    ///     try await event.acknowledge()
    /// }
    /// ```
    ///
    /// - An event has one receiver: the registered handler that its task names, or else this sequence. The sequence also delivers events
    ///   that name a handler of an earlier process (``DurableSession/unknownHandlers``).
    /// - A process receives each event once, beginning with those of earlier processes. An event that has not been acknowledged is
    ///   delivered again when the identifier is opened next. If the disk refuses the acknowledgement, the same process receives the event
    ///   again ten seconds later.
    /// - Several iterators share the events: each event goes to one of them.
    /// - The journal keeps unread events, and drops none. They count toward ``DurableLimits/tasks``.
    /// - Iteration ends when the session closes, or when the iterating task is canceled. An event that no iterator has received goes to
    ///   the next iterator.
    ///
    /// The sequence and its iterators retain the session, so it stays open while a task iterates.
    public var events: Events { Events(session: self) }

    /// The asynchronous sequence of the events that no registered handler receives.
    public struct Events: AsyncSequence, Sendable {
        /// The end of one task.
        public typealias Element = DurableEvent
        /// The sequence does not throw: it ends when the session closes.
        public typealias Failure = Never

        let session: DurableSession

        /// Creates an iterator, which shares the events with every other iterator of the session.
        public func makeAsyncIterator() -> Iterator { Iterator(session: session) }

        /// An iterator over the events of a session.
        public struct Iterator: AsyncIteratorProtocol {
            let session: DurableSession

            /// Returns the next event; `nil` when the session is closed, or when the task is canceled.
            public mutating func next() async -> DurableEvent? { await session.coordinator.nextEvent() }

            /// Returns the next event to a caller on any actor; `nil` when the session is closed, or when the task is canceled.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> DurableEvent? {
                await session.coordinator.nextEvent()
            }
        }
    }
}
