extension Kernel {
    /// A network device, from rtnetlink's RTM_NEWLINK message (rtnetlink(7)).
    public struct Link: Hashable, Sendable {
        /// The operational state `IF_OPER_*` of RFC 2863, as the kernel numbers it (Documentation/networking/operstates.rst).
        @nonexhaustive public enum OperationalState: UInt8, Hashable, Sendable {
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
        public struct Flags: OptionSet, Hashable, Sendable {
            /// The kernel's bits.
            public let rawValue: UInt32
            /// Flags from the kernel's bits.
            public init(rawValue: UInt32) { self.rawValue = rawValue }
            /// Switched on by an administrator.
            public static let up = Flags(rawValue: 1 << 0)
            /// A loopback device.
            public static let loopback = Flags(rawValue: 1 << 3)
            /// A link between two ends only.
            public static let pointToPoint = Flags(rawValue: 1 << 4)
            /// The operational state is up or unknown.
            public static let running = Flags(rawValue: 1 << 6)
            /// The driver reports carrier.
            public static let lowerUp = Flags(rawValue: 1 << 16)
            /// The driver reports that the device is dormant.
            public static let dormant = Flags(rawValue: 1 << 17)
        }

        /// The kernel's index of the device.
        public var index: UInt32
        /// The name of the device.
        public var name: String
        /// The alternative names under which the kernel also knows the device (`IFLA_ALT_IFNAME`, Linux 5.5), in the kernel's
        /// order.
        public var alternativeNames: [String]
        /// The flags of the device.
        public var flags: Flags
        /// The hardware type `ARPHRD_*`.
        public var hardwareType: UInt16
        /// The operational state.
        public var operationalState: OperationalState
        /// The size of the largest packet in bytes.
        public var mtu: UInt32
        /// The device's kind (`IFLA_INFO_KIND`): `veth`, `bridge`, `tun`, …; `nil` for hardware.
        public var kind: String?
        /// The kind of the device of which this one is a port: `bridge`, `bond`, …; `nil` if it is no port.
        public var portKind: String?
        /// The index of the device of which this one is a port; 0 for none.
        public var master: UInt32
        /// The index of the device below, or of a veth's peer (`IFLA_LINK`); 0 for none, and if that device is in another
        /// namespace.
        public var lower: UInt32
        /// Whether `IFLA_LINK` names a device of another namespace.
        public var lowerIsElsewhere: Bool
        /// The hardware address; empty if the device has none.
        public var hardwareAddress: [UInt8]
        /// The bus of the parent device (`IFLA_PARENT_DEV_BUS_NAME`, Linux 5.15): `pci`, `usb`, `virtio`, ….
        public var parentBus: String?
        /// Whether a device of kind `tun` is a tap (`IFLA_TUN_TYPE` 2).
        public var isTap: Bool
        /// The remote end of an IP tunnel; `nil` if the kernel does not report it.
        public var tunnelRemote: IPAddress?

        /// Creates a link.
        public init(
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
        public var hasCarrier: Bool {
            switch operationalState {
            case .up: flags.contains(.up)
            case .unknown: flags.isSuperset(of: [.up, .running, .lowerUp]) && !flags.contains(.dormant)
            default: false
            }
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
