extension Kernel {
    /// A route of a routing table, from rtnetlink's RTM_NEWROUTE message (rtnetlink(7)).
    public struct Route: Hashable, Sendable {
        /// The key by which the kernel looks up a route. Several routes may have the same key (`ip route append`).
        public struct Key: Hashable, Sendable {
            /// The number of the routing table, 32 bits (`RTA_TABLE`): 254 is main, 255 is local.
            public var table: UInt32
            /// The metric; lower is preferred.
            public var metric: UInt32
            /// The destinations of the packets to which the route applies.
            public var destination: IPPrefix
            /// The sources of the packets to which the route applies (IPv6 source routing); `nil` for all sources.
            public var source: IPPrefix?
            /// The type of service of the packets to which the route applies; 0 for any.
            public var typeOfService: UInt8

            /// Creates a key.
            public init(
                table: UInt32 = 254, metric: UInt32 = 0, destination: IPPrefix, source: IPPrefix? = nil, typeOfService: UInt8 = 0
            ) {
                self.table = table
                self.metric = metric
                self.destination = destination
                self.source = source
                self.typeOfService = typeOfService
            }

            /// Hashes few words: the table is searched for each route that is added or removed.
            public func hash(into hasher: inout Hasher) {
                hasher.combine(UInt64(table) << 32 | UInt64(metric))
                hasher.combine(destination)
                if let source { hasher.combine(source) }
                if typeOfService != 0 { hasher.combine(typeOfService) }
            }

            /// The family of the destination.
            public var family: IPAddress.Family { destination.address.family }
        }

        /// The route's type `RTN_*`: the treatment of a packet that matches. Unknown numbers are kept.
        public struct Kind: RawRepresentable, Hashable, Sendable {
            /// The kernel's number.
            public let rawValue: UInt8
            /// Creates a kind from the kernel's number.
            public init(rawValue: UInt8) { self.rawValue = rawValue }
            /// The packet is sent to a next hop.
            public static let unicast = Kind(rawValue: 1)
            /// The packet is delivered on this machine.
            public static let local = Kind(rawValue: 2)
            /// The packet is sent to all hosts of a network.
            public static let broadcast = Kind(rawValue: 3)
            /// The packet is dropped without an error.
            public static let blackhole = Kind(rawValue: 6)
            /// The packet is refused with the error "host unreachable".
            public static let unreachable = Kind(rawValue: 7)
            /// The packet is refused with the error "administratively prohibited".
            public static let prohibit = Kind(rawValue: 8)
            /// The lookup continues with the next rule.
            public static let `throw` = Kind(rawValue: 9)

            /// Whether the route sends no packet.
            var refuses: Bool { (Kind.blackhole.rawValue...Kind.throw.rawValue).contains(rawValue) }
        }

        /// One next hop of a route.
        public struct NextHop: Hashable, Sendable, Comparable {
            /// The index of the interface; 0 for none.
            public var interface: UInt32
            /// The address of the router; `nil` if the destination is on the link. An IPv4 route may have an IPv6 gateway
            /// (`RTA_VIA`).
            public var gateway: IPAddress?
            /// The share of the traffic among several next hops, from 1.
            public var weight: UInt16
            /// Whether the kernel treats the gateway as on the link without a route to it (`RTNH_F_ONLINK`).
            public var isOnLink: Bool

            /// Creates a next hop.
            public init(interface: UInt32, gateway: IPAddress? = nil, weight: UInt16 = 1, isOnLink: Bool = false) {
                self.interface = interface
                self.gateway = gateway
                self.weight = weight
                self.isOnLink = isOnLink
            }

            /// Orders by interface, then gateway, then weight. The kernel's own order differs between events and dumps.
            public static func < (left: NextHop, right: NextHop) -> Bool {
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
        public var key: Key
        /// The treatment of a packet that matches.
        public var kind: Kind
        /// The origin of the route (`RTPROT_*`), such as the kernel, an administrator or a routing daemon.
        public var origin: UInt8
        /// The scope of the route (`RT_SCOPE_*`).
        public var scope: UInt8
        /// The source address that the route suggests; `nil` for none.
        public var preferredSource: IPAddress?
        /// The number of the nexthop object that the route uses; 0 for none.
        public var nexthopObject: UInt32
        /// A digest of the attributes that this type does not name (metrics, encapsulation). Routes that differ only in those
        /// attributes are not equal.
        public var fingerprint: UInt64
        // Nearly every route has one next hop. An array is not allocated for it, because a full Internet table has a million
        // routes.
        private var first: NextHop?
        private var others: [NextHop]

        /// Creates a route. Several next hops are sorted.
        public init(
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
        public var nextHops: [NextHop] { first.map { [$0] + others } ?? [] }

        /// The first next hop. Unlike `nextHops`, this property allocates no array.
        var firstHop: NextHop? { first }

        /// Whether the route has several next hops.
        public var isMultipath: Bool { !others.isEmpty }

        /// Whether any next hop has a gateway.
        var hasGateway: Bool { first?.gateway != nil || others.contains { $0.gateway != nil } }

        /// Returns whether any next hop uses `interface`.
        public func uses(interface: UInt32) -> Bool {
            first?.interface == interface || others.contains { $0.interface == interface }
        }
    }
}

extension Kernel {
    /// A nexthop object (`ip nexthop`), which routes may share.
    public struct NexthopObject: Hashable, Sendable {
        /// The number of the object, unique in the namespace.
        public var id: UInt32
        /// The next hop; `nil` for a group or a blackhole.
        public var hop: Route.NextHop?
        /// The members of a group with their weights.
        public var group: [Member]
        /// Whether the object drops packets.
        public var isBlackhole: Bool

        /// One member of a group.
        public struct Member: Hashable, Sendable {
            /// The number of the member's nexthop object.
            public var id: UInt32
            /// The member's share of the traffic, from 1.
            public var weight: UInt16

            /// Creates a member.
            public init(id: UInt32, weight: UInt16) {
                self.id = id
                self.weight = weight
            }
        }

        /// Creates a nexthop object.
        public init(id: UInt32, hop: Route.NextHop? = nil, group: [Member] = [], isBlackhole: Bool = false) {
            self.id = id
            self.hop = hop
            self.group = group
            self.isBlackhole = isBlackhole
        }
    }
}
