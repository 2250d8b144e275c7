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
        guard let fields = RouteFields(message, header) else { return .malformed }
        let route = fields.route
        if Int(message.pointee.nlmsg_type) == RTM_DELROUTE { return .routeRemoved(route) }
        return .route(route, replaces: Int32(message.pointee.nlmsg_flags) & NLM_F_REPLACE != 0, isDead: fields.isDead)
    }

    /// What is left of the lifetime of a default route for IPv6 (`RTA_CACHEINFO`); `nil` for one without, and when it is over. Only
    /// these are looked at: a table may have a million others.
    static func routeLifetime(_ message: UnsafeMutablePointer<nlmsghdr>) -> Duration? {
        guard Int(message.pointee.nlmsg_type) == RTM_NEWROUTE, let header = fixedHeader(message, as: rtmsg.self),
            header.rtm_family == UInt8(AF_INET6), header.rtm_dst_len == 0
        else { return nil }
        let cacheInfo: Int32 = 12
        let attributes = AttributeSequence(message, headerSize: MemoryLayout<rtmsg>.size)
        guard let bytes = attributes.first(where: { $0.type == cacheInfo })?.bytes, bytes.count >= 12 else { return nil }
        // struct rta_cacheinfo: references, last use, then what is left in hundredths of a second.
        let centiseconds = bytes.loadUnaligned(fromByteOffset: 8, as: Int32.self)
        return centiseconds > 0 ? .milliseconds(Int64(centiseconds) * 10) : nil
    }
}

/// The attributes of one route message. Read one by one: a table may have a million routes, and an object of libnl-route takes a
/// dozen allocations.
private struct RouteFields {
    private let header: rtmsg
    private var table: UInt32
    private var metric: UInt32 = 0
    private var destination: IPAddress?
    private var source: IPAddress?
    private var preferredSource: IPAddress?
    private var only: Route.NextHop
    private var several: [Route.NextHop] = []
    private var nexthopObject: UInt32 = 0
    private var digest = Fingerprint()
    private var dead: [Route.NextHop] = []

    /// `nil` when an address has the wrong size, or the next hops make no sense.
    init?(_ message: UnsafeMutablePointer<nlmsghdr>, _ header: rtmsg) {
        self.header = header
        table = UInt32(header.rtm_table)
        // One next hop has its flags in the route's header, several have them each.
        only = Route.NextHop(interface: 0, isOnLink: header.rtm_flags & UInt32(RTNH_F_ONLINK) != 0)
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<rtmsg>.size) {
            guard read(attribute) else { return nil }
        }
        if several.isEmpty {
            isDead = header.rtm_flags & UInt32(RTNH_F_DEAD) != 0 || !dead.isEmpty
            several = dead
        }
    }

    /// Whether all its next hops are dead; they are its next hops then.
    private(set) var isDead = false

    private var hasHop: Bool { only.interface != 0 || only.gateway != nil }

    var route: Route {
        let isV4 = header.rtm_family == UInt8(AF_INET)
        let nowhere = isV4 ? IPAddress(v4: 0) : IPAddress(v6: 0, 0)
        let key = Route.Key(
            table: table, metric: metric,
            destination: IPPrefix(destination ?? nowhere, length: header.rtm_dst_len),
            source: header.rtm_src_len == 0 ? nil : source.map { IPPrefix($0, length: header.rtm_src_len) },
            typeOfService: header.rtm_tos
        )
        let kind = Route.Kind(rawValue: header.rtm_type)
        guard several.isEmpty else {
            return Route(
                key, kind: kind, nextHops: several, origin: header.rtm_protocol, scope: header.rtm_scope,
                preferredSource: preferredSource, nexthopObject: nexthopObject, fingerprint: digest.value
            )
        }
        return Route(
            key, kind: kind, only: hasHop ? only : nil, origin: header.rtm_protocol, scope: header.rtm_scope,
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
        case 4: only.interface = attribute.number() ?? 0  // RTA_OIF
        case 5: return take(&only.gateway)  // RTA_GATEWAY
        case 6: metric = attribute.number() ?? 0  // RTA_PRIORITY
        case 7: return take(&preferredSource)  // RTA_PREFSRC
        case 9: return readHops(attribute.bytes)  // RTA_MULTIPATH
        case 15: table = attribute.number() ?? table  // RTA_TABLE
        case 18: only.gateway = attribute.via  // RTA_VIA
        case 30: nexthopObject = attribute.number() ?? 0  // RTA_NH_ID
        case 8, 20, 21, 22: digest.add(attribute.type, attribute.bytes)  // metrics, preference, encapsulation and its type
        default: break
        }
        return true
    }

    // struct rtnexthop: length, flags, weight less one, interface; then attributes as in the message.
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
            if UInt32(entry.rtnh_flags) & UInt32(RTNH_F_DEAD) != 0 { dead.append(hop) } else { several.append(hop) }
            offset += (length + 3) & ~3
        }
        return true
    }
}

extension AttributeSequence.Attribute {
    // struct rtvia: the family in two bytes, then the address.
    fileprivate var via: IPAddress? { bytes.count > 2 ? IPAddress(bytes: UnsafeRawBufferPointer(rebasing: bytes[2...])) : nil }
}
