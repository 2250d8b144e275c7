extension Kernel {
    /// An address of an interface as rtnetlink's RTM_NEWADDR message tells it.
    public struct Address: Hashable, Sendable {
        /// What identifies an address: the same address may be on two links, on one link with two prefixes, and for IPv4 on one link
        /// with two peers.
        public struct Key: Hashable, Sendable, Comparable {
            /// The interface's index.
            public let interface: UInt32
            /// The local address (`IFA_LOCAL` before `IFA_ADDRESS`) with its prefix length.
            public let prefix: IPPrefix
            /// The other end of an IPv4 point-to-point link; `nil` for IPv6, where an address changes its peer and stays the same.
            public let peer: IPAddress?

            /// A key; the peer counts for IPv4 only.
            public init(interface: UInt32, prefix: IPPrefix, peer: IPAddress? = nil) {
                self.interface = interface
                self.prefix = prefix
                self.peer = prefix.address.family == .v4 ? peer : nil
            }

            /// By interface, then by prefix, then by peer.
            public static func < (left: Key, right: Key) -> Bool {
                let (one, other) = ((left.interface, left.prefix), (right.interface, right.prefix))
                guard one == other else { return one < other }
                switch (left.peer, right.peer) {
                case (nil, .some): return true
                case (let left?, let right?): return left < right
                default: return false
                }
            }
        }

        /// `IFA_F_*` as 32 bits (`IFA_FLAGS`).
        public struct Flags: OptionSet, Hashable, Sendable {
            /// The kernel's bits.
            public let rawValue: UInt32
            /// Flags from the kernel's bits.
            public init(rawValue: UInt32) { self.rawValue = rawValue }
            /// A privacy address for IPv6, a secondary one for IPv4.
            public static let temporary = Flags(rawValue: 0x01)
            /// Usable while duplicate detection still runs (RFC 4429).
            public static let optimistic = Flags(rawValue: 0x04)
            /// Duplicate detection found another owner.
            public static let duplicate = Flags(rawValue: 0x08)
            /// Usable for what exists, not for what is new.
            public static let deprecated = Flags(rawValue: 0x20)
            /// Duplicate detection still runs.
            public static let tentative = Flags(rawValue: 0x40)
            /// Without a lifetime.
            public static let permanent = Flags(rawValue: 0x80)
        }

        /// The kernel's grant of time (`IFA_CACHEINFO`). Two lifetimes are equal when they are the same grant: what is left of it
        /// counts down without being a change.
        public struct Lifetime: Hashable, Sendable {
            /// Seconds during which it is preferred, at the time of the message; `nil` for ever.
            public var preferredSeconds: UInt32?
            /// Seconds during which it is valid, at the time of the message; `nil` for ever.
            public var validSeconds: UInt32?
            /// When the grant was last renewed, in hundredths of a second since boot.
            public var renewedCentiseconds: UInt32

            /// A lifetime; `nil` seconds mean for ever.
            public init(preferredSeconds: UInt32?, validSeconds: UInt32?, renewedCentiseconds: UInt32) {
                self.preferredSeconds = preferredSeconds
                self.validSeconds = validSeconds
                self.renewedCentiseconds = renewedCentiseconds
            }

            /// Whether both are the same grant.
            public static func == (left: Lifetime, right: Lifetime) -> Bool {
                left.renewedCentiseconds == right.renewedCentiseconds && left.isPreferred == right.isPreferred
                    && (left.preferredSeconds == nil) == (right.preferredSeconds == nil)
                    && (left.validSeconds == nil) == (right.validSeconds == nil)
            }

            /// Hashes what equality compares.
            public func hash(into hasher: inout Hasher) {
                hasher.combine(renewedCentiseconds)
            }

            /// Whether any of the preferred time was left. A router may flip `IFA_F_DEPRECATED` with every advertisement; this does not.
            public var isPreferred: Bool { preferredSeconds != 0 }
        }

        /// The interface and the address.
        public var key: Key
        /// The other end of a point-to-point link, where it is another address.
        public var peer: IPAddress?
        /// `RT_SCOPE_*`: 0 reaches everywhere, 253 the link, 254 the host.
        public var scope: UInt8
        /// Its flags.
        public var flags: Flags
        /// Its lifetime.
        public var lifetime: Lifetime

        /// An address with what is known of it.
        public init(
            interface: UInt32, prefix: IPPrefix, peer: IPAddress? = nil, scope: UInt8 = 0, flags: Flags = .permanent,
            lifetime: Lifetime = Lifetime(preferredSeconds: nil, validSeconds: nil, renewedCentiseconds: 0)
        ) {
            key = Key(interface: interface, prefix: prefix, peer: peer)
            self.peer = peer
            self.scope = scope
            self.flags = flags
            self.lifetime = lifetime
        }

        /// The address alone.
        public var address: IPAddress { key.prefix.address }

        /// Whether a socket may send from it now: not while duplicate detection runs, unless optimistic, and not after it failed.
        public var isUsable: Bool {
            if flags.contains(.duplicate) { return false }
            return !flags.contains(.tentative) || flags.contains(.optimistic)
        }

        /// Whether it reaches further than its link.
        public var isRoutable: Bool { scope < 253 }
    }
}
