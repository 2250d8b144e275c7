internal import CLibnl
internal import CLinux

extension NetlinkDecoder {
    /// RTM_NEWADDR and RTM_DELADDR.
    static func address(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: ifaddrmsg.self) else { return .malformed }
        guard header.ifa_family == UInt8(AF_INET) || header.ifa_family == UInt8(AF_INET6) else { return .ignored }
        let decoded = withObject(message) { object -> Address? in
            guard let local = address(rtnl_addr_get_local(object)) else { return nil }
            let lifetime = Address.Lifetime(
                preferredSeconds: seconds(rtnl_addr_get_preferred_lifetime(object)),
                validSeconds: seconds(rtnl_addr_get_valid_lifetime(object)),
                renewedCentiseconds: rtnl_addr_get_last_update_time(object)
            )
            var flags = Address.Flags(rawValue: rtnl_addr_get_flags(object))
            // Router advertisements flip the flag every few seconds; what is left of the time does not lie (Chromium's finding).
            if lifetime.isPreferred { flags.remove(.deprecated) } else { flags.insert(.deprecated) }
            return Address(
                interface: header.ifa_index,
                prefix: IPPrefix(local, length: header.ifa_prefixlen),
                peer: address(rtnl_addr_get_peer(object)),
                scope: header.ifa_scope,
                flags: flags,
                lifetime: lifetime
            )
        }
        guard let decoded else { return .malformed }
        return Int(message.pointee.nlmsg_type) == RTM_DELADDR ? .addressRemoved(decoded.key) : .address(decoded)
    }

    // 0xffffffff stands for ever; libnl gives the same where the message has no lifetimes at all.
    private static func seconds(_ value: UInt32) -> UInt32? { value == .max ? nil : value }

    /// RTM_NEWNEIGH and RTM_DELNEIGH.
    static func neighbour(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: ndmsg.self) else { return .malformed }
        // Bridges' forwarding tables come as family 7.
        guard header.ndm_family == UInt8(AF_INET) || header.ndm_family == UInt8(AF_INET6) else { return .ignored }
        let decoded = withObject(message) { object -> Neighbour? in
            guard let destination = address(rtnl_neigh_get_dst(object)) else { return nil }
            return Neighbour(
                interface: UInt32(bitPattern: header.ndm_ifindex),
                address: destination,
                state: Neighbour.State(rawValue: header.ndm_state),
                hardwareAddress: hardwareAddress(rtnl_neigh_get_lladdr(object))
            )
        }
        guard let decoded else { return .malformed }
        return Int(message.pointee.nlmsg_type) == RTM_DELNEIGH ? .neighbourRemoved(decoded.key) : .neighbour(decoded)
    }
}
