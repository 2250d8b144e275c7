import Testing

@testable import Reachability

/// An interface as Debian's 6.1 kernel showed it in a virtual machine, with the classification that is expected for it. The list
/// has every kind that the kernel could be made to show. All belong to one machine, so that stacked devices find the devices
/// under them.
struct LaboratoryInterface: CustomTestStringConvertible {
    var name: String
    var kind: String?
    var hardwareType: UInt16
    var deviceType: String?
    var isWireless: Bool
    var bus: String?
    var driver: String?
    var lower: String?
    var master: String?
    var isTap: Bool
    var flags: Link.Flags
    var type: InterfaceType
    var isVirtual: Bool
    var isExpensive: Bool
    /// The expected type if sysfs shows another namespace's devices.
    var typeWithoutSysfs: InterfaceType

    var testDescription: String { name }

    init(
        _ name: String, _ kind: String? = nil, _ hardwareType: UInt16 = 1, devtype: String? = nil, wireless: Bool = false,
        bus: String? = nil, driver: String? = nil, lower: String? = nil, master: String? = nil, tap: Bool = false,
        flags: Link.Flags = [], is type: InterfaceType, virtual: Bool, expensive: Bool = false, withoutSysfs: InterfaceType? = nil
    ) {
        self.name = name
        self.kind = kind
        self.hardwareType = hardwareType
        deviceType = devtype
        isWireless = wireless
        self.bus = bus
        self.driver = driver
        self.lower = lower
        self.master = master
        isTap = tap
        self.flags = flags
        self.type = type
        isVirtual = virtual
        isExpensive = expensive
        typeWithoutSysfs = withoutSysfs ?? type
    }

    static func wireless(_ name: String, _ hardwareType: UInt16 = 1) -> LaboratoryInterface {
        LaboratoryInterface(
            name, nil, hardwareType, devtype: "wlan", wireless: true, bus: "mac80211_hwsim", driver: "mac80211_hwsim", is: .wifi,
            virtual: false)
    }

