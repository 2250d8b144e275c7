import Expectations
import Pacing
import Testing

@testable import Reachability

/// Large and unusual files: lists of advertisers, names with many addresses, lines with many names.
@Suite struct HostsFileLimitTests {
    private let both: Set<IPAddress.Family> = [.v4, .v6]

    @Test func `a name has at most 1,024 addresses`() {
        let text = (0..<5_000).map { "\(IPAddress(v4: 0x0a00_0000 + UInt32($0))) server.example\n" }.joined()
        let addresses = HostsFile(parsing: text.utf8).addresses(of: "server.example", families: both)
        expectEqual(addresses.count, HostsFile.addressLimit)
        expectEqual(addresses.first?.description, "10.0.0.0")
        expectEqual(addresses.last?.description, "10.0.3.255")
    }

    @Test func `an address that other lines of the name repeat is returned once`() {
        let text = (0..<5_000).map { "192.0.2.\($0 % 2) server.example\n" }.joined()
        let addresses = HostsFile(parsing: text.utf8).addresses(of: "server.example", families: both)
        expectEqual(addresses.map(\.description), ["192.0.2.0", "192.0.2.1"])
    }

    @Test func `each of many names in one line has the line's address`() {
        let file = HostsFile(parsing: ("192.0.2.1" + (0..<3_000).map { " Name\($0)" }.joined()).utf8)
        let found = (0..<3_000).count { file.addresses(of: "name\($0)", families: both).first?.description == "192.0.2.1" }
        expectEqual(found, 3_000)
        expectEmpty(file.addresses(of: "name3000", families: both))
    }

    @Test func `names that differ only after a common beginning are different names`() {
        let file = HostsFile(parsing: "192.0.2.1 a\n192.0.2.2 ab\n192.0.2.3 abc b\n".utf8)
        let addresses = ["a", "ab", "abc", "b", "bc", ""].map { file.addresses(of: $0, families: both).map(\.description) }
        expectEqual(addresses, [["192.0.2.1"], ["192.0.2.2"], ["192.0.2.3"], ["192.0.2.3"], [], []])
    }

    @Test func `files are equal if their names and addresses are equal, comments aside`() {
        expectEqual(HostsFile(parsing: "192.0.2.1 A # x\n".utf8), HostsFile(parsing: "\n192.0.2.1\ta".utf8))
        #expect(HostsFile(parsing: "192.0.2.1 a\n".utf8) != HostsFile(parsing: "192.0.2.2 a\n".utf8))
        #expect(HostsFile(parsing: "192.0.2.1 ab c\n".utf8) != HostsFile(parsing: "192.0.2.1 a bc\n".utf8))
    }

    @Test func `random files have the addresses that a dictionary of their lines has`() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            var (text, model): (String, [String: [IPAddress]]) = ("", [:])
            for _ in 0..<Int.random(in: 0..<200, using: &random) {
                let address =
                    Bool.random(using: &random)
                    ? IPAddress(v4: 0x0a00_0000 + UInt32.random(in: 0..<4, using: &random))
                    : IPAddress(v6: 0x2001_0db8 << 32, UInt64.random(in: 0..<4, using: &random))
                text += "\(address)"
                for _ in 0..<Int.random(in: 0..<4, using: &random) {
                    let name = "N\(Int.random(in: 0..<60, using: &random))\(Bool.random(using: &random) ? "ä" : "")"
                    text += [" ", "\t", "  "][Int.random(in: 0..<3, using: &random)] + name
                    if model[name.lowercased()]?.contains(address) != true {
                        model[name.lowercased(), default: []].append(address)
                    }
                }
                text += ["\n", " # n1 n2\n", "\r\n", "\0 n3\n"][Int.random(in: 0..<4, using: &random)]
            }
            let file = HostsFile(parsing: text.utf8)
            for name in (0..<60).flatMap({ ["n\($0)", "n\($0)ä"] }) {
                expectEqual(file.addresses(of: name, families: both), model[name] ?? [], "seed \(seed)")
            }
        }
    }
}
