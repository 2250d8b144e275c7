/// A client and the host of a server, with cables between them: each is an uplink of the client's, and the server's address is behind all of
/// them. No packet leaves the machine.
public struct Uplinks: Sendable {
    /// Where the server is.
    public static let server = "203.0.113.9"

    /// The host that the uplinks are of.
    public let client: LabHost
    /// The host with the server's address.
    public let site: LabHost
    private let names: [String]
    private let lab = Lab()

    /// Uplinks of these names, up, with addresses, and called the same at both ends. Until ``take(_:)`` none of them leads to the server.
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

    /// Addresses of the client, as its uplinks were named.
    public func clientAddress(_ index: Int = 0) -> String { "10.9.\(index + 1).2" }

    /// The other ends' addresses, which are the client's next hops.
    public func gateway(_ index: Int = 0) -> String { "10.9.\(index + 1).1" }

    /// What goes out from now on goes over this one; the others' default routes stand behind it.
    public func take(_ name: String) throws {
        for (index, other) in names.enumerated() {
            try client.ip("route replace default via \(gateway(index)) dev \(other) metric \(other == name ? 10 : 20)")
        }
    }
}
