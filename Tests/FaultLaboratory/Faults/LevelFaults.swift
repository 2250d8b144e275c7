import NetworkLab

/// The names, the ports and the servers that the faults of TLS and HTTP share.
extension Fault {
    static let family = FaultNetwork.Family.ipv4
    /// The port of a scripted server.
    static let levelPort: UInt16 = 8443
    /// The names of the site's server in its certificate.
    static let serverNames = ["DNS:\(FaultNetwork.name)", "IP:\(family.server)"]
    /// A line of Python after which the connection `s` ends with a reset.
    static let reset = "s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))"

    /// The URL of the site's server, or of another host.
    static func levelURL(_ scheme: String, _ port: UInt16 = levelPort, host: String? = nil) -> String {
        "\(scheme)://\(host.map { "\($0):\(port)" } ?? family.target(family.server, port))"
    }

    /// A server that runs a line of Python for each connection `s`, and then closes the connection.
    static func spoken(_ name: String, _ scheme: String, _ line: String, _ expected: ExpectedVerdict) -> Fault {
        .fromStart("server \(name)", levelURL(scheme), expect: expected) { try ScriptedServer(line).start($0) }
    }
}
