/// The meaning of `IFLA_INFO_KIND`: the strongest evidence, because the module that created the device sets the kind.
enum LinkKind: Hashable {
    /// The kind alone determines the type.
    case decided(InterfaceType, isVirtual: Bool)
    /// One end of a pair (veth, netkit). The device is wired, but as a port it does not determine the medium of its bridge or
    /// bond.
    case pair
    /// `tun`: an attribute distinguishes tunnel from tap. The ARPHRD type does not, because any program may set it
    /// (`TUNSETLINK`).
    case tun
    /// The device is stacked on its ports: the devices whose master it is.
    case overPorts
    /// The device is stacked on the device that `IFLA_LINK` names.
    case overLower
    /// `ppp`: over IP, over Ethernet, or over a modem's serial line.
    case pointToPoint
    /// A kind that this version does not know.
    case unknown

    /// Creates the meaning of a link's kind; `nil` for a link without a kind, such as hardware.
    init?(_ link: Link) {
        guard let kind = link.kind else { return nil }
        self = Self.known[kind] ?? .unknown
    }

    /// Returns whether this version knows the kind.
    static func isKnown(_ kind: String) -> Bool { known[kind] != nil }

    private static let known: [String: LinkKind] = {
        var known: [String: LinkKind] = [
            "tun": .tun, "ppp": .pointToPoint,
            "bridge": .overPorts, "bond": .overPorts, "team": .overPorts,
            "wwan": .decided(.cellular, isVirtual: false), "rmnet": .decided(.cellular, isVirtual: false),
            "virt_wifi": .decided(.wifi, isVirtual: true),
            // A port of an Ethernet switch chip is hardware, although a software module creates the device.
            "dsa": .decided(.wired, isVirtual: false),
            "can": .decided(.other, isVirtual: false), "ipoib": .decided(.other, isVirtual: false),
            "lowpan": .decided(.other, isVirtual: true),
        ]
        // netkit is a veth that runs BPF programs. Containers may have it as their eth0.
        for kind in ["veth", "netkit"] { known[kind] = .pair }
        for kind in ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec"] { known[kind] = .overLower }
        let tunnels = [
            "wireguard", "amneziawg", "ovpn", "gre", "gretap", "erspan", "ip6gre", "ip6gretap", "ip6erspan", "ipip", "sit",
            "ip6tnl", "vti", "vti6", "xfrm", "ipsec", "vxlan", "geneve", "gtp", "bareudp", "amt",
        ]
        for kind in tunnels { known[kind] = .decided(.tunnel, isVirtual: true) }
        let virtual = [
            "dummy", "ifb", "vrf", "nlmon", "vsockmon", "vcan", "vxcan", "netdevsim", "batadv", "hsr", "openvswitch",
        ]
        for kind in virtual { known[kind] = .decided(.virtual, isVirtual: true) }
        return known
    }()
}
