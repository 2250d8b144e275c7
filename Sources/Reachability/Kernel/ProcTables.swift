internal import ByteComparison
internal import CLinux
internal import Glibc

/// The kernel's tables as netdevice(7) and /proc show them, for the namespace of the calling thread.
///
/// sysfs is not used, because it shows the devices of the namespace that mounted it. Therefore the lower devices of stacked
/// devices (bridges, VLANs) are not known.
struct ProcTables {
    /// A socket for ioctl(2), opened in the calling thread's namespace.
    let socket: Int32

    /// The scopes `RT_SCOPE_*` of linux/rtnetlink.h.
    private enum Scope {
        static let universe: UInt8 = 0
        static let site: UInt8 = 200
        static let link: UInt8 = 253
        static let host: UInt8 = 254
    }

    // MARK: Links

    func links() -> [Link] {
        // The file has two heading lines; each other line starts with the name and a colon.
        lines("dev").dropFirst(2).compactMap { line in
            line.split(separator: ":").first.map { String($0.drop { $0 == " " }) }.flatMap(link)
        }
    }

    func link(_ name: String) -> Link? {
        var found = netwatch_interface()
        guard netwatch_read_interface(socket, name, &found) == 0 else { return nil }
        var flags = Link.Flags(rawValue: found.flags)
        let hasCarrier = found.carrier > 0 || found.carrier < 0 && flags.contains(.running)
        if hasCarrier && flags.contains(.up) { flags.insert(.lowerUp) }
        // IFF_RUNNING means "operational state up or unknown" (dev_get_flags). With carrier but without IFF_RUNNING, the link
        // waits for an event.
        let state: Link.OperationalState = flags.contains(.running) ? .up : flags.contains(.lowerUp) ? .dormant : .down
        let driver = Self.text(&found.driver)
        return Link(
            index: found.index, name: name, flags: flags, hardwareType: found.type, operationalState: state, mtu: found.mtu,
            kind: Self.kind(driver),
            hardwareAddress: withUnsafeBytes(of: found.hardware_address) { Array($0.prefix(Self.addressLength(found.type))) },
            isTap: driver == "tun" && Self.text(&found.bus) == "tap"
        )
    }

    // A software device reports its kind as its driver (ethtool_get_drvinfo, Linux 5.18). Some drivers report an older name.
    private static func kind(_ driver: String) -> String? {
        switch driver {
        case "bonding": "bond"
        case "802.1Q VLAN Support": "vlan"
        default: LinkKind.isKnown(driver) ? driver : nil
        }
    }

    private static func addressLength(_ hardwareType: UInt16) -> Int {
        switch Int32(hardwareType) {
        case ARPHRD_ETHER, ARPHRD_LOOPBACK: 6
        case ARPHRD_TUNNEL, ARPHRD_SIT, ARPHRD_IPGRE: 4
        default: 0
        }
    }

