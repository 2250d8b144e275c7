import Hosts

/// A client and the host of a server, with two cables between them. The client uses one of the cables. No packet leaves the
/// machine.
final class Site {
    static let server = "203.0.113.9"

    let client: LabHost
    let host: LabHost

    init() throws {
        (client, host) = (try LabHost(), try LabHost())
        for each in [client, host] { try each.ip("link set lo up") }
        try host.ip("addr add \(Site.server)/32 dev lo")
        for number in 1...2 { try client.connect(to: host, "up\(number)", number: number) }
        try client.ip("route add default via 10.9.1.1 dev up1")
    }

    func pullCable() throws { try host.ip("link set up1 down") }
    func putCableBack() throws { try host.ip("link set up1 up") }
    func loseUplink() throws { try client.ip("link set up1 down") }
    func takeOtherUplink() throws { try client.ip("route add default via 10.9.2.1 dev up2") }
}
