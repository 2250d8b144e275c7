extension Kernel {
    /// A network device as rtnetlink's RTM_NEWLINK message tells it.
    public struct Link: Hashable, Sendable {
        /// `IF_OPER_*` of RFC 2863 as the kernel numbers it (Documentation/networking/operstates.rst).
        @nonexhaustive public enum OperationalState: UInt8, Hashable, Sendable {
            /// The driver does not say; counts as usable with carrier.
            case unknown = 0
            /// Removed hardware.
            case notPresent = 1
            /// No carrier.
            case down = 2
            /// A stacked device over one that is down.
            case lowerLayerDown = 3
            /// In a test.
            case testing = 4
            /// Waiting for 802.1X, a handshake or the like.
            case dormant = 5
            /// Usable.
            case up = 6
        }

        /// `IFF_*` of netdevice(7).
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
            /// Operational state is up or unknown.
            public static let running = Flags(rawValue: 1 << 6)
            /// The driver says carrier.
            public static let lowerUp = Flags(rawValue: 1 << 16)
            /// Dormant.
            public static let dormant = Flags(rawValue: 1 << 17)
        }

        /// The kernel's number of the device.
        public var index: UInt32
        /// The name.
        public var name: String
        /// The names beside ``name`` that the kernel also knows the device by (`IFLA_ALT_IFNAME`, Linux 5.5), in its order.
        public var alternativeNames: [String]
        /// Its flags.
        public var flags: Flags
        /// `ARPHRD_*`: the hardware type.
        public var hardwareType: UInt16
        /// The operational state.
        public var operationalState: OperationalState
        /// The largest packet in bytes.
        public var mtu: UInt32
        /// `IFLA_INFO_KIND`: `veth`, `bridge`, `tun`, …; `nil` for hardware.
        public var kind: String?
        /// The kind of the device it is a port of: `bridge`, `bond`, …
        public var portKind: String?
        /// The index of the device it is a port of; 0 for none.
        public var master: UInt32
        /// `IFLA_LINK`: the device below, or a veth's peer; 0 for none, and where that device is in another namespace.
        public var lower: UInt32
        /// Whether `IFLA_LINK` names a device of another namespace.
        public var lowerIsElsewhere: Bool
        /// The hardware address; empty for none.
        public var hardwareAddress: [UInt8]
        /// The bus that its parent device sits on (`IFLA_PARENT_DEV_BUS_NAME`, Linux 5.15): `pci`, `usb`, `virtio`, …
        public var parentBus: String?
        /// Whether a device of kind `tun` is a tap: `IFLA_TUN_TYPE` 2.
        public var isTap: Bool
        /// The other end of an IP tunnel, where the kernel tells it.
        public var tunnelRemote: IPAddress?

        /// A link with what is known of it.
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

        /// Whether it carries packets now: systemd's rule (`netif_has_carrier`). `UNKNOWN` counts as usable while running (lo, tun,
        /// WireGuard never say `UP`); any other state does not.
        public var hasCarrier: Bool {
            switch operationalState {
            case .up: flags.contains(.up)
            case .unknown: flags.isSuperset(of: [.up, .running, .lowerUp]) && !flags.contains(.dormant)
            default: false
            }
        }
    }
}
