internal import CLibnl
internal import CLinux

/// An address of an interface, from rtnetlink's RTM_NEWADDR message (rtnetlink(7)).
package struct Address: Hashable, Sendable {
    /// The identity of an address. The same address may be on two links, on one link with two prefixes, and for IPv4 on one
    /// link with two peers.
    package struct Key: Hashable, Sendable, Comparable {
        /// The index of the interface.
        package let interface: UInt32
        /// The local address with its prefix length: `IFA_LOCAL` if present, otherwise `IFA_ADDRESS`.
        package let prefix: IPPrefix
        /// The remote end of an IPv4 point-to-point link. `nil` for IPv6, where a changed peer does not change the address's
        /// identity.
        package let peer: IPAddress?

        /// Creates a key. `peer` is ignored for IPv6.
        package init(interface: UInt32, prefix: IPPrefix, peer: IPAddress? = nil) {
            self.interface = interface
            self.prefix = prefix
            self.peer = prefix.address.family == .v4 ? peer : nil
        }

        /// Orders by interface, then by prefix, then by peer.
        package static func < (left: Key, right: Key) -> Bool {
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
    package struct Flags: OptionSet, Hashable, Sendable {
        /// The kernel's bits.
        package let rawValue: UInt32
        /// Flags from the kernel's bits.
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        /// A privacy address for IPv6 (RFC 8981), a secondary address for IPv4.
        package static let temporary = Flags(rawValue: 0x01)
        /// The address is usable while duplicate address detection is running (RFC 4429).
        package static let optimistic = Flags(rawValue: 0x04)
        /// Duplicate address detection found another owner (RFC 4862).
        package static let duplicate = Flags(rawValue: 0x08)
        /// Existing connections may use the address; new connections should not (RFC 4862).
        package static let deprecated = Flags(rawValue: 0x20)
        /// Duplicate address detection is running (RFC 4862).
        package static let tentative = Flags(rawValue: 0x40)
        /// The address has no lifetime.
        package static let permanent = Flags(rawValue: 0x80)
    }

    /// The lifetime that was assigned to an address (`IFA_CACHEINFO`). Two lifetimes are equal if they come from the same
    /// assignment; the seconds that count down are not a change.
    package struct Lifetime: Hashable, Sendable {
        /// The preferred lifetime in seconds at the time of the message; `nil` if unlimited.
        package var preferredSeconds: UInt32?
        /// The valid lifetime in seconds at the time of the message; `nil` if unlimited.
        package var validSeconds: UInt32?
        /// The time of the last renewal, in hundredths of a second since boot.
        package var renewedCentiseconds: UInt32

        /// Creates a lifetime; `nil` seconds mean unlimited.
        package init(preferredSeconds: UInt32?, validSeconds: UInt32?, renewedCentiseconds: UInt32) {
            self.preferredSeconds = preferredSeconds
            self.validSeconds = validSeconds
            self.renewedCentiseconds = renewedCentiseconds
        }

        /// Returns whether both lifetimes come from the same assignment.
        package static func == (left: Lifetime, right: Lifetime) -> Bool {
            left.renewedCentiseconds == right.renewedCentiseconds && left.isPreferred == right.isPreferred
                && (left.preferredSeconds == nil) == (right.preferredSeconds == nil)
                && (left.validSeconds == nil) == (right.validSeconds == nil)
        }

        /// Hashes a part of the values that equality compares.
        package func hash(into hasher: inout Hasher) {
            hasher.combine(renewedCentiseconds)
        }

        /// Whether preferred time remained at the time of the message. A router may toggle `IFA_F_DEPRECATED` with every
        /// advertisement; this value stays stable.
        package var isPreferred: Bool { preferredSeconds != 0 }
    }

    /// The identity of the address.
    package var key: Key
    /// The remote end of a point-to-point link; `nil` if it equals the local address or does not exist.
    package var peer: IPAddress?
    /// The scope `RT_SCOPE_*`: 0 is global, 253 the link, 254 the host.
    package var scope: UInt8
    /// The flags of the address.
    package var flags: Flags
    /// The lifetime of the address.
    package var lifetime: Lifetime

    /// Creates an address.
    package init(
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
    package var address: IPAddress { key.prefix.address }

    /// Whether a socket may send from the address now. False while duplicate address detection runs, unless the address is
    /// optimistic, and after it failed.
    package var isUsable: Bool {
        if flags.contains(.duplicate) { return false }
        return !flags.contains(.tentative) || flags.contains(.optimistic)
    }
}

extension NetlinkDecoder {
    /// Decodes RTM_NEWADDR and RTM_DELADDR.
    static func address(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: ifaddrmsg.self) else { return .malformed }
        guard header.ifa_family == UInt8(AF_INET) || header.ifa_family == UInt8(AF_INET6) else { return .ignored }
        var (local, other): (IPAddress?, IPAddress?) = (nil, nil)
        var flags = Address.Flags(rawValue: UInt32(header.ifa_flags))
        var lifetime = Address.Lifetime(preferredSeconds: nil, validSeconds: nil, renewedCentiseconds: 0)
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<ifaddrmsg>.size) {
            switch Int(attribute.type) {
            case IFA_LOCAL: local = attribute.address
            case IFA_ADDRESS: other = attribute.address
            case IFA_FLAGS: flags = attribute.number().map { Address.Flags(rawValue: $0) } ?? flags
            case IFA_CACHEINFO: lifetime = Address.Lifetime(attribute.bytes) ?? lifetime
            default: break
            }
        }
        // On a point-to-point link IFA_ADDRESS is the remote end; for IPv6 without a peer it is the local address. The attributes
        // are read directly, because libnl returns 0.0.0.0 for a message without an address.
        guard let address = local ?? other else { return .malformed }
        // Router advertisements toggle the flag every few seconds. The remaining preferred time is reliable (found by Chromium).
        if lifetime.isPreferred { flags.remove(.deprecated) } else { flags.insert(.deprecated) }
        let decoded = Address(
            interface: header.ifa_index,
            prefix: IPPrefix(address, length: header.ifa_prefixlen),
            peer: other == address ? nil : other,
            scope: header.ifa_scope,
            flags: flags,
            lifetime: lifetime
        )
        return Int(message.pointee.nlmsg_type) == RTM_DELADDR ? .addressRemoved(decoded.key) : .address(decoded)
    }
}

extension Address.Lifetime {
    /// Reads `struct ifa_cacheinfo`: preferred, valid, created, renewed. A value with all bits set means unlimited.
    fileprivate init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 16 else { return nil }
        func word(_ number: Int) -> UInt32 { bytes.loadUnaligned(fromByteOffset: 4 * number, as: UInt32.self) }
        func seconds(_ value: UInt32) -> UInt32? { value == .max ? nil : value }
        self.init(preferredSeconds: seconds(word(0)), validSeconds: seconds(word(1)), renewedCentiseconds: word(3))
    }
}
