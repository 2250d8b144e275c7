extension RouteAnswer {
    /// What the kernel's reply to RTM_GETROUTE says; `nil` when there is none.
    ///
    /// Asked for one interface, the kernel shows the whole route that it matched: of several next hops the one over that
    /// interface counts. Where nexthop objects are not spelt out (`nexthop_compat_mode` 0) only the interface is known.
    init?(_ messages: [NetlinkMessage], to query: RouteQuery) {
        switch messages.first?.event {
        case .route(let route, _, _):
            let unspelt = query.interface != 0 && route.nexthopObject != 0 ? Route.NextHop(interface: query.interface) : nil
            let bound = route.isMultipath ? route.nextHops.first { $0.interface == query.interface } : nil
            guard let hop = bound ?? route.firstHop ?? unspelt else {
                // A route that refuses has no next hop.
                self = .refused(errno: RouteAnswer.noRoute)
                return
            }
            var chosen = ChosenRoute(
                kind: route.kind, interface: hop.interface, gateway: hop.gateway, source: route.preferredSource,
                table: route.key.table
            )
            if query.showsAll { chosen.nextHops = route.nextHops }
            self = .route(chosen)
        case .done(let errno) where errno != 0: self = .refused(errno: query.interface == 0 ? errno : RouteAnswer.noRoute)
        default: return nil
        }
    }
}

extension RouteAnswer {
    /// ENETUNREACH.
    private static let noRoute: Int32 = 101
}

extension NeighborAnswer {
    /// What the kernel's reply to RTM_GETNEIGH says. Kernels before 5.0 refuse the question (EOPNOTSUPP).
    init(_ messages: [NetlinkMessage]) {
        switch messages.first?.event {
        case .neighbor(let neighbor): self = .state(neighbor.state)
        case .done(errno: NeighborAnswer.noEntry): self = .absent
        default: self = .unknown
        }
    }

    /// ENOENT.
    private static let noEntry: Int32 = 2
}
