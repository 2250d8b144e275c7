extension Kernel {
    /// An address of an interface, from rtnetlink's RTM_NEWADDR message (rtnetlink(7)).
    public struct Address: Hashable, Sendable {
        /// The identity of an address. The same address may be on two links, on one link with two prefixes, and for IPv4 on one
        /// link with two peers.
        public struct Key: Hashable, Sendable, Comparable {
            /// The index of the interface.
            public let interface: UInt32
            /// The local address with its prefix length: `IFA_LOCAL` if present, otherwise `IFA_ADDRESS`.
            public let prefix: IPPrefix
            /// The remote end of an IPv4 point-to-point link. `nil` for IPv6, where a changed peer does not change the address's
            /// identity.
            public let peer: IPAddress?

            /// Creates a key. `peer` is ignored for IPv6.
            public init(interface: UInt32, prefix: IPPrefix, peer: IPAddress? = nil) {
                self.interface = interface
                self.prefix = prefix
                self.peer = prefix.address.family == .v4 ? peer : nil
            }

            /// Orders by interface, then by prefix, then by peer.
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

        /// The flags of an address: `IFA_F_*` as 32 bits (`IFA_FLAGS`).
        public struct Flags: OptionSet, Hashable, Sendable {
            /// The kernel's bits.
            public let rawValue: UInt32
            /// Flags from the kernel's bits.
            public init(rawValue: UInt32) { self.rawValue = rawValue }
            /// A privacy address for IPv6 (RFC 8981), a secondary address for IPv4.
            public static let temporary = Flags(rawValue: 0x01)
            /// The address is usable while duplicate address detection is running (RFC 4429).
            public static let optimistic = Flags(rawValue: 0x04)
            /// Duplicate address detection found another owner (RFC 4862).
            public static let duplicate = Flags(rawValue: 0x08)
            /// Existing connections may use the address; new connections should not (RFC 4862).
            public static let deprecated = Flags(rawValue: 0x20)
            /// Duplicate address detection is running (RFC 4862).
            public static let tentative = Flags(rawValue: 0x40)
            /// The address has no lifetime.
            public static let permanent = Flags(rawValue: 0x80)
        }

        /// The lifetime that was assigned to an address (`IFA_CACHEINFO`). Two lifetimes are equal if they come from the same
        /// assignment; the seconds that count down are not a change.
        public struct Lifetime: Hashable, Sendable {
            /// The preferred lifetime in seconds at the time of the message; `nil` if unlimited.
            public var preferredSeconds: UInt32?
            /// The valid lifetime in seconds at the time of the message; `nil` if unlimited.
            public var validSeconds: UInt32?
            /// The time of the last renewal, in hundredths of a second since boot.
            public var renewedCentiseconds: UInt32

            /// Creates a lifetime; `nil` seconds mean unlimited.
            public init(preferredSeconds: UInt32?, validSeconds: UInt32?, renewedCentiseconds: UInt32) {
                self.preferredSeconds = preferredSeconds
                self.validSeconds = validSeconds
                self.renewedCentiseconds = renewedCentiseconds
            }

            /// Returns whether both lifetimes come from the same assignment.
            public static func == (left: Lifetime, right: Lifetime) -> Bool {
                left.renewedCentiseconds == right.renewedCentiseconds && left.isPreferred == right.isPreferred
                    && (left.preferredSeconds == nil) == (right.preferredSeconds == nil)
                    && (left.validSeconds == nil) == (right.validSeconds == nil)
            }

            /// Hashes a part of the values that equality compares.
            public func hash(into hasher: inout Hasher) {
                hasher.combine(renewedCentiseconds)
            }

            /// Whether preferred time remained at the time of the message. A router may toggle `IFA_F_DEPRECATED` with every
            /// advertisement; this value stays stable.
            public var isPreferred: Bool { preferredSeconds != 0 }
        }

        /// The identity of the address.
        public var key: Key
        /// The remote end of a point-to-point link; `nil` if it equals the local address or does not exist.
        public var peer: IPAddress?
        /// The scope `RT_SCOPE_*`: 0 is global, 253 the link, 254 the host.
        public var scope: UInt8
        /// The flags of the address.
        public var flags: Flags
        /// The lifetime of the address.
        public var lifetime: Lifetime

        /// Creates an address.
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

        /// The address without its prefix.
        public var address: IPAddress { key.prefix.address }

        /// Whether a socket may send from the address now. False while duplicate address detection runs, unless the address is
        /// optimistic, and after it failed.
        public var isUsable: Bool {
            if flags.contains(.duplicate) { return false }
            return !flags.contains(.tentative) || flags.contains(.optimistic)
        }

        /// Whether the address reaches beyond its link.
        public var isRoutable: Bool { scope < 253 }
    }
}
