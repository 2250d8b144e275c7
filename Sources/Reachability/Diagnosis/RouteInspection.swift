/// The kernel's present route to a destination, and the neighbor to which it leads.
package struct RouteInspection: Hashable, Sendable {
    package var query: RouteQuery
    package var route: RouteAnswer
    package var neighbor: NeighborAnswer

    /// Creates an inspection without answers.
    package init(_ query: RouteQuery, route: RouteAnswer = .refused(errno: 0), neighbor: NeighborAnswer = .unknown) {
        self.query = query
        self.route = route
        self.neighbor = neighbor
    }

    /// The route; `nil` if the kernel refused it or did not answer.
    package var chosen: ChosenRoute? {
        if case .route(let route) = route { route } else { nil }
    }

    /// Whether the destination is an address of this machine.
    package var isLocal: Bool { chosen?.kind == .local || query.destination.isLoopback }

    /// Whether the destination is on the link, without a router before it.
    package var isOnLink: Bool { chosen.map { $0.kind != .local && $0.gateway == nil } ?? false }

    /// The neighbor that receives the packets; `nil` for a destination on this machine, and without a route.
    package var nextHop: Neighbor.Key? {
        guard let route = chosen, !isLocal else { return nil }
        return Neighbor.Key(interface: route.interface, address: route.gateway ?? query.destination)
    }
}
