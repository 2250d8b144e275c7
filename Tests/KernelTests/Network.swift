import Glibc
import NetworkLab

/// A host and a router, with which most tests begin.
struct Network {
    let lab = Lab()
    let host: LabHost
    /// The host at the other end of every cable.
    let router: LabHost

    init(named: Bool = false) throws {
        host = try named ? lab.namedHost() : lab.host()
        router = try lab.host()
    }

    /// Lays a cable from the host's `name` to the router's `r` + `name`. Both ends are down.
    func cable(_ name: String) throws {
        try lab.connect(host, name, router, "r\(name)")
    }

    /// Waits until the kernel has announced the carrier. That takes up to a second after the second end comes up.
    func awaitCarrier(_ name: String) throws {
        let end = ContinuousClock.now + patience
        while try !host.ip("link show \(name)").contains("state UP") {
            guard ContinuousClock.now < end else { throw LabError("\(name) has no carrier") }
            poll(nil, 0, 5)
        }
    }

    /// Lays a cable that is up at both ends, with these addresses of the host. Link-local IPv6 addresses are switched off, so
    /// that the kernel changes nothing on its own.
    func uplink(_ name: String, _ addresses: String...) throws {
        try cable(name)
        for (end, interface) in [(router, "r\(name)"), (host, name)] {
            try end.ip("link set \(interface) addrgenmode none")
            try end.ip("link set \(interface) up")
        }
        try awaitCarrier(name)
        for address in addresses { try host.ip("addr add \(address) dev \(name)\(address.contains(":") ? " nodad" : "")") }
    }
}
