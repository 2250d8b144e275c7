internal import CLibnl
internal import CLinux

extension NetlinkDecoder {
    /// Decodes RTM_NEWNEXTHOP and RTM_DELNEXTHOP by attribute: libnl-route 3.7 does not know them.
    static func nexthop(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: nhmsg.self) else { return .malformed }
        var object = NexthopObject(id: 0)
        var hop = Route.NextHop(interface: 0, isOnLink: header.nh_flags & UInt32(RTNH_F_ONLINK) != 0)
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<nhmsg>.size) {
            switch Int(attribute.type) {
            case NHA_ID: object.id = attribute.number() ?? 0
            case NHA_GROUP: object.group = members(attribute.bytes)
            case NHA_BLACKHOLE: object.isBlackhole = true
            case NHA_OIF: hop.interface = attribute.number() ?? 0
            case NHA_GATEWAY: hop.gateway = attribute.address
            default: break
            }
        }
        guard object.id != 0 else { return .malformed }
        if hop.interface != 0 && !object.isBlackhole { object.hop = hop }
        return Int(message.pointee.nlmsg_type) == RTM_DELNEXTHOP ? .nexthopRemoved(object.id) : .nexthop(object)
    }

    // struct nexthop_grp: id, weight minus one, its upper byte (Linux 6.12), reserved.
    private static func members(_ bytes: UnsafeRawBufferPointer) -> [NexthopObject.Member] {
        stride(from: 0, through: bytes.count - 8, by: 8).map { offset in
            NexthopObject.Member(
                id: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self),
                weight: (UInt16(bytes[offset + 4]) | UInt16(bytes[offset + 5]) << 8) &+ 1
            )
        }
    }
}