    static let all: [LaboratoryInterface] = [
        LaboratoryInterface("lo", nil, 772, flags: .loopback, is: .loopback, virtual: true),
        LaboratoryInterface("eth0", bus: "virtio", driver: "virtio_net", is: .wired, virtual: false),
        LaboratoryInterface("eth1", bus: "pci", driver: "e1000", is: .wired, virtual: false),
        LaboratoryInterface("usb0", bus: "usb", driver: "cdc_ether", is: .usb, virtual: false, expensive: true),
        LaboratoryInterface("can0", "can", 280, bus: "pci", driver: "kvaser_pci", is: .other, virtual: false),
        .wireless("wlan0"), .wireless("wlan1"), .wireless("wlan2"), .wireless("wlan3"), .wireless("wlan4"),
        LaboratoryInterface("hwsim0", nil, 803, is: .other, virtual: true),
        .wireless("mon0", 803), .wireless("mesh0"), .wireless("wds0"),
        LaboratoryInterface(
            "wwan0", "wwan", 65534, devtype: "wwan", bus: "wwan", driver: "wwan", flags: .pointToPoint, is: .cellular,
            virtual: false, expensive: true),
        LaboratoryInterface(
            "wwan0.1", "wwan", 65534, devtype: "wwan", bus: "wwan", driver: "wwan", flags: .pointToPoint, is: .cellular,
            virtual: false, expensive: true),
        LaboratoryInterface("usb1", devtype: "gadget", bus: "gadget", driver: "g_ether", is: .usb, virtual: false),
        // Only DEVTYPE distinguishes this modem from a tether.
        LaboratoryInterface(
            "wwan2", devtype: "wwan", bus: "usb", driver: "cdc_ether", is: .cellular, virtual: false, expensive: true,
            withoutSysfs: .usb),
        LaboratoryInterface("usb2", devtype: "gadget", bus: "gadget", driver: "g_ether", is: .usb, virtual: false),
        LaboratoryInterface(
            "wwan3", devtype: "wwan", bus: "usb", driver: "qmi_wwan", is: .cellular, virtual: false, expensive: true),
        LaboratoryInterface("usb3", devtype: "gadget", bus: "gadget", driver: "g_ether", is: .usb, virtual: false),
        LaboratoryInterface("usb4", bus: "usb", driver: "rndis_host", is: .usb, virtual: false, expensive: true),
        LaboratoryInterface("usb5", devtype: "gadget", bus: "gadget", driver: "g_ether", is: .usb, virtual: false),
        LaboratoryInterface("usb6", bus: "usb", driver: "cdc_ncm", is: .usb, virtual: false, expensive: true),
        LaboratoryInterface("dummy0", "dummy", driver: "dummy", is: .virtual, virtual: true),
        LaboratoryInterface("dummy1", "dummy", driver: "dummy", master: "bond0", is: .virtual, virtual: true),
        LaboratoryInterface("veth0p", "veth", driver: "veth", lower: "veth0", master: "br0", is: .wired, virtual: true),
        LaboratoryInterface("veth0", "veth", driver: "veth", lower: "veth0p", is: .wired, virtual: true),
        LaboratoryInterface("vethx", "veth", driver: "veth", is: .wired, virtual: true),
        LaboratoryInterface("br0", "bridge", devtype: "bridge", driver: "bridge", is: .bridge, virtual: true),
        LaboratoryInterface("bond0", "bond", devtype: "bond", driver: "bonding", is: .virtual, virtual: true),
        LaboratoryInterface("team0", "team", driver: "team", is: .virtual, virtual: true),
        LaboratoryInterface("dummy2", "dummy", driver: "dummy", is: .virtual, virtual: true),
        LaboratoryInterface("dummy3", "dummy", driver: "dummy", is: .virtual, virtual: true),
        LaboratoryInterface("dummy4", "dummy", driver: "dummy", is: .virtual, virtual: true),
        LaboratoryInterface("dummy5", "dummy", driver: "dummy", master: "team0", is: .virtual, virtual: true),
        LaboratoryInterface(
            "dummy0.10", "vlan", devtype: "vlan", driver: "802.1Q VLAN Support", lower: "dummy0", is: .virtual, virtual: true),
        LaboratoryInterface("macvlan0", "macvlan", driver: "macvlan", lower: "dummy0", is: .virtual, virtual: true),
        LaboratoryInterface("macvtap0", "macvtap", driver: "macvlan", lower: "dummy0", is: .virtual, virtual: true),
        LaboratoryInterface("ipvlan0", "ipvlan", driver: "ipvlan", lower: "dummy2", is: .virtual, virtual: true),
        LaboratoryInterface("ipvtap0", "ipvtap", driver: "ipvlan", lower: "dummy2", is: .virtual, virtual: true),
        LaboratoryInterface("vxlan0", "vxlan", devtype: "vxlan", driver: "vxlan", is: .tunnel, virtual: true),
        LaboratoryInterface("geneve0", "geneve", devtype: "geneve", driver: "geneve", is: .tunnel, virtual: true),
        LaboratoryInterface("gre0", "gre", 778, driver: "gre", is: .tunnel, virtual: true),
        LaboratoryInterface("gretap0", "gretap", driver: "gretap", is: .tunnel, virtual: true),
        LaboratoryInterface("erspan0", "erspan", driver: "erspan", is: .tunnel, virtual: true),
        LaboratoryInterface("gre1", "gre", 778, driver: "gre", flags: .pointToPoint, is: .tunnel, virtual: true),
        LaboratoryInterface("gretap1", "gretap", driver: "gretap", is: .tunnel, virtual: true),
        LaboratoryInterface("erspan1", "erspan", driver: "erspan", is: .tunnel, virtual: true),
        LaboratoryInterface("ip6tnl0", "ip6tnl", 769, driver: "ip6tnl", is: .tunnel, virtual: true),
        LaboratoryInterface("ip6gre0", "ip6gre", 823, driver: "ip6gre", is: .tunnel, virtual: true),
        LaboratoryInterface("ip6gre1", "ip6gre", 823, driver: "ip6gre", is: .tunnel, virtual: true),
        LaboratoryInterface("ip6gretap1", "ip6gretap", driver: "ip6gretap", is: .tunnel, virtual: true),
        LaboratoryInterface("tunl0", "ipip", 768, driver: "ipip", is: .tunnel, virtual: true),
        LaboratoryInterface("ipip1", "ipip", 768, driver: "ipip", flags: .pointToPoint, is: .tunnel, virtual: true),
        LaboratoryInterface("sit0", "sit", 776, driver: "sit", is: .tunnel, virtual: true),
        LaboratoryInterface("sit1", "sit", 776, driver: "sit", flags: .pointToPoint, is: .tunnel, virtual: true),
        LaboratoryInterface("ip6tnl1", "ip6tnl", 769, driver: "ip6tnl", is: .tunnel, virtual: true),
        LaboratoryInterface("ip_vti0", "vti", 768, driver: "vti", is: .tunnel, virtual: true),
        LaboratoryInterface("vti1", "vti", 768, driver: "vti", flags: .pointToPoint, is: .tunnel, virtual: true),
        LaboratoryInterface("ip6_vti0", "vti6", 769, driver: "vti6", is: .tunnel, virtual: true),
        LaboratoryInterface("vti61", "vti6", 769, driver: "vti6", is: .tunnel, virtual: true),
        LaboratoryInterface("xfrm0", "xfrm", 65534, driver: "xfrm", lower: "dummy0", is: .tunnel, virtual: true),
        LaboratoryInterface(
            "wg0", "wireguard", 65534, devtype: "wireguard", driver: "wireguard", flags: .pointToPoint, is: .tunnel, virtual: true
        ),
        LaboratoryInterface("tun0", "tun", 65534, driver: "tun", flags: .pointToPoint, is: .tunnel, virtual: true),
        LaboratoryInterface("tap0", "tun", driver: "tun", tap: true, is: .virtual, virtual: true),
        LaboratoryInterface("vrf0", "vrf", driver: "vrf", is: .virtual, virtual: true),
        LaboratoryInterface("ifb9", "ifb", driver: "ifb", is: .virtual, virtual: true),
        LaboratoryInterface("nlmon0", "nlmon", 824, driver: "nlmon", is: .virtual, virtual: true),
        LaboratoryInterface("vsockmon0", "vsockmon", 826, driver: "vsockmon", is: .virtual, virtual: true),
        LaboratoryInterface("vcan0", "vcan", 280, driver: "vcan", is: .virtual, virtual: true),
        LaboratoryInterface("vxcan0", "vxcan", 280, driver: "vxcan", lower: "vxcan0p", is: .virtual, virtual: true),
        LaboratoryInterface("vxcan0p", "vxcan", 280, driver: "vxcan", lower: "vxcan0", is: .virtual, virtual: true),
        LaboratoryInterface(
            "macsec0", "macsec", devtype: "macsec", driver: "macsec", lower: "dummy3", is: .virtual, virtual: true),
        LaboratoryInterface("bat0", "batadv", driver: "B.A.T.M.A.N. advanced", is: .virtual, virtual: true),
        LaboratoryInterface(
            "gtp0", "gtp", 65534, devtype: "gtp", driver: "gtp", flags: .pointToPoint, is: .tunnel, virtual: true),
        // Only DEVTYPE gives its kind.
        LaboratoryInterface("l2tpeth0", devtype: "l2tpeth", is: .tunnel, virtual: true, withoutSysfs: .virtual),
        LaboratoryInterface("vwlow", "dummy", driver: "dummy", is: .virtual, virtual: true),
        LaboratoryInterface(
            "vwifi0", "virt_wifi", devtype: "wlan", wireless: true, driver: "virt_wifi", lower: "vwlow", is: .wifi, virtual: true),
        LaboratoryInterface(
            "rmnet_data0", "rmnet", 519, driver: "rmnet", lower: "dummy4", is: .cellular, virtual: false, expensive: true),
        LaboratoryInterface("wpan0", nil, 804, bus: "ieee802154", is: .other, virtual: false),
        LaboratoryInterface("lowpan0", "lowpan", 825, driver: "lowpan", lower: "wpan0", is: .other, virtual: true),
        LaboratoryInterface("eth2", bus: "netdevsim", driver: "netdevsim", is: .virtual, virtual: true),
        LaboratoryInterface(
            "ppp0", "ppp", 512, devtype: "ppp", driver: "ppp", flags: .pointToPoint, is: .tunnel, virtual: true),
        LaboratoryInterface("sl0", nil, 264, flags: .pointToPoint, is: .other, virtual: true),
        LaboratoryInterface(
            "wwanraw", nil, 65534, devtype: "wwan", bus: "usb", driver: "qmi_wwan", flags: .pointToPoint, is: .cellular,
            virtual: false, expensive: true),
    ]

