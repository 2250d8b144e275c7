internal import CLibnl
internal import CLinux

extension NetlinkDecoder {
    /// Decodes RTM_NEWROUTE and RTM_DELROUTE. RTM_NEWROUTE is also the answer to RTM_GETROUTE.
    static func route(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: rtmsg.self) else { return .malformed }
        // Multicast routing (128, 129) and MPLS have separate tables.
        guard header.rtm_family == UInt8(AF_INET) || header.rtm_family == UInt8(AF_INET6) else { return .ignored }
        // Cloned routes are exceptions, such as path MTUs, and not part of a table. The answer to a query is cloned too.
        let isAnswer = message.pointee.nlmsg_seq != 0 && Int32(message.pointee.nlmsg_flags) & NLM_F_MULTI == 0
        guard isAnswer || header.rtm_flags & UInt32(RTM_F_CLONED) == 0 else { return .ignored }
        guard let fields = RouteFields(message, header) else { return .malformed }
        let route = fields.route
        if Int(message.pointee.nlmsg_type) == RTM_DELROUTE { return .routeRemoved(route) }
        return .route(route, replaces: Int32(message.pointee.nlmsg_flags) & NLM_F_REPLACE != 0, isDead: fields.isDead)
    }

    /// Returns the remaining lifetime of an IPv6 default route (`RTA_CACHEINFO`); `nil` for a route without a lifetime or with an
    /// expired one. Other routes are not checked, because a table may have a million of them.
    static func routeLifetime(_ message: UnsafeMutablePointer<nlmsghdr>) -> Duration? {
        guard Int(message.pointee.nlmsg_type) == RTM_NEWROUTE, let header = fixedHeader(message, as: rtmsg.self),
            header.rtm_family == UInt8(AF_INET6), header.rtm_dst_len == 0
        else { return nil }
        let cacheInfo: Int32 = 12
        let attributes = AttributeSequence(message, headerSize: MemoryLayout<rtmsg>.size)
        guard let bytes = attributes.first(where: { $0.type == cacheInfo })?.bytes, bytes.count >= 12 else { return nil }
        // struct rta_cacheinfo: references, last use, then the remaining time in hundredths of a second.
        let centiseconds = bytes.loadUnaligned(fromByteOffset: 8, as: Int32.self)
        return centiseconds > 0 ? .milliseconds(Int64(centiseconds) * 10) : nil
    }
}

/// The attributes of one route message. They are read one by one: a table may have a million routes, and an object of libnl-route
/// needs a dozen allocations.
private struct RouteFields {
    private let header: rtmsg
    private var table: UInt32
    private var metric: UInt32 = 0
    private var destination: IPAddress?
    private var source: IPAddress?
    private var preferredSource: IPAddress?
    private var singleHop: Route.NextHop
    private var hops: [Route.NextHop] = []
    private var nexthopObject: UInt32 = 0
    private var digest = Fingerprint()
    private var deadHops: [Route.NextHop] = []

    /// Creates the fields; `nil` if an address has the wrong size, or the next hops are malformed.
    init?(_ message: UnsafeMutablePointer<nlmsghdr>, _ header: rtmsg) {
        self.header = header
        table = UInt32(header.rtm_table)
        // A single next hop has its flags in the route's header; several next hops have their own flags.
        singleHop = Route.NextHop(interface: 0, isOnLink: header.rtm_flags & UInt32(RTNH_F_ONLINK) != 0)
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<rtmsg>.size) {
            guard read(attribute) else { return nil }
        }
        if hops.isEmpty {
            isDead = header.rtm_flags & UInt32(RTNH_F_DEAD) != 0 || !deadHops.isEmpty
            hops = deadHops
        }
    }

    /// Whether all next hops are dead. The route then has the dead next hops.
    private(set) var isDead = false

    private var hasHop: Bool { singleHop.interface != 0 || singleHop.gateway != nil }

    var route: Route {
        let isV4 = header.rtm_family == UInt8(AF_INET)
        let unspecified = isV4 ? IPAddress(v4: 0) : IPAddress(v6: 0, 0)
        let key = Route.Key(
            table: table, metric: metric,
            destination: IPPrefix(destination ?? unspecified, length: header.rtm_dst_len),
            source: header.rtm_src_len == 0 ? nil : source.map { IPPrefix($0, length: header.rtm_src_len) },
            typeOfService: header.rtm_tos
        )
        let kind = Route.Kind(rawValue: header.rtm_type)
        guard hops.isEmpty else {
            return Route(
                key, kind: kind, nextHops: hops, origin: header.rtm_protocol, scope: header.rtm_scope,
                preferredSource: preferredSource, nexthopObject: nexthopObject, fingerprint: digest.value
            )
        }
        return Route(
            key, kind: kind, only: hasHop ? singleHop : nil, origin: header.rtm_protocol, scope: header.rtm_scope,
            preferredSource: preferredSource, nexthopObject: nexthopObject, fingerprint: digest.value
        )
    }

    private mutating func read(_ attribute: AttributeSequence.Attribute) -> Bool {
        func take(_ address: inout IPAddress?) -> Bool {
            address = attribute.address
            return address != nil
        }
        switch attribute.type {
        case 1: return take(&destination)  // RTA_DST
        case 2: return take(&source)  // RTA_SRC
        case 4: singleHop.interface = attribute.number() ?? 0  // RTA_OIF
        case 5: return take(&singleHop.gateway)  // RTA_GATEWAY
        case 6: metric = attribute.number() ?? 0  // RTA_PRIORITY
        case 7: return take(&preferredSource)  // RTA_PREFSRC
        case 9: return readHops(attribute.bytes)  // RTA_MULTIPATH
        case 15: table = attribute.number() ?? table  // RTA_TABLE
        case 18: singleHop.gateway = attribute.via  // RTA_VIA
        case 30: nexthopObject = attribute.number() ?? 0  // RTA_NH_ID
        case 8, 20, 21, 22: digest.add(attribute.type, attribute.bytes)  // metrics, preference, encapsulation and its type
        default: break
        }
        return true
    }

    // struct rtnexthop: length, flags, weight minus one, interface; then attributes as in the message.
    private mutating func readHops(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let size = MemoryLayout<rtnexthop>.size
        var offset = 0
        while bytes.count - offset >= size {
            let entry = bytes.loadUnaligned(fromByteOffset: offset, as: rtnexthop.self)
            let length = Int(entry.rtnh_len)
            guard length >= size, length <= bytes.count - offset else { return false }
            var hop = Route.NextHop(
                interface: UInt32(bitPattern: entry.rtnh_ifindex), weight: UInt16(entry.rtnh_hops) + 1,
                isOnLink: UInt32(entry.rtnh_flags) & UInt32(RTNH_F_ONLINK) != 0
            )
            for attribute in AttributeSequence(UnsafeRawBufferPointer(rebasing: bytes[(offset + size)..<(offset + length)])) {
                if attribute.type == 5 {
                    hop.gateway = attribute.address
                } else if attribute.type == 18 {
                    hop.gateway = attribute.via
                }
            }
            if UInt32(entry.rtnh_flags) & UInt32(RTNH_F_DEAD) != 0 { deadHops.append(hop) } else { hops.append(hop) }
            offset += (length + 3) & ~3
        }
        return true
    }
}

extension AttributeSequence.Attribute {
    // struct rtvia: the family in two bytes, then the address.
    fileprivate var via: IPAddress? { bytes.count > 2 ? IPAddress(bytes: UnsafeRawBufferPointer(rebasing: bytes[2...])) : nil }
}
