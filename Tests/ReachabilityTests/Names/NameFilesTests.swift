import Expectations
import Testing

@testable import Reachability

@Suite struct HostsFileTests {
    private func addresses(_ text: String, of name: String, _ families: Set<IPAddress.Family> = [.v4, .v6]) -> [String] {
        HostsFile(parsing: text.utf8).addresses(of: name, families: families).map(\.description)
    }

    @Test func `a name has the addresses of all its lines, each once, in their order`() {
        let text = """
            # a comment
            192.0.2.1\tone.example one # another
              2001:db8::1   ONE.example
            192.0.2.1 one.example
            """
        expectEqual(addresses(text, of: "one.example"), ["192.0.2.1", "2001:db8::1"])
        expectEqual(addresses(text, of: "One.Example."), ["192.0.2.1", "2001:db8::1"])
        expectEqual(addresses(text, of: "one"), ["192.0.2.1"])
        expectEqual(addresses(text, of: "one.example", [.v6]), ["2001:db8::1"])
        expectEqual(addresses(text, of: "another"), [])
    }

    @Test func `an IPv4-mapped address is IPv4, and a zone is left out`() {
        expectEqual(addresses("::ffff:192.0.2.1 a\nfe80::1%eth0 b\n", of: "a"), ["192.0.2.1"])
        expectEqual(addresses("fe80::1%eth0 b\n", of: "b"), ["fe80::1"])
    }

    @Test(arguments: ["", "192.0.2.1", "192.0.2.1 ", "x y", "192.0.2 a", "#192.0.2.1 a", "192.0.2.1\0 a", "\u{1}\u{2}"])
    func `a line without an address and a name is skipped`(line: String) {
        expectEqual(addresses(line + "\n192.0.2.9 b\n", of: "a"), [])
        expectEqual(addresses(line + "\n192.0.2.9 b\n", of: "b"), ["192.0.2.9"])
    }

    @Test func `localhost and names below it are loopback without an entry`() {
        expectEqual(addresses("", of: "localhost"), ["::1", "127.0.0.1"])
        expectEqual(addresses("", of: "api.LOCALHOST.", [.v4]), ["127.0.0.1"])
        expectEqual(addresses("127.0.1.1 localhost\n", of: "localhost"), ["127.0.1.1"])
        expectEqual(addresses("", of: "notlocalhost"), [])
    }
}

@Suite struct NameServiceSwitchTests {
    private func steps(
        _ line: String, _ name: String, _ nameservers: String..., hostName: String = "box"
    ) -> [NameServiceSwitch.Step] {
        let servers = nameservers.compactMap { IPAddress($0) }.map { ResolverConfiguration.Nameserver($0) }
        return NameServiceSwitch(parsing: line.utf8).steps(for: name, nameservers: servers, hostName: hostName)
    }

    @Test(
        arguments: [
            ("hosts: files dns", "a.example", [.hosts, .dns]), ("", "a.example", [.hosts, .dns]),
            ("passwd: files\nhosts:\tdns  files # x", "a.example", [.dns, .hosts]), ("hosts: files", "a.example", [.hosts]),
            ("hosts: files mdns4_minimal [NOTFOUND=return] dns", "a.example", [.hosts, .dns]),
            ("hosts: files mdns4_minimal [NOTFOUND=return] dns", "printer.local", [.hosts, .libc]),
            ("hosts: files myhostname dns", "a.example", [.hosts, .dns]),
            ("hosts: files myhostname dns", "BOX", [.hosts, .libc]),
            ("hosts: files myhostname dns", "_gateway", [.hosts, .libc]),
            ("hosts: files wins dns", "a.example", [.hosts, .libc]),
            ("hosts: files dns mymachines", "a.example", [.hosts, .dns, .libc]),
            ("hosts: files [NOTFOUND=return] dns", "a.example", [.libc]),
            ("hosts: dns [ !UNAVAIL = return ] files", "a.example", [.libc]),
            ("hosts: files resolve [!UNAVAIL=return] dns", "a.example", [.hosts, .libc]),
            ("hosts: files dns\nhosts: wins", "a.example", [.hosts, .dns]),
        ] as [(String, String, [NameServiceSwitch.Step])])
    func `the services decide who is asked for a name`(line: String, name: String, expected: [NameServiceSwitch.Step]) {
        expectEqual(steps(line, name, "192.0.2.53"), expected)
    }

    @Test func `systemd's resolve is asked by DNS if resolv.conf names its stub, except for single labels`() {
        let line = "hosts: files myhostname resolve [!UNAVAIL=return] dns"
        expectEqual(steps(line, "a.example", "127.0.0.53"), [.hosts, .dns])
        expectEqual(steps(line, "printer", "127.0.0.53"), [.hosts, .libc])
        expectEqual(steps(line, "a.example", "127.0.0.53", "192.0.2.53"), [.hosts, .libc])
    }
}

@Suite struct SearchListTests {
    private func candidates(_ name: String, _ text: String, hostName: String = "box") -> [String] {
        SearchList.candidates(for: name, ResolverConfiguration(parsing: text.utf8), hostName: hostName)
    }

    @Test func `a name with fewer dots than ndots is tried in the domains first`() {
        expectEqual(candidates("www", "search a.example b.example.\n"), ["www.a.example", "www.b.example", "www"])
        expectEqual(candidates("www.x", "search a.example\n"), ["www.x", "www.x.a.example"])
        expectEqual(candidates("www.x", "search a.example\noptions ndots:2\n"), ["www.x.a.example", "www.x"])
        expectEqual(candidates("www", "search a.example\noptions ndots:0\n"), ["www", "www.a.example"])
    }

    @Test func `a name with a final dot is complete`() {
        expectEqual(candidates("www.", "search a.example\n"), ["www"])
    }

    @Test func `without a list, the domain of the machine's name is searched`() {
        expectEqual(candidates("www", "", hostName: "box.lan.example"), ["www.lan.example", "www"])
        expectEqual(candidates("www", ""), ["www"])
        expectEqual(candidates("www", "search .\n"), ["www"])
    }

    @Test func `a candidate of more than 253 characters is left out`() {
        let long = String(repeating: "a.", count: 126) + "a"
        expectEqual(candidates(long, "search a.example\n"), [long])
    }
}
