internal import CLibnl
internal import CLinux

extension NetlinkDecoder {
    /// RTM_NEWLINK and RTM_DELLINK.
    static func link(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: ifinfomsg.self) else { return .malformed }
        // Bridges tell of their ports with family 7 on the same group; a port that leaves its bridge "is deleted" there.
        guard header.ifi_family == UInt8(AF_UNSPEC) else { return .ignored }
        let index = UInt32(bitPattern: header.ifi_index)
        if Int(message.pointee.nlmsg_type) == RTM_DELLINK { return .linkRemoved(index) }

        var more = LinkAttributes()
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<ifinfomsg>.size) { more.read(attribute) }
        // Statistics of wireless extensions come as a message of a name and nothing else; it says nothing of the state.
        if more.isWirelessEvent && header.ifi_change == 0 { return .ignored }
        guard more.hasName else { return .malformed }

        let link = withObject(message) { object -> Link? in
            guard let name = rtnl_link_get_name(object) else { return nil }
            var namespace: Int32 = 0
            return Link(
                index: index,
                name: String(cString: name),
                flags: Link.Flags(rawValue: header.ifi_flags),
                hardwareType: header.ifi_type,
                operationalState: Link.OperationalState(rawValue: rtnl_link_get_operstate(object)) ?? .unknown,
                mtu: rtnl_link_get_mtu(object),
                kind: rtnl_link_get_type(object).map { String(cString: $0) },
                portKind: rtnl_link_get_slave_type(object).map { String(cString: $0) },
                master: UInt32(bitPattern: rtnl_link_get_master(object)),
                lower: UInt32(bitPattern: rtnl_link_get_link(object)),
                lowerIsElsewhere: rtnl_link_get_link_netnsid(object, &namespace) == 0,
                hardwareAddress: hardwareAddress(rtnl_link_get_addr(object)),
                parentBus: more.parentBus,
                isTap: more.isTap,
                tunnelRemote: more.tunnelRemote
            )
        }
        return link.map { .link($0) } ?? .malformed
    }

    static func hardwareAddress(_ pointer: OpaquePointer?) -> [UInt8] {
        guard let pointer, let bytes = nl_addr_get_binary_addr(pointer) else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(nl_addr_get_len(pointer))))
    }
}

/// What libnl-route 3.7 does not keep of a link message.
private struct LinkAttributes {
    var hasName = false
    var isWirelessEvent = false
    var parentBus: String?
    var isTap = false
    var tunnelRemote: IPAddress?

    // linux/if_link.h: IFLA_PARENT_DEV_BUS_NAME is newer than some headers that this builds with.
    private static let parentBusName: Int32 = 57
    private static let tunType: Int32 = 3

    mutating func read(_ attribute: AttributeSequence.Attribute) {
        switch Int(attribute.type) {
        case IFLA_IFNAME: hasName = true
        case IFLA_WIRELESS: isWirelessEvent = true
        case Int(Self.parentBusName): parentBus = attribute.text
        case IFLA_LINKINFO: readInfo(attribute.nested)
        default: break
        }
    }

    private mutating func readInfo(_ attributes: AttributeSequence) {
        var kind = ""
        for attribute in attributes {
            switch Int(attribute.type) {
            case IFLA_INFO_KIND: kind = attribute.text
            case IFLA_INFO_DATA: readData(attribute.nested, of: kind)
            default: break
            }
        }
    }

    // The attribute that holds the other end's address differs by kind (linux/if_tunnel.h, linux/if_link.h).
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
