/// The medium of an interface, determined from evidence and never from its name. Later versions may add types.
@nonexhaustive public enum InterfaceType: String, Hashable, Sendable, CaseIterable {
    /// Ethernet: on a board, a card or a USB adapter. Also veth, whose `isVirtual` is true.
    case wired
    /// Wi-Fi (IEEE 802.11).
    case wifi
    /// The modem of a mobile network.
    case cellular
    /// The loopback device.
    case loopback
    /// Packets inside other packets: WireGuard, tun, PPP over IP, GRE, IPIP, SIT, VTI, xfrm, VXLAN, geneve, L2TP.
    case tunnel
    /// A bridge whose ports do not have one common medium.
    case bridge
    /// A Bluetooth personal area network.
    case bluetooth
    /// A phone's tethering over USB, or the device side of a USB cable.
    case usb
    /// A software device without a medium: tap, dummy, ifb, and stacked devices whose lower devices have different media.
    case virtual
    /// Any other medium, such as CAN, InfiniBand or IEEE 802.15.4.
    case other
}

/// The operational level of an interface, by systemd's matrix of carrier and address state (networkctl(1), "operational state").
/// Later versions may add levels.
@nonexhaustive public enum LinkLevel: String, Hashable, Sendable, CaseIterable, Comparable {
    /// Switched off by an administrator (no `IFF_UP`).
    case off
    /// Switched on, without carrier: no cable, no association, or no peer.
    case noCarrier = "no-carrier"
    /// With carrier, but the link waits for an event, such as 802.1X or a WPA handshake (`IF_OPER_DORMANT`).
    case dormant
    /// A bond, team or bridge without an address, some of whose ports have no carrier.
    case degradedCarrier = "degraded-carrier"
    /// With carrier, without an address.
    case carrier
    /// With carrier and only link-local or host-scope addresses.
    case degraded
    /// A port of another device, without an address that reaches beyond the link.
    case enslaved
    /// With carrier and an address that reaches beyond the link.
    case routable

    /// Orders by declaration: `off` is the least, `routable` the greatest.
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
