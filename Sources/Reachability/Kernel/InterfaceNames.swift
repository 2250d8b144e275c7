internal import ByteComparison
internal import CLibnl
internal import CLinux
internal import Glibc

/// The names of interfaces in the calling thread's network namespace.
package enum InterfaceNames {
    private static let alternativeName: Int32 = 53

    /// Returns the primary name of the interface with the given primary or alternative name; the given name if no interface has
    /// it.
    ///
    /// SO_BINDTODEVICE accepts at most 15 bytes of a name (socket(7)), and an alternative name may have 127.
    package static func firstName(of name: String) -> String {
        guard !isFirstName(name), (1...127).contains(name.utf8.count), let socket = try? NetlinkSocket(),
            let request = NetlinkRequest(type: Int32(RTM_GETLINK), flags: 0, sequence: 1, header: ifinfomsg())
        else { return name }
        request.put(alternativeName, name)
        guard socket.send(request) == 0, case .datagram(let bytes) = socket.receive(),
            let base = bytes.baseAddress, bytes.count >= MemoryLayout<nlmsghdr>.size
        else { return name }
        let message = UnsafeMutableRawPointer(mutating: base).assumingMemoryBound(to: nlmsghdr.self)
        guard Int(message.pointee.nlmsg_len) <= bytes.count, Int(message.pointee.nlmsg_type) == RTM_NEWLINK,
            case .link(let link) = NetlinkDecoder.link(message)
        else { return name }
        return link.name
    }

    /// Returns whether the name is an interface's primary name, not an alternative one.
    private static func isFirstName(_ name: String) -> Bool {
        var buffer = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard if_indextoname(if_nametoindex(name), &buffer) != nil else { return false }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).isExactly(name)
    }
}
