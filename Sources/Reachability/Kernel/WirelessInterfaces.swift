internal import CLibnl
internal import CLinux
internal import Glibc

/// The interfaces that nl80211 lists in the calling thread's namespace. If sysfs shows another namespace's devices, nl80211 is
/// the only evidence of Wi-Fi. The queries need no privilege.
enum WirelessInterfaces {
    /// Returns the indexes of the interfaces; `nil` if the kernel has no nl80211 or does not answer.
    static func indexes() -> Set<UInt32>? {
        guard let socket = try? NetlinkSocket(protocolNumber: NETLINK_GENERIC), let family = family(of: "nl80211", on: socket)
        else {
            return nil
        }
        var found: Set<UInt32> = []
        let header = genlmsghdr(cmd: UInt8(NL80211_CMD_GET_INTERFACE.rawValue), version: 0, reserved: 0)
        let isComplete = exchange(
            on: socket, type: Int32(family), flags: NLM_F_ROOT | NLM_F_MATCH, header: header, fill: { _ in }
        ) { attribute in
            if attribute.type == Int32(NL80211_ATTR_IFINDEX.rawValue), let index = attribute.number(UInt32.self) {
                found.insert(index)
            }
        }
        return isComplete ? found : nil
    }

    private static func family(of name: String, on socket: borrowing NetlinkSocket) -> UInt16? {
        var id: UInt16?
        let header = genlmsghdr(cmd: UInt8(CTRL_CMD_GETFAMILY), version: 1, reserved: 0)
        _ = exchange(
            on: socket, type: GENL_ID_CTRL, flags: 0, header: header, fill: { $0.put(Int32(CTRL_ATTR_FAMILY_NAME), name) }
        ) { attribute in
            if attribute.type == Int32(CTRL_ATTR_FAMILY_ID) { id = attribute.number() }
        }
        return id
    }

    // Sends one request and reads the complete answer. Generic netlink answers within sendto, and continues a dump with each
    // read.
    private static func exchange(
        on socket: borrowing NetlinkSocket, type: Int32, flags: Int32, header: genlmsghdr,
        fill: (borrowing NetlinkRequest) -> Void, attribute: (AttributeSequence.Attribute) -> Void
    ) -> Bool {
        guard let request = NetlinkRequest(type: type, flags: flags, sequence: 1, header: header) else { return false }
        fill(request)
        guard socket.send(request) == 0 else { return false }
        var hasAnswer = false
        while case .datagram(let bytes) = socket.receive() {
            var offset = 0
            while bytes.count - offset >= MemoryLayout<nlmsghdr>.size, let base = bytes.baseAddress {
                let message = UnsafeMutableRawPointer(mutating: base + offset).assumingMemoryBound(to: nlmsghdr.self)
                let length = Int(message.pointee.nlmsg_len)
                guard length >= MemoryLayout<nlmsghdr>.size, length <= bytes.count - offset else { return false }
                if message.pointee.nlmsg_type == UInt16(NLMSG_DONE) { return true }
                if message.pointee.nlmsg_type == UInt16(NLMSG_ERROR) { return false }
                if nlmsg_valid_hdr(message, Int32(MemoryLayout<genlmsghdr>.size)) != 0 {
                    hasAnswer = true
                    AttributeSequence(message, headerSize: MemoryLayout<genlmsghdr>.size).forEach(attribute)
                }
                offset += (length + 3) & ~3
            }
        }
        return hasAnswer
    }
}