    private static let indexes = Dictionary(
        uniqueKeysWithValues: all.enumerated().map { ($0.element.name, UInt32($0.offset + 1)) })

    static let links = Dictionary(uniqueKeysWithValues: all.map { ($0.link.index, $0.link) })

    static func named(_ index: UInt32) -> LaboratoryInterface { all[Int(index) - 1] }

    var link: Link {
        Link(
            index: Self.indexes[name] ?? 0, name: name, flags: flags.union([.up, .running, .lowerUp]), hardwareType: hardwareType,
            kind: kind, master: master.flatMap { Self.indexes[$0] } ?? 0, lower: lower.flatMap { Self.indexes[$0] } ?? 0,
            lowerIsElsewhere: name == "vethx", parentBus: bus, isTap: isTap)
    }

    /// The evidence that sysfs and ethtool give in the namespace to which sysfs belongs.
    var evidence: InterfaceEvidence? {
        guard InterfaceClassifier.needsEvidence(link) else { return nil }
        return InterfaceEvidence(
            deviceType: deviceType, isWireless: isWireless, driver: driver, bus: bus, sources: ["sysfs", "ethtool"])
    }

    /// The evidence that ethtool and nl80211 give in any namespace.
    var evidenceWithoutSysfs: InterfaceEvidence? {
        guard InterfaceClassifier.needsEvidence(link) else { return nil }
        return InterfaceEvidence(isWireless: isWireless, driver: driver, sources: ["ethtool", "nl80211"])
    }
}
