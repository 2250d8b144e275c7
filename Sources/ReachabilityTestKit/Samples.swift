public import Reachability

extension NetworkPath {
    /// Returns a satisfied path over an interface, in both families and with name servers.
    public static func satisfied(over interface: NetworkInterface) -> NetworkPath {
        NetworkPath(
            status: .satisfied, interface: interface, interfaceV4: interface, interfaceV6: interface, supportsDNS: true,
            isExpensive: interface.isExpensive, interfaces: [interface])
    }

    /// Returns an unsatisfied path with its cause.
    public static func unsatisfied(_ cause: Cause) -> NetworkPath { NetworkPath(status: .unsatisfied, cause: cause) }
}

extension ServerStatus {
    /// Returns the status of a server that answers, by default at 192.0.2.1 over a wired interface after 10 ms.
    public static func up(
        at address: IPAddress = IPAddress(v4: 0xc000_0201), over interface: NetworkInterface = .wired(),
        roundTrip: Duration = .milliseconds(10)
    ) -> ServerStatus { .up(via: Route(address: address, interface: interface, roundTrip: roundTrip)) }

    /// Returns the status of a server that answers, but with a fault; its route is that of ``up(at:over:roundTrip:)``.
    public static func degraded(
        _ cause: Cause, at address: IPAddress = IPAddress(v4: 0xc000_0201), over interface: NetworkInterface = .wired(),
        roundTrip: Duration = .milliseconds(10)
    ) -> ServerStatus { .degraded(via: Route(address: address, interface: interface, roundTrip: roundTrip), cause) }
}

extension NetworkInterface {
    /// Returns a routable wired interface.
    public static func wired(_ name: String = "eth0", index: UInt32 = 2) -> NetworkInterface { routable(name, index, .wired) }

    /// Returns a routable Wi-Fi interface.
    public static func wifi(_ name: String = "wlan0", index: UInt32 = 3) -> NetworkInterface { routable(name, index, .wifi) }

    /// Returns a routable and expensive cellular interface.
    public static func cellular(_ name: String = "wwan0", index: UInt32 = 4) -> NetworkInterface {
        routable(name, index, .cellular)
    }

    private static func routable(_ name: String, _ index: UInt32, _ type: InterfaceType) -> NetworkInterface {
        NetworkInterface(
            name: name, index: index, type: type, isVirtual: false, isExpensive: type == .cellular, level: .routable,
            addresses: [])
    }
}
