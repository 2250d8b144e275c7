internal import CLibnl
internal import CLinux

extension NetlinkDecoder {
    /// RTM_NEWROUTE and RTM_DELROUTE, which is also how RTM_GETROUTE is answered.
    static func route(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: rtmsg.self) else { return .malformed }
        // Multicast routing (128, 129) and MPLS have tables of their own.
        guard header.rtm_family == UInt8(AF_INET) || header.rtm_family == UInt8(AF_INET6) else { return .ignored }
        // Cloned routes are exceptions such as path MTUs, which are no part of a table; but the answer to a question is one too.
        let isAnswer = message.pointee.nlmsg_seq != 0 && Int32(message.pointee.nlmsg_flags) & NLM_F_MULTI == 0
        guard isAnswer || header.rtm_flags & UInt32(RTM_F_CLONED) == 0 else { return .ignored }
        let more = RouteAttributes(message)
        let decoded = withObject(message) { object in decode(object, header, more) }
        guard let (route, isDead) = decoded else { return .malformed }
        if Int(message.pointee.nlmsg_type) == RTM_DELROUTE { return .routeRemoved(route) }
        return .route(route, replaces: Int32(message.pointee.nlmsg_flags) & NLM_F_REPLACE != 0, isDead: isDead)
    }

    private static func decode(_ object: OpaquePointer, _ header: rtmsg, _ more: RouteAttributes) -> (Route, isDead: Bool)? {
        let isV4 = header.rtm_family == UInt8(AF_INET)
        let nowhere = isV4 ? IPAddress(v4: 0) : IPAddress(v6: 0, 0)
        var hops: [Route.NextHop] = []
        var hadDead = false
        let count = rtnl_route_get_nnexthops(object)
        for number in 0..<count {
            guard let hop = rtnl_route_nexthop_n(object, number) else { continue }
            // One next hop has its flags in the route's header, several have them each.
            let flags = count == 1 ? header.rtm_flags : UInt32(rtnl_route_nh_get_flags(hop))
            if flags & UInt32(RTNH_F_DEAD) != 0 {
                hadDead = true
                continue
            }
            let decoded = Route.NextHop(
                interface: UInt32(bitPattern: rtnl_route_nh_get_ifindex(hop)),
                gateway: address(rtnl_route_nh_get_gateway(hop)) ?? address(rtnl_route_nh_get_via(hop)),
                weight: UInt16(rtnl_route_nh_get_weight(hop)) + 1,
                isOnLink: flags & UInt32(RTNH_F_ONLINK) != 0
            )
            // libnl invents an empty next hop for routes that have none, such as `unreachable`.
            if decoded.interface != 0 || decoded.gateway != nil { hops.append(decoded) }
        }
        let key = Route.Key(
            table: rtnl_route_get_table(object),
            metric: more.metric,
            destination: IPPrefix(address(rtnl_route_get_dst(object)) ?? nowhere, length: header.rtm_dst_len),
            source: header.rtm_src_len == 0
                ? nil : address(rtnl_route_get_src(object)).map { IPPrefix($0, length: header.rtm_src_len) },
            typeOfService: header.rtm_tos
        )
        let route = Route(
            key, kind: Route.Kind(rawValue: header.rtm_type), nextHops: hops, origin: header.rtm_protocol,
            scope: header.rtm_scope,
            preferredSource: address(rtnl_route_get_pref_src(object)), nexthopObject: more.nexthopObject,
            fingerprint: more.fingerprint
        )
        return (route, hadDead && hops.isEmpty)
    }
}

/// What libnl-route 3.7 does not keep of a route message.
private struct RouteAttributes {
    var nexthopObject: UInt32 = 0
    // All 32 bits are a metric; libnl's cannot be told from its "not given".
    var metric: UInt32 = 0
    var fingerprint: UInt64 = 0

    init(_ message: UnsafeMutablePointer<nlmsghdr>) {
        var digest = Fingerprint()
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<rtmsg>.size) {
            switch attribute.type {
            case 6: metric = attribute.number() ?? 0  // RTA_PRIORITY
            case 30: nexthopObject = attribute.number() ?? 0  // RTA_NH_ID
            case 8, 20, 21, 22: digest.add(attribute.type, attribute.bytes)  // metrics, preference, encapsulation and its type
            default: break
            }
        }
        fingerprint = digest.value
    }
}
