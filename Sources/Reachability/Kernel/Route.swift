internal import CLibnl
internal import CLinux

/// A route of a routing table, from rtnetlink's RTM_NEWROUTE message (rtnetlink(7)).
package struct Route: Hashable, Sendable {
    /// The key by which the kernel looks up a route. Several routes may have the same key (`ip route append`).
    package struct Key: Hashable, Sendable {
        /// The number of the routing table, 32 bits (`RTA_TABLE`): 254 is main, 255 is local.
        package var table: UInt32
        /// The metric; lower is preferred.
        package var metric: UInt32
        /// The destinations of the packets to which the route applies.
        package var destination: IPPrefix
        /// The sources of the packets to which the route applies (IPv6 source routing); `nil` for all sources.
        package var source: IPPrefix?
        /// The type of service of the packets to which the route applies; 0 for any.
        package var typeOfService: UInt8

        /// Creates a key.
        package init(
            table: UInt32 = 254, metric: UInt32 = 0, destination: IPPrefix, source: IPPrefix? = nil, typeOfService: UInt8 = 0
        ) {
            self.table = table
            self.metric = metric
            self.destination = destination
            self.source = source
            self.typeOfService = typeOfService
        }

        /// Hashes few words: the table is searched for each route that is added or removed.
        package func hash(into hasher: inout Hasher) {
            hasher.combine(UInt64(table) << 32 | UInt64(metric))
            hasher.combine(destination)
            if let source { hasher.combine(source) }
            if typeOfService != 0 { hasher.combine(typeOfService) }
        }

        /// The family of the destination.
        package var family: IPAddress.Family { destination.address.family }
    }

    /// The route's type `RTN_*`: the treatment of a packet that matches. Unknown numbers are kept.
    package struct Kind: RawRepresentable, Hashable, Sendable {
        /// The kernel's number.
        package let rawValue: UInt8
        /// Creates a kind from the kernel's number.
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        /// The packet is sent to a next hop.
        package static let unicast = Kind(rawValue: 1)
        /// The packet is delivered on this machine.
        package static let local = Kind(rawValue: 2)
        /// The packet is sent to all hosts of a network.
        package static let broadcast = Kind(rawValue: 3)
        /// The packet is dropped without an error.
        package static let blackhole = Kind(rawValue: 6)
        /// The packet is refused with the error "host unreachable".
        package static let unreachable = Kind(rawValue: 7)
        /// The packet is refused with the error "administratively prohibited".
        package static let prohibit = Kind(rawValue: 8)
        /// The lookup continues with the next rule.
        package static let `throw` = Kind(rawValue: 9)

        /// Whether the route sends no packet.
        var refuses: Bool { (Kind.blackhole.rawValue...Kind.throw.rawValue).contains(rawValue) }
    }

    /// One next hop of a route.
    package struct NextHop: Hashable, Sendable, Comparable {
        /// The index of the interface; 0 for none.
        package var interface: UInt32
        /// The address of the router; `nil` if the destination is on the link. An IPv4 route may have an IPv6 gateway
        /// (`RTA_VIA`).
        package var gateway: IPAddress?
        /// The share of the traffic among several next hops, from 1.
        package var weight: UInt16
        /// Whether the kernel treats the gateway as on the link without a route to it (`RTNH_F_ONLINK`).
        package var isOnLink: Bool

        /// Creates a next hop.
        package init(interface: UInt32, gateway: IPAddress? = nil, weight: UInt16 = 1, isOnLink: Bool = false) {
            self.interface = interface
            self.gateway = gateway
            self.weight = weight
            self.isOnLink = isOnLink
        }

        /// Orders by interface, then gateway, then weight. The kernel's own order differs between events and dumps.
        package static func < (left: NextHop, right: NextHop) -> Bool {
            if left.interface != right.interface { return left.interface < right.interface }
            switch (left.gateway, right.gateway) {
            case (nil, .some): return true
            case (.some, nil): return false
            case (let one?, let other?) where one != other: return one < other
            default: return left.weight < right.weight
            }
        }
    }

    /// The table, destination and metric of the route.
    package var key: Key
    /// The treatment of a packet that matches.
    package var kind: Kind
    /// The origin of the route (`RTPROT_*`), such as the kernel, an administrator or a routing daemon.
    package var origin: UInt8
    /// The scope of the route (`RT_SCOPE_*`).
    package var scope: UInt8
    /// The source address that the route suggests; `nil` for none.
    package var preferredSource: IPAddress?
    /// The number of the nexthop object that the route uses; 0 for none.
    package var nexthopObject: UInt32
    /// A digest of the attributes that this type does not name (metrics, encapsulation). Routes that differ only in those
    /// attributes are not equal.
    package var fingerprint: UInt64
    // Nearly every route has one next hop. An array is not allocated for it, because a full Internet table has a million
    // routes.
    private var first: NextHop?
    private var others: [NextHop]

    /// Creates a route. Several next hops are sorted.
    package init(
        _ key: Key, kind: Kind = .unicast, nextHops: [NextHop] = [], origin: UInt8 = 3, scope: UInt8 = 0,
        preferredSource: IPAddress? = nil, nexthopObject: UInt32 = 0, fingerprint: UInt64 = 0
    ) {
        self.key = key
        self.kind = kind
        self.origin = origin
        self.scope = scope
        self.preferredSource = preferredSource
        self.nexthopObject = nexthopObject
        self.fingerprint = fingerprint
        if nextHops.count > 1 {
            let sorted = nextHops.sorted()
            first = sorted.first
            others = Array(sorted.dropFirst())
        } else {
            first = nextHops.first
            others = []
        }
    }

    /// Creates a route with at most one next hop, without allocating an array.
    init(
        _ key: Key, kind: Kind, only: NextHop?, origin: UInt8, scope: UInt8, preferredSource: IPAddress?,
        nexthopObject: UInt32,
        fingerprint: UInt64
    ) {
        self.init(
            key, kind: kind, origin: origin, scope: scope, preferredSource: preferredSource, nexthopObject: nexthopObject,
            fingerprint: fingerprint
        )
        first = only
    }

    /// The next hops, sorted.
    package var nextHops: [NextHop] { first.map { [$0] + others } ?? [] }

    /// The first next hop. Unlike `nextHops`, this property allocates no array.
    var firstHop: NextHop? { first }

    /// Whether the route has several next hops.
    package var isMultipath: Bool { !others.isEmpty }

    /// Whether any next hop has a gateway.
    var hasGateway: Bool { first?.gateway != nil || others.contains { $0.gateway != nil } }

    /// Returns whether any next hop uses `interface`.
    package func uses(interface: UInt32) -> Bool {
        first?.interface == interface || others.contains { $0.interface == interface }
    }
}

