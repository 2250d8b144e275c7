/// What `IFLA_INFO_KIND` says of a device: the strongest evidence, because the module that made the device says it itself.
enum LinkKind: Hashable {
    /// The kind alone decides.
    case decided(InterfaceType, isVirtual: Bool)
    /// One end of a pair: wired, but as a port of another device it lends no medium.
    case pair
    /// `tun`: an attribute tells tunnel from tap, never the ARPHRD type, which any program may set (`TUNSETLINK`).
    case tun
    /// Rests on the devices whose master it is.
    case overPorts
    /// Rests on the device that `IFLA_LINK` names.
    case overLower
    /// `ppp`: over IP, over Ethernet, or over a modem's serial line.
    case pointToPoint
    /// A kind that this version does not know.
    case unknown

    /// What the link's kind says; `nil` where it has none, as hardware has not.
    init?(_ link: Link) {
        guard let kind = link.kind else { return nil }
        self = Self.known[kind] ?? .unknown
    }

    /// Whether devices of this kind are known.
    static func isKnown(_ kind: String) -> Bool { known[kind] != nil }

    private static let known: [String: LinkKind] = {
        var known: [String: LinkKind] = [
            "tun": .tun, "ppp": .pointToPoint,
            "bridge": .overPorts, "bond": .overPorts, "team": .overPorts,
            "wwan": .decided(.cellular, isVirtual: false), "rmnet": .decided(.cellular, isVirtual: false),
            "virt_wifi": .decided(.wifi, isVirtual: true),
            // A port of an Ethernet switch chip: hardware, though made by a software module.
            "dsa": .decided(.wired, isVirtual: false),
            "can": .decided(.other, isVirtual: false), "ipoib": .decided(.other, isVirtual: false),
            "lowpan": .decided(.other, isVirtual: true),
        ]
        // netkit is a veth that runs BPF programs; containers have it as their eth0.
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
