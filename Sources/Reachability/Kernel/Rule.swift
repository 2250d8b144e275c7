extension Kernel {
    /// A policy routing rule (ip-rule(8)) as rtnetlink's RTM_NEWRULE message tells it.
    public struct Rule: Hashable, Sendable {
        /// The family that it applies to.
        public var family: IPAddress.Family
        /// The order of evaluation; lower comes first.
        public var priority: UInt32
        /// `FR_ACT_*`: 1 looks up `table`, 2 goes to `target`, 6 to 8 refuse.
        public var action: UInt8
        /// The table to look up, 32 bits.
        public var table: UInt32
        /// The priority that a `goto` continues at; 0 for none.
        public var target: UInt32
        /// Applies to packets that do *not* match (`not`).
        public var isInverted: Bool
        /// From these addresses; `nil` for any.
        public var source: IPPrefix?
        /// To these addresses; `nil` for any.
        public var destination: IPPrefix?
        /// Received on this interface; `lo` for packets of this machine.
        public var incomingInterface: String?
        /// Sent from a socket bound to this interface.
        public var outgoingInterface: String?
        /// The mark.
        public var mark: UInt32
        /// Which bits of the mark count.
        public var markMask: UInt32
        /// The type of service.
        public var typeOfService: UInt8
        /// The users (`uidrange`).
        public var users: ClosedRange<UInt32>?
        /// Results with a prefix of at most this length are not used (`suppress_prefixlength`); `nil` for no limit.
        public var suppressedPrefixLength: UInt32?
        /// Results over an interface of this group are not used; `nil` for none.
        public var suppressedGroup: UInt32?
        /// The IP protocol's number; 0 for any.
        public var ipProtocol: UInt8
        /// The source ports.
        public var sourcePorts: ClosedRange<UInt16>?
        /// The destination ports.
        public var destinationPorts: ClosedRange<UInt16>?
        /// Looks up the table of the packet's VRF.
        public var isL3MasterDevice: Bool
        /// The id of the tunnel; 0 for any.
        public var tunnel: UInt64
        /// `RTPROT_*`: who put it there.
        public var origin: UInt8
        /// A digest of the attributes that have no name here, so that rules that differ only there differ.
        public var fingerprint: UInt64

        /// A rule; what is not given matches anything.
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
    /// Whether it applies to every packet that this machine sends.
    var takesEveryPacket: Bool {
        !isInverted && source == nil && destination == nil && (incomingInterface ?? "lo") == "lo" && outgoingInterface == nil
            && markMask == 0 && typeOfService == 0 && users == nil && ipProtocol == 0 && sourcePorts == nil
            && destinationPorts == nil && !isL3MasterDevice && tunnel == 0
    }
}
