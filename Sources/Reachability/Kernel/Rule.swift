extension Kernel {
    /// A policy routing rule (ip-rule(8)), from rtnetlink's RTM_NEWRULE message (rtnetlink(7)).
    public struct Rule: Hashable, Sendable {
        /// The family of the packets to which the rule applies.
        public var family: IPAddress.Family
        /// The priority of the rule; rules with lower numbers are evaluated first.
        public var priority: UInt32
        /// The action `FR_ACT_*`: 1 looks up `table`, 2 jumps to the rule at `target`, 6 to 8 refuse the packet.
        public var action: UInt8
        /// The number of the table to look up, 32 bits.
        public var table: UInt32
        /// The priority at which a `goto` rule continues; 0 for none.
        public var target: UInt32
        /// Whether the rule applies to packets that do *not* match (`not`).
        public var isInverted: Bool
        /// The source addresses that match; `nil` for any.
        public var source: IPPrefix?
        /// The destination addresses that match; `nil` for any.
        public var destination: IPPrefix?
        /// The name of the receiving interface that matches; `lo` for packets of this machine, `nil` for any.
        public var incomingInterface: String?
        /// The name of the interface to which the sending socket is bound; `nil` for any.
        public var outgoingInterface: String?
        /// The firewall mark that matches, under ``markMask``.
        public var mark: UInt32
        /// The bits of the mark that are compared; 0 for none.
        public var markMask: UInt32
        /// The type of service that matches; 0 for any.
        public var typeOfService: UInt8
        /// The user ids that match (`uidrange`); `nil` for any.
        public var users: ClosedRange<UInt32>?
        /// The maximum prefix length of suppressed results (`suppress_prefixlength`); `nil` for no suppression.
        public var suppressedPrefixLength: UInt32?
        /// The interface group whose results are suppressed; `nil` for none.
        public var suppressedGroup: UInt32?
        /// The number of the IP protocol that matches; 0 for any.
        public var ipProtocol: UInt8
        /// The source ports that match; `nil` for any.
        public var sourcePorts: ClosedRange<UInt16>?
        /// The destination ports that match; `nil` for any.
        public var destinationPorts: ClosedRange<UInt16>?
        /// Whether the rule looks up the table of the packet's VRF.
        public var isL3MasterDevice: Bool
        /// The tunnel id that matches; 0 for any.
        public var tunnel: UInt64
        /// The origin of the rule (`RTPROT_*`), such as the kernel, an administrator or a routing daemon.
        public var origin: UInt8
        /// A digest of the attributes that this type does not name. Rules that differ only in those attributes are not equal.
        public var fingerprint: UInt64

        /// Creates a rule. Omitted conditions match any packet.
        public init(
            family: IPAddress.Family, priority: UInt32, action: UInt8 = 1, table: UInt32 = 254, target: UInt32 = 0,
            isInverted: Bool = false, source: IPPrefix? = nil, destination: IPPrefix? = nil, incomingInterface: String? = nil,
            outgoingInterface: String? = nil, mark: UInt32 = 0, markMask: UInt32 = 0, typeOfService: UInt8 = 0,
            users: ClosedRange<UInt32>? = nil, suppressedPrefixLength: UInt32? = nil, suppressedGroup: UInt32? = nil,
            ipProtocol: UInt8 = 0, sourcePorts: ClosedRange<UInt16>? = nil, destinationPorts: ClosedRange<UInt16>? = nil,
            isL3MasterDevice: Bool = false, tunnel: UInt64 = 0, origin: UInt8 = 0, fingerprint: UInt64 = 0
        ) {
            self.family = family
            self.priority = priority
            self.action = action
            self.table = table
            self.target = target
            self.isInverted = isInverted
            self.source = source
            self.destination = destination
            self.incomingInterface = incomingInterface
            self.outgoingInterface = outgoingInterface
            self.mark = mark
            self.markMask = markMask
            self.typeOfService = typeOfService
            self.users = users
            self.suppressedPrefixLength = suppressedPrefixLength
            self.suppressedGroup = suppressedGroup
            self.ipProtocol = ipProtocol
            self.sourcePorts = sourcePorts
            self.destinationPorts = destinationPorts
            self.isL3MasterDevice = isL3MasterDevice
            self.tunnel = tunnel
            self.origin = origin
            self.fingerprint = fingerprint
        }
    }
}

extension Rule {
    /// Whether the rule applies to every packet that this machine sends.
    var matchesEveryPacket: Bool {
        !isInverted && source == nil && destination == nil && (incomingInterface ?? "lo") == "lo" && outgoingInterface == nil
            && markMask == 0 && typeOfService == 0 && users == nil && ipProtocol == 0 && sourcePorts == nil
            && destinationPorts == nil && !isL3MasterDevice && tunnel == 0
    }
}
