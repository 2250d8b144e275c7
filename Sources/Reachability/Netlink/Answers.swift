extension RouteAnswer {
    /// What the kernel's reply to RTM_GETROUTE says; `nil` when there is none.
    init?(_ messages: [NetlinkMessage]) {
        switch messages.first?.event {
        case .route(let route, _, _):
            guard let hop = route.nextHops.first else { return nil }
            self = .route(
                ChosenRoute(
                    kind: route.kind, interface: hop.interface, gateway: hop.gateway, source: route.preferredSource,
                    table: route.key.table
                )
            )
        case .done(let errno) where errno != 0: self = .refused(errno: errno)
        default: return nil
        }
    }
}

extension Neighbour.State {
    /// What the kernel's reply to RTM_GETNEIGH says; `nil` when there is no such neighbour.
    init?(_ messages: [NetlinkMessage]) {
        guard case .neighbour(let neighbour) = messages.first?.event else { return nil }
        self = neighbour.state
    }
}
