internal import CLibnl
internal import CLinux

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

    /// Decodes RTM_NEWNEIGH and RTM_DELNEIGH.
    static func neighbor(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: ndmsg.self) else { return .malformed }
        // Bridges' forwarding tables have family 7.
        guard header.ndm_family == UInt8(AF_INET) || header.ndm_family == UInt8(AF_INET6) else { return .ignored }
        // Replies are decoded by libnl-route, events by attribute. Each link that goes up or down sends events for its multicast
        // neighbors; libnl's objects for them took a tenth of the time until the user's callback.
        let isAnswer = message.pointee.nlmsg_seq != 0
        let found = isAnswer ? withObject(message, neighborFields) : neighborFields(message)
        guard let (destination, hardwareAddress) = found else { return .malformed }
        let decoded = Neighbor(
            interface: UInt32(bitPattern: header.ndm_ifindex), address: destination,
            state: Neighbor.State(rawValue: header.ndm_state), hardwareAddress: hardwareAddress,
            confirmedNanosecondsAgo: isAnswer ? confirmedNanosecondsAgo(message) : nil
        )
        return Int(message.pointee.nlmsg_type) == RTM_DELNEIGH ? .neighborRemoved(decoded.key) : .neighbor(decoded)
    }

    // NDA_CACHEINFO counts in hundredths of a second (USER_HZ). libnl-route does not pass this number on for every state.
    private static func confirmedNanosecondsAgo(_ message: UnsafeMutablePointer<nlmsghdr>) -> Int64? {
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<ndmsg>.size)
        where attribute.type == 3 && attribute.bytes.count >= 4 {  // NDA_CACHEINFO
            return Int64(attribute.bytes.loadUnaligned(as: UInt32.self)) * 10_000_000
        }
        return nil
    }

    private static func neighborFields(_ object: OpaquePointer) -> (IPAddress, [UInt8])? {
        address(rtnl_neigh_get_dst(object)).map { ($0, hardwareAddress(rtnl_neigh_get_lladdr(object))) }
    }

    private static func neighborFields(_ message: UnsafeMutablePointer<nlmsghdr>) -> (IPAddress, [UInt8])? {
        var (destination, hardwareAddress): (IPAddress?, [UInt8]) = (nil, [])
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<ndmsg>.size) {
            switch attribute.type {
            case 1: destination = attribute.address  // NDA_DST
            case 2: hardwareAddress = [UInt8](attribute.bytes)  // NDA_LLADDR
            default: break
            }
        }
        return destination.map { ($0, hardwareAddress) }
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
