@testable import Reachability

extension FuzzDriver {
    /// The files of the resolver: hosts(5), resolv.conf(5) and nsswitch.conf(5).
    static let names = FuzzDriver(name: "names") { input in
        let hosts = HostsFile(parsing: input)
        let families: Set<IPAddress.Family> = [.v4, .v6]
        for word in input.split(whereSeparator: { $0 <= 0x20 }).prefix(32) {
            let name = String(decoding: word, as: UTF8.self)
            let found = hosts.addresses(of: name, families: families)
            try require(found.count <= min(HostsFile.addressLimit, input.count + 2), "\(found.count) addresses of \(name)")
            try require(Set(found).count == found.count, "\(name) has an address twice")
            try require(found == hosts.addresses(of: name.uppercased(), families: families) || !isASCII(word), "case of \(name)")
            // Without an entry for one family, only that family has the addresses of the loopback interface.
            guard !name.lowercased().contains("localhost") else { continue }
            let both = hosts.addresses(of: name, families: [.v4]) + hosts.addresses(of: name, families: [.v6])
            try require(Set(both) == Set(found), "families of \(name)")
        }
        try require(HostsFile(parsing: input + [UInt8(ascii: "\n")]) == hosts, "a line end changes the hosts file")

        let resolver = ResolverConfiguration(parsing: input)
        try require(resolver.nameservers.count <= ResolverConfiguration.nameserverLimit, "\(resolver.nameservers.count) servers")
        try require((0...15).contains(resolver.ndots) && resolver.exists, "options: \(resolver)")
        for server in resolver.nameservers {
            let again = ResolverConfiguration(parsing: "nameserver \(server)\n".utf8).nameservers
            try require(again == [server] || server.zone?.contains("\0") == true, "\(server) is not parsed again")
        }
        for candidate in SearchList.candidates(for: "host", resolver, hostName: "own.example").dropLast() {
            try require(candidate.utf8.count <= SearchList.nameLimit, "the candidate \(candidate) is too long")
        }

        let services = NameServiceSwitch(parsing: input)
        try require(services.services.count <= input.count + 2, "\(services.services.count) services")
        for name in ["a", "a.example", "a.local", "localhost"] {
            let steps = services.steps(for: name, nameservers: resolver.nameservers, hostName: "own")
            try require(Set(steps).count == steps.count, "a step twice: \(steps)")
        }
    }

    private static func isASCII(_ bytes: ArraySlice<UInt8>) -> Bool { bytes.allSatisfy { $0 < 0x80 } }
}