    private static func text<Characters>(_ characters: inout Characters) -> String {
        withUnsafeBytes(of: &characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    // MARK: Addresses

    /// The maximum number of addresses that are read.
    private static let addressLimit: Int32 = 4096

    func addresses(_ indexes: [ExactString: UInt32]) -> [Address] { addressesV4(indexes) + addressesV6() }

    private func addressesV4(_ indexes: [ExactString: UInt32]) -> [Address] {
        var found = [netwatch_ipv4_address](repeating: netwatch_ipv4_address(), count: Int(Self.addressLimit))
        let count = netwatch_read_ipv4_addresses(socket, &found, Self.addressLimit)
        return found.prefix(Int(max(count, 0))).compactMap { entry in
            var entry = entry
            // The label of an alias is the device, a colon and any text.
            let name = Self.text(&entry.label).prefix { $0 != ":" }
            guard let index = indexes[ExactString(String(name))] else { return nil }
            let address = IPAddress(v4: UInt32(bigEndian: entry.address))
            let peer = IPAddress(v4: UInt32(bigEndian: entry.peer))
            return Address(
                interface: index,
                prefix: IPPrefix(address, length: UInt8(UInt32(bigEndian: entry.mask).nonzeroBitCount)),
                peer: peer == address ? nil : peer,
                scope: address.isLoopback ? Scope.host : address.isLinkLocal ? Scope.link : Scope.universe
            )
        }
    }

    // A line has the address, index, prefix length, scope and flags in hexadecimal, and the name.
    private func addressesV6() -> [Address] {
        lines("if_inet6").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count >= 5, let address = Self.addressV6(words[0]), let index = UInt32(words[1], radix: 16),
                let length = UInt8(words[2], radix: 16), let scope = UInt8(words[3], radix: 16),
                let flags = UInt32(words[4], radix: 16)
            else { return nil }
            return Address(
                interface: index, prefix: IPPrefix(address, length: length), scope: Self.scope(scope),
                flags: Address.Flags(rawValue: flags)
            )
        }
    }

    // The scopes IPV6_ADDR_* of net/ipv6.h.
    private static func scope(_ ipv6: UInt8) -> UInt8 {
        switch ipv6 & 0xf0 {
        case 0x10: Scope.host
        case 0x20: Scope.link
        case 0x40: Scope.site
        default: Scope.universe
        }
    }

    // MARK: Routes

    /// Reads the routes of the main table. /proc does not show the other tables (IPv4), or does not name the table (IPv6).
    func routes(_ family: IPAddress.Family, _ indexes: [ExactString: UInt32]) -> [Route] {
        family == .v4
            ? lines("route").dropFirst().compactMap { routeV4($0, indexes) }
            : lines("ipv6_route").compactMap { routeV6($0, indexes) }
    }

    // The flags `RTF_*` of linux/route.h and linux/ipv6_route.h.
    private enum RouteFlags {
        static let gateway: UInt32 = 0x2
        static let reject: UInt32 = 0x200
        static let excluded: UInt32 = 0x8000_0000 | 0x0100_0000 | 0x0010_0000  // local, cache, anycast
    }

    // A line has the interface, destination, gateway, flags, two counters, metric and mask. Addresses are in memory byte order.
    private func routeV4(_ line: Substring, _ indexes: [ExactString: UInt32]) -> Route? {
        let words = line.split { $0 == "\t" || $0 == " " }
        guard words.count >= 8, let destination = UInt32(words[1], radix: 16), let gateway = UInt32(words[2], radix: 16),
            let flags = UInt32(words[3], radix: 16), let metric = UInt32(words[6]), let mask = UInt32(words[7], radix: 16)
        else { return nil }
        let prefix = IPPrefix(IPAddress(v4: UInt32(bigEndian: destination)), length: UInt8(mask.nonzeroBitCount))
        let key = Route.Key(metric: metric, destination: prefix)
        // /proc does not distinguish unreachable, prohibit and blackhole routes.
        guard flags & RouteFlags.reject == 0 else { return Route(key, kind: .unreachable, origin: 0) }
        guard let index = indexes[ExactString(String(words[0]))] else { return nil }
        let router = flags & RouteFlags.gateway == 0 ? nil : IPAddress(v4: UInt32(bigEndian: gateway))
        return Route(
            key, nextHops: [Route.NextHop(interface: index, gateway: router)], origin: 0,
            scope: router == nil ? Scope.link : Scope.universe
        )
    }

    // A line has the destination, its length, the source, its length, the next hop, metric, two counters and flags, all
    // hexadecimal, and the interface.
    private func routeV6(_ line: Substring, _ indexes: [ExactString: UInt32]) -> Route? {
        let words = line.split(separator: " ")
        guard words.count >= 10, let destination = Self.addressV6(words[0]), let length = UInt8(words[1], radix: 16),
            let router = Self.addressV6(words[4]), let metric = UInt32(words[5], radix: 16),
            let flags = UInt32(words[8], radix: 16)
        else { return nil }
        // The table ends with a reject route for all destinations with the greatest metric. That entry is not a configured route.
        guard flags & RouteFlags.excluded == 0, metric != .max, !destination.isMulticast else { return nil }
        let key = Route.Key(metric: metric, destination: IPPrefix(destination, length: length))
        guard flags & RouteFlags.reject == 0 else { return Route(key, kind: .unreachable, origin: 0) }
        guard let index = indexes[ExactString(String(words[9]))] else { return nil }
        let hop = Route.NextHop(interface: index, gateway: flags & RouteFlags.gateway == 0 ? nil : router)
        return Route(key, nextHops: [hop], origin: 0)
    }

    // MARK: Files

    private static func addressV6(_ digits: Substring) -> IPAddress? {
        guard digits.utf8.count == 32, let high = UInt64(digits.prefix(16), radix: 16),
            let low = UInt64(digits.suffix(16), radix: 16)
        else { return nil }
        return IPAddress(v6: high, low)
    }

    /// Reads the thread's own file: /proc/net belongs to the process's first thread, which may be in another namespace.
    private func lines(_ name: String) -> [Substring] {
        let descriptor = open("/proc/thread-self/net/\(name)", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    }
}
