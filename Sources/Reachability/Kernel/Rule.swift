internal import CLibnl
internal import CLinux

/// A policy routing rule (ip-rule(8)), from rtnetlink's RTM_NEWRULE message (rtnetlink(7)).
package struct Rule: Hashable, Sendable {
    /// The family of the packets to which the rule applies.
    package var family: IPAddress.Family
    /// The priority of the rule; rules with lower numbers are evaluated first.
    package var priority: UInt32
    /// The action `FR_ACT_*`: 1 looks up `table`, 2 jumps to the rule at `target`, 6 to 8 refuse the packet.
    package var action: UInt8
    /// The number of the table to look up, 32 bits.
    package var table: UInt32
    /// The priority at which a `goto` rule continues; 0 for none.
    package var target: UInt32
    /// Whether the rule applies to packets that do *not* match (`not`).
    package var isInverted: Bool
    /// The source addresses that match; `nil` for any.
    package var source: IPPrefix?
    /// The destination addresses that match; `nil` for any.
    package var destination: IPPrefix?
    /// The name of the receiving interface that matches; `lo` for packets of this machine, `nil` for any.
    package var incomingInterface: String?
    /// The name of the interface to which the sending socket is bound; `nil` for any.
    package var outgoingInterface: String?
    /// The firewall mark that matches, under ``markMask``.
    package var mark: UInt32
    /// The bits of the mark that are compared; 0 for none.
    package var markMask: UInt32
    /// The type of service that matches; 0 for any.
    package var typeOfService: UInt8
    /// The user ids that match (`uidrange`); `nil` for any.
    package var users: ClosedRange<UInt32>?
    /// The maximum prefix length of suppressed results (`suppress_prefixlength`); `nil` for no suppression.
    package var suppressedPrefixLength: UInt32?
    /// The interface group whose results are suppressed; `nil` for none.
    package var suppressedGroup: UInt32?
    /// The number of the IP protocol that matches; 0 for any.
    package var ipProtocol: UInt8
    /// The source ports that match; `nil` for any.
    package var sourcePorts: ClosedRange<UInt16>?
    /// The destination ports that match; `nil` for any.
    package var destinationPorts: ClosedRange<UInt16>?
    /// Whether the rule looks up the table of the packet's VRF.
    package var isL3MasterDevice: Bool
    /// The tunnel id that matches; 0 for any.
    package var tunnel: UInt64
    /// The origin of the rule (`RTPROT_*`), such as the kernel, an administrator or a routing daemon.
    package var origin: UInt8
    /// A digest of the attributes that this type does not name. Rules that differ only in those attributes are not equal.
    package var fingerprint: UInt64

    /// Creates a rule. Omitted conditions match any packet.
    package init(
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

extension Rule {
    /// Whether the rule applies to every packet that this machine sends.
    var matchesEveryPacket: Bool {
        !isInverted && source == nil && destination == nil && (incomingInterface ?? "lo") == "lo" && outgoingInterface == nil
            && markMask == 0 && typeOfService == 0 && users == nil && ipProtocol == 0 && sourcePorts == nil
            && destinationPorts == nil && !isL3MasterDevice && tunnel == 0
    }
}

extension NetlinkDecoder {
    /// Decodes RTM_NEWRULE and RTM_DELRULE by attribute: libnl-route 3.7 drops `not`, `suppress_prefixlength` and `uidrange`.
    static func rule(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: fib_rule_hdr.self) else { return .malformed }
        let family: IPAddress.Family
        switch Int32(header.family) {
        case AF_INET: family = .v4
        case AF_INET6: family = .v6
        default: return .ignored
        }
        var rule = Rule(
            family: family, priority: 0, action: header.action, table: UInt32(header.table),
            isInverted: header.flags & UInt32(FIB_RULE_INVERT) != 0, typeOfService: header.tos
        )
        var digest = Fingerprint()
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<fib_rule_hdr>.size) {
            if !rule.read(attribute, header) { digest.add(attribute.type, attribute.bytes) }
        }
        rule.fingerprint = digest.value
        return Int(message.pointee.nlmsg_type) == RTM_DELRULE ? .ruleRemoved(rule) : .rule(rule)
    }
}

extension Rule {
    /// Reads one attribute; returns false for an attribute that the type does not name.
    fileprivate mutating func read(_ attribute: AttributeSequence.Attribute, _ header: fib_rule_hdr) -> Bool {
        func range<Number: FixedWidthInteger>() -> ClosedRange<Number>? {
            let size = MemoryLayout<Number>.size
            guard attribute.bytes.count >= 2 * size else { return nil }
            let (low, high) = (
                attribute.bytes.loadUnaligned(as: Number.self),
                attribute.bytes.loadUnaligned(fromByteOffset: size, as: Number.self)
            )
            return low <= high ? low...high : nil
        }
        // -1 means no limit.
        func limit() -> UInt32? { attribute.number(UInt32.self).flatMap { $0 == .max ? nil : $0 } }

        switch Int(attribute.type) {
        case FRA_DST: destination = attribute.address.map { IPPrefix($0, length: header.dst_len) }
        case FRA_SRC: source = attribute.address.map { IPPrefix($0, length: header.src_len) }
        case FRA_IIFNAME: incomingInterface = attribute.text
        case FRA_OIFNAME: outgoingInterface = attribute.text
        case FRA_GOTO: target = attribute.number() ?? 0
        case FRA_PRIORITY: priority = attribute.number() ?? 0
        case FRA_FWMARK: mark = attribute.number() ?? 0
        case FRA_FWMASK: markMask = attribute.number() ?? 0
        case FRA_TUN_ID: tunnel = attribute.number(UInt64.self)?.bigEndian ?? 0
        case FRA_SUPPRESS_IFGROUP: suppressedGroup = limit()
        case FRA_SUPPRESS_PREFIXLEN: suppressedPrefixLength = limit()
        case FRA_TABLE: table = attribute.number() ?? 0
        case FRA_L3MDEV: isL3MasterDevice = attribute.number(UInt8.self) ?? 0 != 0
        case FRA_UID_RANGE: users = range()
        case FRA_PROTOCOL: origin = attribute.number() ?? 0
        case FRA_IP_PROTO: ipProtocol = attribute.number() ?? 0
        case FRA_SPORT_RANGE: sourcePorts = range()
        case FRA_DPORT_RANGE: destinationPorts = range()
        default: return false
        }
        return true
    }
}
