/// A client and the host of a server, connected by several cables. Each cable is an uplink of the client, and leads to the
/// server's address. No packet leaves the machine.
public struct Uplinks: Sendable {
    /// The server's address.
    public static let server = "203.0.113.9"

    /// The host that has the uplinks.
    public let client: LabHost
    /// The host that has the server's address.
    public let site: LabHost
    private let names: [String]
    private let lab = Lab()

    /// Makes uplinks with these names, which are the same at both ends. They are up and have addresses. Before ``take(_:)`` none
    /// of them leads to the server.
    public init(_ names: String...) throws {
        self.names = names
        client = try lab.host(loopback: true)
        site = try lab.host(loopback: true)
        try site.ip("addr add \(Uplinks.server)/32 dev lo")
        for (index, name) in names.enumerated() {
            try lab.connect(client, name, site, name)
            for (host, address) in [(site, gateway(index)), (client, clientAddress(index))] {
                try host.ip("link set \(name) addrgenmode none")
                try host.ip("addr add \(address)/24 dev \(name)")
                try host.ip("link set \(name) up")
            }
        }
    }

    /// The client's address on an uplink, by the uplink's place in the list of names.
    public func clientAddress(_ index: Int = 0) -> String { "10.9.\(index + 1).2" }

    /// The address of the other end, which is the client's next hop.
    public func gateway(_ index: Int = 0) -> String { "10.9.\(index + 1).1" }

    /// Routes packets over this uplink from now on. The other uplinks keep default routes with a higher metric.
    public func take(_ name: String) throws {
        for (index, other) in names.enumerated() {
            try client.ip("route replace default via \(gateway(index)) dev \(other) metric \(other == name ? 10 : 20)")
        }
    }
}