/// A nexthop object (`ip nexthop`), which routes may share.
package struct NexthopObject: Hashable, Sendable {
    /// The number of the object, unique in the namespace.
    package var id: UInt32
    /// The next hop; `nil` for a group or a blackhole.
    package var hop: Route.NextHop?
    /// The members of a group with their weights.
    package var group: [Member]
    /// Whether the object drops packets.
    package var isBlackhole: Bool

    /// One member of a group.
    package struct Member: Hashable, Sendable {
        /// The number of the member's nexthop object.
        package var id: UInt32
        /// The member's share of the traffic, from 1.
        package var weight: UInt16

        /// Creates a member.
        package init(id: UInt32, weight: UInt16) {
            self.id = id
            self.weight = weight
        }
    }

    /// Creates a nexthop object.
    package init(id: UInt32, hop: Route.NextHop? = nil, group: [Member] = [], isBlackhole: Bool = false) {
        self.id = id
        self.hop = hop
        self.group = group
        self.isBlackhole = isBlackhole
    }
}

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
        func readAddress(_ address: inout IPAddress?) -> Bool {
            address = attribute.address
            return address != nil
        }
        switch attribute.type {
        case 1: return readAddress(&destination)  // RTA_DST
        case 2: return readAddress(&source)  // RTA_SRC
        case 4: singleHop.interface = attribute.number() ?? 0  // RTA_OIF
        case 5: return readAddress(&singleHop.gateway)  // RTA_GATEWAY
        case 6: metric = attribute.number() ?? 0  // RTA_PRIORITY
        case 7: return readAddress(&preferredSource)  // RTA_PREFSRC
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

extension NetlinkDecoder {
    /// Decodes RTM_NEWNEXTHOP and RTM_DELNEXTHOP by attribute: libnl-route 3.7 does not know them.
    static func nexthop(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: nhmsg.self) else { return .malformed }
        var object = NexthopObject(id: 0)
        var hop = Route.NextHop(interface: 0, isOnLink: header.nh_flags & UInt32(RTNH_F_ONLINK) != 0)
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<nhmsg>.size) {
            switch Int(attribute.type) {
            case NHA_ID: object.id = attribute.number() ?? 0
            case NHA_GROUP: object.group = members(attribute.bytes)
            case NHA_BLACKHOLE: object.isBlackhole = true
            case NHA_OIF: hop.interface = attribute.number() ?? 0
            case NHA_GATEWAY: hop.gateway = attribute.address
            default: break
            }
        }
        guard object.id != 0 else { return .malformed }
        if hop.interface != 0 && !object.isBlackhole { object.hop = hop }
        return Int(message.pointee.nlmsg_type) == RTM_DELNEXTHOP ? .nexthopRemoved(object.id) : .nexthop(object)
    }

    // struct nexthop_grp: id, weight minus one, its upper byte (Linux 6.12), reserved.
    private static func members(_ bytes: UnsafeRawBufferPointer) -> [NexthopObject.Member] {
        stride(from: 0, through: bytes.count - 8, by: 8).map { offset in
            NexthopObject.Member(
                id: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self),
                weight: (UInt16(bytes[offset + 4]) | UInt16(bytes[offset + 5]) << 8) &+ 1
            )
        }
    }
}
