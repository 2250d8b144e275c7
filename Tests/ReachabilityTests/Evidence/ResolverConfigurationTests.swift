import Testing

@testable import Reachability

@Suite struct ResolverConfigurationTests {
    private func servers(_ text: String) -> [String] {
        ResolverConfiguration(parsing: text.utf8).nameservers.map(\.description)
    }

    @Test func `servers in order, domains, comments`() {
        let configuration = ResolverConfiguration(
            parsing: """
                # made by hand
                ; nameserver 192.0.2.9
                nameserver 192.0.2.1
                nameserver\t 2001:DB8::0001\t# the other one
                search example.com  lab.example.com\t
                options ndots:2 edns0
                """.utf8)
        #expect(configuration.nameservers.map(\.description) == ["192.0.2.1", "2001:db8::1"])
        #expect(configuration.search == ["example.com", "lab.example.com"])
        #expect(configuration.exists)
        #expect(configuration.hasNameserver)
    }

    @Test func `an empty file exists, and has no server`() {
        #expect(ResolverConfiguration(parsing: "".utf8) == ResolverConfiguration(exists: true))
        #expect(!ResolverConfiguration(parsing: "# nothing\n".utf8).hasNameserver)
    }

    @Test func `no more than three servers count, and useless lines are not among them`() {
        let text = "nameserver x\n" + (1...5).map { "nameserver 192.0.2.\($0)\n" }.joined()
        #expect(servers(text) == ["192.0.2.1", "192.0.2.2", "192.0.2.3"])
    }

    @Test func `a zone belongs to an IPv6 address`() {
        #expect(servers("nameserver fe80::1%eth0") == ["fe80::1%eth0"])
        #expect(ResolverConfiguration(parsing: "nameserver fe80::1%eth0".utf8).nameservers.first?.zone == "eth0")
        #expect(servers("nameserver fe80::1%\nnameserver 192.0.2.1%eth0\nnameserver %eth0").isEmpty)
    }

    @Test(arguments: [
        " nameserver 192.0.2.1", "\tnameserver 192.0.2.1", "nameserver192.0.2.1", "nameserver", "nameserver ",
        "NAMESERVER 192.0.2.1",
        "nameservers 192.0.2.1", "#nameserver 192.0.2.1", "nameserver # 192.0.2.1", "nameserver 192.0.2.1,192.0.2.2",
        "nameserver 192.0.2.256", "nameserver [2001:db8::1]", "nameserver resolver.example.com", "\0nameserver 192.0.2.1",
        "nameserver 192.0.2.\0", "nameserver 192.0.2.1\r\n", "nameserver \u{661}92.0.2.1",
    ])
    func `lines that glibc cannot use name no server`(line: String) {
        #expect(servers(line).isEmpty)
    }

    @Test func `a CR before the line's end is harmless behind a blank`() {
        #expect(servers("nameserver 192.0.2.1 \r\n") == ["192.0.2.1"])
    }

    @Test func `the last of search and domain decides, empty ones do not count`() {
        #expect(ResolverConfiguration(parsing: "search a b\ndomain c d\n".utf8).search == ["c"])
        #expect(ResolverConfiguration(parsing: "domain c\nsearch a b\nsearch \ndomain\n".utf8).search == ["a", "b"])
    }

    @Test func `bytes that are no text, and long lines`() {
        let bytes = [0xff, 0xfe, 0x0a] + Array("nameserver 192.0.2.1\n".utf8) + [UInt8](repeating: 0x61, count: 100_000)
        #expect(ResolverConfiguration(parsing: bytes).nameservers.map(\.description) == ["192.0.2.1"])
    }
}
