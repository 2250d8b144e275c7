internal import CLibnl
internal import CLinux

/// rtnetlink messages, encoded from values as the kernel would send them. Facts from other sources then pass through the same
/// decoder, machine and recordings as the kernel's messages.
struct SynthesizedMessages {
    private(set) var bytes: [UInt8] = []
    private let sequence: UInt32
    private let flags: Int32

    /// Creates messages that answer the request `sequence`; `flags` is `NLM_F_MULTI` for a dump, 0 for a single answer.
    init(sequence: UInt32, flags: Int32 = NLM_F_MULTI) {
        self.sequence = sequence
        self.flags = flags
    }

    mutating func add(_ link: Link) {
        var header = ifinfomsg()
        header.ifi_index = Int32(bitPattern: link.index)
        header.ifi_flags = link.flags.rawValue
        header.ifi_type = link.hardwareType
        add(RTM_NEWLINK, header) { message in
            message.put(IFLA_IFNAME, Array(link.name.utf8) + [0])
            message.put(IFLA_MTU, link.mtu)
            message.put(IFLA_OPERSTATE, [link.operationalState.rawValue])
            if !link.hardwareAddress.isEmpty { message.put(IFLA_ADDRESS, link.hardwareAddress) }
            guard let kind = link.kind else { return }
            message.nest(IFLA_LINKINFO) { message in
                message.put(IFLA_INFO_KIND, Array(kind.utf8) + [0])
                // IFLA_TUN_TYPE: 1 for tun, 2 for tap.
                if kind == "tun" { message.nest(IFLA_INFO_DATA) { $0.put(3, [link.isTap ? 2 : 1]) } }
            }
        }
    }

    mutating func add(_ address: Address) {
        var header = ifaddrmsg()
        header.ifa_family = Self.number(of: address.address.family)
        header.ifa_prefixlen = address.key.prefix.length
        header.ifa_scope = address.scope
        header.ifa_index = address.key.interface
        header.ifa_flags = UInt8(truncatingIfNeeded: address.flags.rawValue)
        add(RTM_NEWADDR, header) { message in
            message.put(IFA_LOCAL, address.address.bytes)
            message.put(IFA_ADDRESS, (address.peer ?? address.address).bytes)
            message.put(IFA_FLAGS, address.flags.rawValue)
            let isDeprecated = address.flags.contains(.deprecated)
            let times = ifa_cacheinfo(ifa_prefered: isDeprecated ? 0 : .max, ifa_valid: .max, cstamp: 0, tstamp: 0)
            message.put(IFA_CACHEINFO, withUnsafeBytes(of: times) { Array($0) })
        }
    }

    mutating func add(_ route: Route) {
        var header = rtmsg()
        header.rtm_family = Self.number(of: route.key.family)
        header.rtm_dst_len = route.key.destination.length
        header.rtm_table = UInt8(truncatingIfNeeded: route.key.table)
        header.rtm_protocol = route.origin
        header.rtm_scope = route.scope
        header.rtm_type = route.kind.rawValue
        add(RTM_NEWROUTE, header) { message in
            if route.key.destination.length > 0 { message.put(Int(RTA_DST.rawValue), route.key.destination.address.bytes) }
            message.put(Int(RTA_TABLE.rawValue), route.key.table)
            message.put(Int(RTA_PRIORITY.rawValue), route.key.metric)
            if let source = route.preferredSource { message.put(Int(RTA_PREFSRC.rawValue), source.bytes) }
            guard let hop = route.nextHops.first else { return }
            message.put(Int(RTA_OIF.rawValue), hop.interface)
            if let gateway = hop.gateway { message.put(Int(RTA_GATEWAY.rawValue), gateway.bytes) }
        }
    }

    /// Adds the end of a dump.
    mutating func addDone() { add(Int(NLMSG_DONE), Int32(0)) { _ in } }

    /// Adds a refusal.
    mutating func addError(errno: Int32) {
        var error = nlmsgerr()
        error.error = -errno
        add(Int(NLMSG_ERROR), error) { _ in }
    }

    private static func number(of family: IPAddress.Family) -> UInt8 { UInt8(family == .v4 ? AF_INET : AF_INET6) }

    // MARK: Bytes

    private mutating func add<Header: BitwiseCopyable>(_ type: Int, _ header: Header, _ fill: (inout Self) -> Void) {
        let start = bytes.count
        append(nlmsghdr(nlmsg_len: 0, nlmsg_type: UInt16(type), nlmsg_flags: UInt16(flags), nlmsg_seq: sequence, nlmsg_pid: 0))
        append(header)
        pad()
        fill(&self)
        store(UInt32(bytes.count - start), at: start)
    }

    private mutating func put(_ type: Int, _ value: [UInt8]) {
        append(UInt16(value.count + 4))
        append(UInt16(type))
        bytes += value
        pad()
    }

    private mutating func put(_ type: Int, _ number: UInt32) { put(type, withUnsafeBytes(of: number) { Array($0) }) }

    private mutating func nest(_ type: Int, _ fill: (inout Self) -> Void) {
        let start = bytes.count
        append(UInt16(0))
        append(UInt16(type))
        fill(&self)
        store(UInt16(bytes.count - start), at: start)
    }

    private mutating func append<Value: BitwiseCopyable>(_ value: Value) { withUnsafeBytes(of: value) { bytes += $0 } }

    private mutating func store<Value: BitwiseCopyable>(_ value: Value, at offset: Int) {
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: value, toByteOffset: offset, as: Value.self) }
    }

    // Each part begins at a multiple of four bytes.
    private mutating func pad() { bytes.append(contentsOf: repeatElement(0, count: (4 - bytes.count % 4) % 4)) }
}
