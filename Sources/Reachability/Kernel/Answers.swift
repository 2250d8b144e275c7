extension RouteAnswer {
    /// Creates an answer from the kernel's reply to RTM_GETROUTE; `nil` if there is no reply.
    ///
    /// For a query with an interface, the kernel returns the complete matching route. The next hop over that interface is used.
    /// If the kernel does not list the hops of nexthop objects (`nexthop_compat_mode` 0), only the interface is known.
    init?(_ messages: [NetlinkMessage], to query: RouteQuery) {
        switch messages.first?.event {
        case .route(let route, _, _):
            let unlistedHop = query.interface != 0 && route.nexthopObject != 0 ? Route.NextHop(interface: query.interface) : nil
            let bound = route.isMultipath ? route.nextHops.first { $0.interface == query.interface } : nil
            guard let hop = bound ?? route.firstHop ?? unlistedHop else {
                // A route that refuses packets has no next hop.
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
    /// The number of ENETUNREACH.
    static let noRoute: Int32 = 101
}

extension NeighborAnswer {
    /// Creates an answer from the kernel's reply to RTM_GETNEIGH. Kernels before 5.0 refuse the query (EOPNOTSUPP).
    init(_ messages: [NetlinkMessage]) {
        switch messages.first?.event {
        case .neighbor(let neighbor):
            self = .state(
                neighbor.state, confirmedAgo: neighbor.confirmedNanosecondsAgo, linkAddress: neighbor.hardwareAddress)
        case .done(errno: NeighborAnswer.noEntry): self = .absent
        default: self = .unknown
        }
    }

    /// The number of ENOENT.
    private static let noEntry: Int32 = 2
}
