/// One probe's outcome.
package struct ProbeReport: Hashable, Sendable {
    package var endpoint: Endpoint
    /// The round trip of the handshake; `nil` when it failed.
    package var roundTrip: Duration?
    /// The address that answered, or was tried last.
    package var address: IPAddress?
    /// How long the name took to resolve; `nil` for addresses.
    package var resolution: Duration?
    /// How long connecting took, from the first attempt; `nil` when none was made.
    package var connection: Duration?
    /// Why it failed.
    package var cause: Cause?
    package var moment: Moment

    package init(
        endpoint: Endpoint, roundTrip: Duration? = nil, address: IPAddress? = nil, resolution: Duration? = nil,
        connection: Duration? = nil, cause: Cause? = nil, moment: Moment
    ) {
        self.endpoint = endpoint
        self.roundTrip = roundTrip
        self.address = address
        self.resolution = resolution
        self.connection = connection
        self.cause = cause
        self.moment = moment
    }

    package var succeeded: Bool { cause == nil }
}
