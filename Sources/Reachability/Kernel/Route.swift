extension Kernel {
    /// A route of a routing table as rtnetlink's RTM_NEWROUTE message tells it.
    public struct Route: Hashable, Sendable {
        /// What the kernel looks a route up by. Several routes may share it (`ip route append`).
        public struct Key: Hashable, Sendable {
            /// The table's number, 32 bits (`RTA_TABLE`); 254 is main, 255 local.
            public var table: UInt32
            /// The metric; lower is preferred.
            public var metric: UInt32
            /// Where packets go to.
            public var destination: IPPrefix
            /// Where packets come from: IPv6 source routing; `nil` for anywhere.
            public var source: IPPrefix?
            /// The type of service that it is for; 0 for any.
            public var typeOfService: UInt8

            /// A key.
            public init(
                table: UInt32 = 254, metric: UInt32 = 0, destination: IPPrefix, source: IPPrefix? = nil, typeOfService: UInt8 = 0
            ) {
                self.table = table
                self.metric = metric
                self.destination = destination
                self.source = source
                self.typeOfService = typeOfService
            }

            /// Hashes in as few words as tell routes apart: a table is searched for each route that comes or goes.
            public func hash(into hasher: inout Hasher) {
                hasher.combine(UInt64(table) << 32 | UInt64(metric))
                hasher.combine(destination)
                if let source { hasher.combine(source) }
                if typeOfService != 0 { hasher.combine(typeOfService) }
            }

            /// The family of the destination.
            public var family: IPAddress.Family { destination.address.family }
        }

        /// `RTN_*`: what happens to a packet that matches. Unknown numbers are kept.
        public struct Kind: RawRepresentable, Hashable, Sendable {
            /// The kernel's number.
            public let rawValue: UInt8
            /// A kind from the kernel's number.
            public init(rawValue: UInt8) { self.rawValue = rawValue }
            /// To a next hop.
            public static let unicast = Kind(rawValue: 1)
            /// To this machine.
            public static let local = Kind(rawValue: 2)
            /// To all hosts of a network.
            public static let broadcast = Kind(rawValue: 3)
            /// Dropped without a word.
            public static let blackhole = Kind(rawValue: 6)
            /// Refused with host-unreachable.
            public static let unreachable = Kind(rawValue: 7)
            /// Refused with administratively prohibited.
            public static let prohibit = Kind(rawValue: 8)
            /// On to the next rule.
            public static let `throw` = Kind(rawValue: 9)

            /// Whether a packet that matches goes nowhere by this route.
            var refuses: Bool { (Kind.blackhole.rawValue...Kind.throw.rawValue).contains(rawValue) }
        }

        /// One way to go on.
        public struct NextHop: Hashable, Sendable, Comparable {
            /// The interface's index; 0 for none.
            public var interface: UInt32
            /// The router; of either family for IPv4 routes (`RTA_VIA`); `nil` on the link itself.
            public var gateway: IPAddress?
            /// The share among several, from 1.
            public var weight: UInt16
            /// Whether the gateway counts as on the link without a route to it (`RTNH_F_ONLINK`).
            public var isOnLink: Bool

            /// A next hop.
            public init(interface: UInt32, gateway: IPAddress? = nil, weight: UInt16 = 1, isOnLink: Bool = false) {
                self.interface = interface
                self.gateway = gateway
                self.weight = weight
                self.isOnLink = isOnLink
            }

            /// By interface, then gateway, then weight: the kernel lists them in an order that differs between events and dumps.
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

        /// Table, destination, metric.
        public var key: Key
        /// What happens to a packet.
        public var kind: Kind
        /// `RTPROT_*`: who put it there.
        public var origin: UInt8
        /// `RT_SCOPE_*`.
        public var scope: UInt8
        /// The source address that it suggests.
        public var preferredSource: IPAddress?
        /// The nexthop object that it uses; 0 for none.
        public var nexthopObject: UInt32
        /// A digest of the attributes that have no name here (metrics, encapsulation), so that routes that differ only there differ.
        public var fingerprint: UInt64
        // Nearly every route has one next hop: no array is allocated for it, which counts in a full Internet table.
        private var first: NextHop?
        private var others: [NextHop]

        /// A route; several next hops are put in order.
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

        /// A route with at most one next hop, for which no array is made.
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

        /// The ways to go on, in a fixed order.
        public var nextHops: [NextHop] { first.map { [$0] + others } ?? [] }

        /// The first of them, without the array that all take.
        var firstHop: NextHop? { first }

        /// Whether it has several next hops.
        public var isMultipath: Bool { !others.isEmpty }

        /// Whether any of its next hops is a router.
        var hasGateway: Bool { first?.gateway != nil || others.contains { $0.gateway != nil } }

        /// Whether any of its next hops goes over this interface.
        public func uses(interface: UInt32) -> Bool {
            first?.interface == interface || others.contains { $0.interface == interface }
        }
    }
}

extension Kernel {
    /// A nexthop object (`ip nexthop`), which routes may share.
    public struct NexthopObject: Hashable, Sendable {
        /// Its number, unique in the namespace.
        public var id: UInt32
        /// Where it goes; `nil` for a group or a blackhole.
        public var hop: Route.NextHop?
        /// The members of a group with their weights.
        public var group: [Member]
        /// Whether packets are dropped.
        public var isBlackhole: Bool

        /// One member of a group.
        public struct Member: Hashable, Sendable {
            /// The object's number.
            public var id: UInt32
            /// Its share, from 1.
            public var weight: UInt16

            /// A member.
            public init(id: UInt32, weight: UInt16) {
                self.id = id
                self.weight = weight
            }
        }

        /// A nexthop object.
        public init(id: UInt32, hop: Route.NextHop? = nil, group: [Member] = [], isBlackhole: Bool = false) {
            self.id = id
            self.hop = hop
            self.group = group
            self.isBlackhole = isBlackhole
        }
    }
}
