internal import CLibnl
internal import CLinux

/// A network device, from rtnetlink's RTM_NEWLINK message (rtnetlink(7)).
package struct Link: Hashable, Sendable {
    /// The operational state `IF_OPER_*` of RFC 2863, as the kernel numbers it (Documentation/networking/operstates.rst).
    package enum OperationalState: UInt8, Hashable, Sendable {
        /// The driver does not report a state. The device is usable if it has carrier.
        case unknown = 0
        /// The hardware was removed.
        case notPresent = 1
        /// The device has no carrier.
        case down = 2
        /// The device is stacked on a device that is down.
        case lowerLayerDown = 3
        /// The device is in a test mode.
        case testing = 4
        /// The device waits for an event, such as 802.1X or a handshake.
        case dormant = 5
        /// The device is usable.
        case up = 6
    }

    /// The flags of a device: `IFF_*` of netdevice(7).
    package struct Flags: OptionSet, Hashable, Sendable {
        /// The kernel's bits.
        package let rawValue: UInt32
        /// Flags from the kernel's bits.
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        /// Switched on by an administrator.
        package static let up = Flags(rawValue: 1 << 0)
        /// A loopback device.
        package static let loopback = Flags(rawValue: 1 << 3)
        /// A link between two ends only.
        package static let pointToPoint = Flags(rawValue: 1 << 4)
        /// The operational state is up or unknown.
        package static let running = Flags(rawValue: 1 << 6)
        /// The driver reports carrier.
        package static let lowerUp = Flags(rawValue: 1 << 16)
        /// The driver reports that the device is dormant.
        package static let dormant = Flags(rawValue: 1 << 17)
    }

    /// The kernel's index of the device.
    package var index: UInt32
    /// The name of the device.
    package var name: String
    /// The alternative names under which the kernel also knows the device (`IFLA_ALT_IFNAME`, Linux 5.5), in the kernel's
    /// order.
    package var alternativeNames: [String]
    /// The flags of the device.
    package var flags: Flags
    /// The hardware type `ARPHRD_*`.
    package var hardwareType: UInt16
    /// The operational state.
    package var operationalState: OperationalState
    /// The size of the largest packet in bytes.
    package var mtu: UInt32
    /// The device's kind (`IFLA_INFO_KIND`): `veth`, `bridge`, `tun`, …; `nil` for hardware.
    package var kind: String?
    /// The kind of the device of which this one is a port: `bridge`, `bond`, …; `nil` if it is no port.
    package var portKind: String?
    /// The index of the device of which this one is a port; 0 for none.
    package var master: UInt32
    /// The index of the device below, or of a veth's peer (`IFLA_LINK`); 0 for none, and if that device is in another
    /// namespace.
    package var lower: UInt32
    /// Whether `IFLA_LINK` names a device of another namespace.
    package var lowerIsElsewhere: Bool
    /// The hardware address; empty if the device has none.
    package var hardwareAddress: [UInt8]
    /// The bus of the parent device (`IFLA_PARENT_DEV_BUS_NAME`, Linux 5.15): `pci`, `usb`, `virtio`, ….
    package var parentBus: String?
    /// Whether a device of kind `tun` is a tap (`IFLA_TUN_TYPE` 2).
    package var isTap: Bool
    /// The remote end of an IP tunnel; `nil` if the kernel does not report it.
    package var tunnelRemote: IPAddress?

    /// Creates a link.
    package init(
        index: UInt32, name: String, alternativeNames: [String] = [], flags: Flags = [], hardwareType: UInt16 = 1,
        operationalState: OperationalState = .unknown,
        mtu: UInt32 = 1500, kind: String? = nil, portKind: String? = nil, master: UInt32 = 0, lower: UInt32 = 0,
        lowerIsElsewhere: Bool = false, hardwareAddress: [UInt8] = [], parentBus: String? = nil, isTap: Bool = false,
        tunnelRemote: IPAddress? = nil
    ) {
        self.index = index
        self.name = name
        self.alternativeNames = alternativeNames
        self.flags = flags
        self.hardwareType = hardwareType
        self.operationalState = operationalState
        self.mtu = mtu
        self.kind = kind
        self.portKind = portKind
        self.master = master
        self.lower = lower
        self.lowerIsElsewhere = lowerIsElsewhere
        self.hardwareAddress = hardwareAddress
        self.parentBus = parentBus
        self.isTap = isTap
        self.tunnelRemote = tunnelRemote
    }

    /// Whether the device carries packets now, by systemd's rule (`netif_has_carrier`). `UNKNOWN` counts as usable while the
    /// device is running, because lo, tun and WireGuard never report `UP`. Other states do not count.
    package var hasCarrier: Bool {
        switch operationalState {
        case .up: flags.contains(.up)
        case .unknown: flags.isSuperset(of: [.up, .running, .lowerUp]) && !flags.contains(.dormant)
        default: false
        }
    }
}

/// The numbers of packets that an interface has received and sent (`struct rtnl_link_stats64`).
package struct LinkCounters: Hashable, Sendable, Codable {
    package var received: UInt64
    package var sent: UInt64

    package init(received: UInt64, sent: UInt64) {
        self.received = received
        self.sent = sent
    }
}

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
