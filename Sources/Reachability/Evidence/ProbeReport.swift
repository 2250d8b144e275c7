/// The outcome of one probe.
package struct ProbeReport: Hashable, Sendable {
    package var endpoint: Endpoint
    /// The round trip of the handshake; `nil` if it failed, or if a retransmission prevents the measurement.
    package var roundTrip: Duration?
    /// The number of SYN segments that remained unanswered before a handshake completed; 0 if none did.
    package var lostPackets: Int
    /// The address that answered, or the last one that was tried.
    package var address: IPAddress?
    /// The duration of the name's resolution; `nil` for addresses.
    package var resolution: Duration?
    /// The answer to the name's lookup, with its evidence; `nil` for addresses.
    package var lookup: LookupAnswer?
    /// The duration of the connection attempts, from the start of the first; `nil` if none was made.
    package var connection: Duration?
    /// The result of the TLS handshake and the HTTP exchange; `nil` if there was none.
    package var levels: LevelResult?
    /// The cause of the failure; `nil` if the probe succeeded.
    package var cause: Cause?
    package var moment: Moment
    /// The proxy through which the target was probed; `nil` without one.
    package var proxy: Endpoint?
    /// Whether the next probe, which follows at once, examines the failure in another way.
    package var isProvisional = false

    package init(
        endpoint: Endpoint, roundTrip: Duration? = nil, lostPackets: Int = 0, address: IPAddress? = nil,
        resolution: Duration? = nil,
        lookup: LookupAnswer? = nil,
        connection: Duration? = nil, cause: Cause? = nil, moment: Moment
    ) {
        self.endpoint = endpoint
        self.roundTrip = roundTrip
        self.lostPackets = lostPackets
        self.address = address
        self.resolution = resolution
        self.lookup = lookup
        self.connection = connection
        self.cause = cause
        self.moment = moment
    }

    package var succeeded: Bool { cause == nil }
}
