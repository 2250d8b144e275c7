/// A router on the way to a server that answered a sweep of hop limits, or the server itself.
package struct Hop: Hashable, Sendable {
    /// The hop limits that a sweep tries, from 1. Few routes on the Internet have more than 30 hops.
    package static let limits = 30

    package var address: IPAddress
    /// The number of links to the router; 1 for the first hop.
    package var distance: Int
    package var roundTrip: Duration
    /// Whether the hop is the server.
    package var isServer: Bool

    package init(_ address: IPAddress, distance: Int, roundTrip: Duration = .zero, isServer: Bool = false) {
        self.address = address
        self.distance = distance
        self.roundTrip = roundTrip
        self.isServer = isServer
    }
}
