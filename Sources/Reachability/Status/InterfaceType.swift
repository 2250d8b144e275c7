/// What carries the packets of an interface, told from evidence, never from its name.
@nonexhaustive public enum InterfaceType: String, Hashable, Sendable, CaseIterable {
    /// Ethernet, on a board, a card or a USB adapter; also veth, whose `isVirtual` is true.
    case wired
    /// IEEE 802.11.
    case wifi
    /// A mobile network's modem.
    case cellular
    /// Traffic of this machine to itself.
    case loopback
    /// Packets inside other packets: WireGuard, tun, PPP over IP, GRE, IPIP, SIT, VTI, xfrm, VXLAN, geneve, L2TP.
    case tunnel
    /// A bridge whose ports agree on no medium.
    case bridge
    /// A Bluetooth personal area network.
    case bluetooth
    /// A phone's tether or the device side of a USB cable.
    case usb
    /// Made by software with no medium behind it: tap, dummy, ifb, and stacked devices whose lower devices disagree.
    case virtual
    /// Anything else: CAN, InfiniBand, IEEE 802.15.4 and what comes.
    case other
}

/// How far an interface is on its way to carrying packets: systemd's matrix of carrier and address state
/// (networkctl(1), "operational state").
@nonexhaustive public enum LinkLevel: String, Hashable, Sendable, CaseIterable, Comparable {
    /// Switched off by an administrator (no `IFF_UP`).
    case off
    /// Switched on, but no cable, no association, no peer.
    case noCarrier = "no-carrier"
    /// Carrier is there, but the link waits, as for 802.1X or a WPA handshake (`IF_OPER_DORMANT`).
    case dormant
    /// A bond, team or bridge some of whose ports have no carrier, without an address.
    case degradedCarrier = "degraded-carrier"
    /// Carrier, but no address.
    case carrier
    /// Carrier, and only link-local or host addresses.
    case degraded
    /// A port of another device, without an address of its own that reaches further than the link.
    case enslaved
    /// Carrier and an address that reaches beyond the link.
    case routable

    /// The order of the declaration: `off` is least, `routable` most.
    public static func < (left: LinkLevel, right: LinkLevel) -> Bool { left.rank < right.rank }

    private var rank: Int {
        switch self {
        case .off: 0
        case .noCarrier: 1
        case .dormant: 2
        case .degradedCarrier: 3
        case .carrier: 4
        case .degraded: 5
        case .enslaved: 6
        case .routable: 7
        }
    }
}
