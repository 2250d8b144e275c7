internal import CLibnl
internal import CLinux
internal import Glibc

/// A request to the kernel under construction (libnl's `nl_msg`).
struct NetlinkRequest: ~Copyable {
    let handle: OpaquePointer

    /// Creates a request with its fixed header, which must be a plain C structure of rtnetlink.
    init?<Header: BitwiseCopyable>(type: Int32, flags: Int32, sequence: UInt32, header: Header) {
        guard let handle = nlmsg_alloc_size(512) else { return nil }
        let isFilled = withUnsafeBytes(of: header) { bytes in
            nlmsg_put(handle, 0, sequence, type, 0, Int32(flags) | NLM_F_REQUEST) != nil
                && nlmsg_append(handle, UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count, Int32(NLMSG_ALIGNTO))
                    == 0
        }
        guard isFilled else {
            nlmsg_free(handle)
            return nil
        }
        self.handle = handle
    }

    deinit { nlmsg_free(handle) }

    /// The bytes of the request as sent.
    var bytes: [UInt8] {
        guard let header = nlmsg_hdr(handle) else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: header, count: Int(header.pointee.nlmsg_len)))
    }

    func put(_ attribute: Int32, _ address: IPAddress) { put(attribute, bytes: address.bytes) }

    func put(_ attribute: Int32, _ number: UInt32) { _ = nla_put_u32(handle, attribute, number) }

    func put(_ attribute: Int32, bytes: [UInt8]) { _ = nla_put(handle, attribute, Int32(bytes.count), bytes) }

    func put(_ attribute: Int32, _ text: String) { _ = nla_put_string(handle, attribute, text) }
}

extension NetlinkRequest {
    /// Requests all entries of a table, or only the routes over one interface (Linux 4.20; older kernels send the complete
    /// table). The header is the header of the table's own messages, because strict checking accepts no other.
    static func dump(_ table: KernelTable, over interface: UInt32? = nil, sequence: UInt32) -> NetlinkRequest? {
        func request<Header: BitwiseCopyable>(_ type: Int, _ header: Header) -> NetlinkRequest? {
            NetlinkRequest(type: Int32(type), flags: NLM_F_ROOT | NLM_F_MATCH, sequence: sequence, header: header)
        }
        func route(_ family: Int32) -> rtmsg {
            var header = rtmsg()
            header.rtm_family = UInt8(family)
            return header
        }
        func rule(_ family: Int32) -> fib_rule_hdr {
            var header = fib_rule_hdr()
            header.family = UInt8(family)
            return header
        }
        switch table {
        case .links: return request(RTM_GETLINK, ifinfomsg())
        case .addresses: return request(RTM_GETADDR, ifaddrmsg())
        case .nexthops: return request(RTM_GETNEXTHOP, nhmsg())
        case .routesV4, .routesV6:
            let routes = request(RTM_GETROUTE, route(table == .routesV4 ? AF_INET : AF_INET6))
            if let interface { routes?.put(Int32(RTA_OIF.rawValue), interface) }
            return routes
        case .rulesV4: return request(RTM_GETRULE, rule(AF_INET))
        case .rulesV6: return request(RTM_GETRULE, rule(AF_INET6))
        }
    }

    /// Requests the route of a packet. With an interface, the request sets RTM_F_FIB_MATCH, so that only the tables decide.
    /// Without the flag, IPv4 assumes that any destination is on the link if no route over the interface exists. Kernels before
    /// 4.17 ignore the protocol and the port, and have no rules that match them.
    static func route(_ query: RouteQuery, sequence: UInt32) -> NetlinkRequest? {
        var header = rtmsg()
        header.rtm_family = UInt8(query.destination.family == .v4 ? AF_INET : AF_INET6)
        header.rtm_dst_len = query.destination.family == .v4 ? 32 : 128
        // A source of another family would be read as bytes of this one.
        let source = query.selector?.source.flatMap { $0.family == query.destination.family ? $0 : nil }
        if source != nil { header.rtm_src_len = header.rtm_dst_len }
        let isBound = query.interface != 0
        if isBound || query.showsAll { header.rtm_flags = UInt32(RTM_F_FIB_MATCH) }
        let request = NetlinkRequest(type: Int32(RTM_GETROUTE), flags: 0, sequence: sequence, header: header)
        request?.put(Int32(RTA_DST.rawValue), query.destination)
        if isBound { request?.put(Int32(RTA_OIF.rawValue), query.interface) }
        if let source { request?.put(Int32(RTA_SRC.rawValue), source) }
        if let mark = query.selector?.mark, mark != 0 { request?.put(Int32(RTA_MARK.rawValue), mark) }
        if query.port != 0 {
            request?.put(Int32(RTA_IP_PROTO.rawValue), bytes: [netwatch_IPPROTO_TCP])
            request?.put(Int32(RTA_DPORT.rawValue), bytes: [UInt8(query.port >> 8), UInt8(query.port & 0xff)])
        }
        return request
    }

    /// Requests one link with its statistics.
    static func link(_ interface: UInt32, sequence: UInt32) -> NetlinkRequest? {
        var header = ifinfomsg()
        header.ifi_index = Int32(bitPattern: interface)
        return NetlinkRequest(type: Int32(RTM_GETLINK), flags: 0, sequence: sequence, header: header)
    }

    /// Requests the state of one neighbor (Linux 5.0).
    static func neighbor(_ key: Neighbor.Key, sequence: UInt32) -> NetlinkRequest? {
        var header = ndmsg()
        header.ndm_family = UInt8(key.address.family == .v4 ? AF_INET : AF_INET6)
        header.ndm_ifindex = Int32(bitPattern: key.interface)
        let request = NetlinkRequest(type: Int32(RTM_GETNEIGH), flags: 0, sequence: sequence, header: header)
        request?.put(Int32(NDA_DST), key.address)
        return request
    }
}
