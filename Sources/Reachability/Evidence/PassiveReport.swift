/// The outcome of a connection that another part of the program made to a server.
package struct PassiveReport: Hashable, Sendable {
    package enum Outcome: Hashable, Sendable {
        /// The server answered. `roundTrip` is the time from the TCP SYN to its answer, if it was measured.
        case success(address: IPAddress?, roundTrip: Duration?)
        /// No connection was possible, or it ended early.
        case failure
    }

    /// The host and port of the connection.
    package var endpoint: Endpoint
    package var outcome: Outcome

    package init(_ endpoint: Endpoint, _ outcome: Outcome) {
        self.endpoint = endpoint
        self.outcome = outcome
    }
}
