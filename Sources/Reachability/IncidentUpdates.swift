internal import EventLoop

extension Incident {
    /// The incidents of a monitor. Each iteration begins with those that are open. A slow task receives the latest state of each
    /// incident that has changed, and of incidents that are over the latest 1,000.
    public struct Updates: AsyncSequence, Sendable {
        /// The state of one incident.
        public typealias Element = Incident
        /// The sequence never fails.
        public typealias Failure = Never

        let hub: Broadcast<IncidentBatch>
        // Monitoring continues while the sequence or one of its iterators exists.
        let owner: any Sendable

        /// Creates a subscription, which begins with the open incidents.
        public func makeAsyncIterator() -> Iterator { Iterator(owner: owner, subscription: hub.subscribe()) }

        /// A subscription to the incidents.
        public struct Iterator: AsyncIteratorProtocol {
            let owner: any Sendable
            let subscription: Broadcast<IncidentBatch>.Subscription
            // The received incidents in reverse order, so that the last element is the next one.
            private var taken: [Incident] = []

            init(owner: any Sendable, subscription: Broadcast<IncidentBatch>.Subscription) {
                (self.owner, self.subscription) = (owner, subscription)
            }

            /// Waits for the next incident that opens, grows or is over; `nil` at the end, and if the task is canceled.
            public mutating func next() async -> Incident? {
                // The batch of a new subscriber is empty if no incident is open.
                while taken.isEmpty, let batch = await subscription.next() { taken = batch.ordered.reversed() }
                return taken.popLast()
            }

            /// Waits for the next incident that opens, grows or is over, in the caller's isolation; `nil` at the end, and if the
            /// task is canceled.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> Incident? {
                while taken.isEmpty, let batch = await subscription.next() { taken = batch.ordered.reversed() }
                return taken.popLast()
            }
        }
    }
}

extension PathMonitor {
    /// The incidents of all servers that are monitored on this monitor, starting with those that are open. Any
    /// number of tasks may iterate.
    ///
    /// ```swift
    /// for await incident in monitor.incidents {
    ///     print(incident.state, incident.subject, incident.targetCount)     // open gateway 192.0.2.1 200
    /// }
    /// ```
    public var incidents: Incident.Updates { Incident.Updates(hub: core.incidents, owner: self) }
}

extension ServerGroup {
    /// The incidents of the group's path monitor (``PathMonitor/incidents``): those of the group's servers, and of
    /// other servers on the same monitor. A group without a path monitor of yours has a monitor of its own.
    public var incidents: Incident.Updates { Incident.Updates(hub: hubOfIncidents, owner: self) }
}
