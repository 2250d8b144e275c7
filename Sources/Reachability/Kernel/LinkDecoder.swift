internal import CLibnl
internal import CLinux

extension NetlinkDecoder {
    /// Decodes RTM_NEWLINK and RTM_DELLINK.
    static func link(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: ifinfomsg.self) else { return .malformed }
        // Bridges report their ports with family 7 on the same group. When a port is removed from its bridge, that message is
        // RTM_DELLINK, although the device still exists.
        guard header.ifi_family == UInt8(AF_UNSPEC) else { return .ignored }
        let index = UInt32(bitPattern: header.ifi_index)
        if Int(message.pointee.nlmsg_type) == RTM_DELLINK { return .linkRemoved(index) }

        var link = Link(
            index: index, name: "", flags: Link.Flags(rawValue: header.ifi_flags), hardwareType: header.ifi_type, mtu: 0)
        var isWirelessEvent = false
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<ifinfomsg>.size) {
            if Int(attribute.type) == IFLA_WIRELESS { isWirelessEvent = true } else { link.read(attribute) }
        }
        // Wireless extensions send their statistics as a message with only a name. The message does not change the state.
        if isWirelessEvent && header.ifi_change == 0 { return .ignored }
        return link.name.isEmpty ? .malformed : .link(link)
    }

    /// Returns the packet counters of an answer to RTM_GETLINK (IFLA_STATS64: packets received, packets sent, …); `nil` if it has none.
    static func counters(_ bytes: [UInt8]) -> LinkCounters? {
        var bytes = bytes
        return bytes.withUnsafeMutableBytes { buffer in
            guard buffer.count >= MemoryLayout<nlmsghdr>.size, let start = buffer.baseAddress else { return nil }
            let message = start.assumingMemoryBound(to: nlmsghdr.self)
            guard Int(message.pointee.nlmsg_type) == RTM_NEWLINK, Int(message.pointee.nlmsg_len) <= buffer.count,
                fixedHeader(message, as: ifinfomsg.self) != nil
            else { return nil }
            for attribute in AttributeSequence(message, headerSize: MemoryLayout<ifinfomsg>.size)
            where Int(attribute.type) == IFLA_STATS64 && attribute.bytes.count >= 16 {
                return LinkCounters(
                    received: attribute.bytes.loadUnaligned(as: UInt64.self),
                    sent: attribute.bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            }
            return nil
        }
    }

    /// Decodes RTM_NEWNETCONF, if the message is about `ignore_routes_with_linkdown`.
    static func linkdownPolicy(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: netconfmsg.self) else { return .malformed }
        guard header.ncm_family == UInt8(AF_INET) || header.ncm_family == UInt8(AF_INET6) else { return .ignored }
        var index: Int32 = 0
        var isAboutLinkdown = false
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<netconfmsg>.size) {
            switch attribute.type {
            case Int32(NETCONFA_IFINDEX): index = attribute.number() ?? 0
            case Int32(NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN): isAboutLinkdown = true
            default: break
            }
        }
        // Negative numbers are the defaults, not the setting of an interface.
        guard isAboutLinkdown, index > 0 else { return .ignored }
        return .linkdownPolicy(header.ncm_family == UInt8(AF_INET) ? .v4 : .v6, interface: UInt32(index))
    }

    static func hardwareAddress(_ pointer: OpaquePointer?) -> [UInt8] {
        guard let pointer, let bytes = nl_addr_get_binary_addr(pointer) else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(nl_addr_get_len(pointer))))
    }
}

// Decoded by attribute: libnl-route 3.7 drops the bus, a tap's type and a tunnel's remote end. Its object, with all statistics
// and settings, takes longer than all other steps between the kernel's message and the user's callback.
extension Link {
    // linux/if_link.h: IFLA_PARENT_DEV_BUS_NAME is newer than some headers with which this package builds.
    private static let parentBusName = 57
    // IFLA_PROP_LIST and IFLA_ALT_IFNAME are newer too.
    private static let propertyList = 52
    private static let alternativeName = 53
    private static let tunType: Int32 = 3

    fileprivate mutating func read(_ attribute: AttributeSequence.Attribute) {
        switch Int(attribute.type) {
        case IFLA_IFNAME: name = attribute.text
        case IFLA_MTU: mtu = attribute.number() ?? 0
        case IFLA_OPERSTATE: operationalState = attribute.number(UInt8.self).flatMap(OperationalState.init) ?? .unknown
        case IFLA_ADDRESS: hardwareAddress = [UInt8](attribute.bytes)
        case IFLA_MASTER: master = attribute.number() ?? 0
        case IFLA_LINK: lower = attribute.number() ?? 0
        case IFLA_LINK_NETNSID: lowerIsElsewhere = true
        case Self.parentBusName: parentBus = attribute.text
        case IFLA_LINKINFO: readInfo(attribute.nested)
        case Self.propertyList:
            alternativeNames = attribute.nested.filter { Int($0.type) == Self.alternativeName }.map(\.text)
        default: break
        }
    }

    private mutating func readInfo(_ attributes: AttributeSequence) {
        for attribute in attributes {
            switch Int(attribute.type) {
            case IFLA_INFO_KIND: kind = attribute.text
            case IFLA_INFO_SLAVE_KIND: portKind = attribute.text
            case IFLA_INFO_DATA: readData(attribute.nested, of: kind ?? "")
            default: break
            }
        }
    }

    // The attribute of the remote end's address differs by kind (linux/if_tunnel.h, linux/if_link.h).
    private mutating func readData(_ attributes: AttributeSequence, of kind: String) {
        let remotes: Set<Int32>
        switch kind {
        case "tun":
            isTap = attributes.first { $0.type == Self.tunType }?.number(UInt8.self) == 2
            return
        case "ipip", "sit", "ip6tnl": remotes = [3]
        case "gre", "gretap", "erspan", "ip6gre", "ip6gretap": remotes = [7]
        case "vti", "vti6": remotes = [5]
        case "vxlan": remotes = [2, 17]
        case "geneve": remotes = [2, 7]
        default: return
        }
        let addresses = attributes.filter { remotes.contains($0.type) }.compactMap(\.address)
        tunnelRemote = addresses.first { !$0.isUnspecified && !$0.isMulticast }
    }
}
