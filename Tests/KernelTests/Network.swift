import Glibc
import NetworkLab

/// A host and its routers: what most tests begin with.
struct Network {
    let lab = Lab()
    let host: LabHost
    /// The other end of every cable.
    let router: LabHost

    init(named: Bool = false) throws {
        host = try named ? lab.namedHost() : lab.host()
        router = try lab.host()
    }

    /// A cable from the host's `name` to the router's `r` + `name`; both ends are down.
    func cable(_ name: String) throws {
        try lab.connect(host, name, router, "r\(name)")
    }

    /// Waits until the kernel has announced the carrier, which it does up to a second after the second end comes up.
    func awaitCarrier(_ name: String) throws {
        let end = ContinuousClock.now + patience
        while try !host.ip("link show \(name)").contains("state UP") {
            guard ContinuousClock.now < end else { throw LabError("\(name) has no carrier") }
            poll(nil, 0, 5)
        }
    }

    /// A cable that is up at both ends, with addresses of the host on it and, without a number, link-local IPv6 switched off: so that
    /// nothing happens by itself.
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
