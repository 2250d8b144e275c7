internal import CLibnl
internal import CLinux

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
