import Expectations
import Testing

@testable import Reachability

@Suite struct ResolverConfigurationTests {
    @Test(arguments: [
        ("", 1, false, false), ("options ndots:3 use-vc no-aaaa\n", 3, true, true), ("options ndots:99\n", 15, false, false),
        ("options timeout:1\noptions ndots:0\n", 0, false, false), ("options ndots:x ndots:-1 ndots\n", 1, false, false),
    ])
    func `the options ndots, use-vc and no-aaaa are read`(text: String, ndots: Int, usesTCP: Bool, isIPv4Only: Bool) {
        let expected = ResolverConfiguration(exists: true, ndots: ndots, usesTCP: usesTCP, isIPv4Only: isIPv4Only)
        expectEqual(ResolverConfiguration(parsing: text.utf8), expected)
    }

    private func servers(_ text: String) -> [String] {
        ResolverConfiguration(parsing: text.utf8).nameservers.map(\.description)
    }

    @Test func `resolv.conf lists name servers and search domains in order and skips comments`() {
        let configuration = ResolverConfiguration(
            parsing: """
                # made by hand
                ; nameserver 192.0.2.9
                nameserver 192.0.2.1
                nameserver\t 2001:DB8::0001\t# the other one
                search example.com  lab.example.com\t
                options ndots:2 edns0
                """.utf8)
        expectEqual(configuration.nameservers.map(\.description), ["192.0.2.1", "2001:db8::1"])
        expectEqual(configuration.search, ["example.com", "lab.example.com"])
        #expect(configuration.exists)
        #expect(configuration.hasNameserver)
    }

    @Test(arguments: [
        ("", ["127.0.0.1"]), ("# nothing\nsearch example\n", ["127.0.0.1"]), ("nameserver x\n", ["127.0.0.1"]),
        ("nameserver 0.0.0.0\n", ["127.0.0.1"]), ("nameserver ::\n", ["::1"]),
        ("nameserver 127.0.0.1\nnameserver 0.0.0.0\n", ["127.0.0.1"]),
        ("nameserver 192.0.2.1\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n", ["192.0.2.1", "192.0.2.2"]),
    ])
    func `an empty resolv.conf, one without nameserver, and 0.0.0.0 ask 127.0.0.1`(text: String, asked: [String]) {
        expectEqual(ResolverConfiguration(parsing: text.utf8).askedNameservers.map(\.description), asked)
        expectEqual(ResolverConfiguration().askedNameservers.map(\.description), ["127.0.0.1"])
    }

    @Test func `an empty resolv.conf exists and has no name server`() {
        expectEqual(ResolverConfiguration(parsing: "".utf8), ResolverConfiguration(exists: true))
        #expect(!ResolverConfiguration(parsing: "# nothing\n".utf8).hasNameserver)
    }

    @Test func `only the first three name servers count, and lines without a valid address are not counted`() {
        let text = "nameserver x\n" + (1...5).map { "nameserver 192.0.2.\($0)\n" }.joined()
        expectEqual(servers(text), ["192.0.2.1", "192.0.2.2", "192.0.2.3"])
    }

    @Test func `a zone is accepted after an IPv6 name server address only`() {
        expectEqual(servers("nameserver fe80::1%eth0"), ["fe80::1%eth0"])
        expectEqual(ResolverConfiguration(parsing: "nameserver fe80::1%eth0".utf8).nameservers.first?.zone, "eth0")
        expectEmpty(servers("nameserver fe80::1%\nnameserver 192.0.2.1%eth0\nnameserver %eth0"))
    }

    @Test(arguments: [
        " nameserver 192.0.2.1", "\tnameserver 192.0.2.1", "nameserver192.0.2.1", "nameserver", "nameserver ",
        "NAMESERVER 192.0.2.1",
        "nameservers 192.0.2.1", "#nameserver 192.0.2.1", "nameserver # 192.0.2.1", "nameserver 192.0.2.1,192.0.2.2",
        "nameserver 192.0.2.256", "nameserver [2001:db8::1]", "nameserver resolver.example.com", "\0nameserver 192.0.2.1",
        "nameserver 192.0.2.\0", "nameserver 192.0.2.1\r\n", "nameserver \u{661}92.0.2.1",
    ])
    func `a line that glibc cannot use names no server`(line: String) {
        expectEmpty(servers(line))
    }

    @Test func `a CR at the end of a line is harmless after a blank`() {
        expectEqual(servers("nameserver 192.0.2.1 \r\n"), ["192.0.2.1"])
    }

    @Test func `the last search or domain line applies, and empty ones are ignored`() {
        expectEqual(ResolverConfiguration(parsing: "search a b\ndomain c d\n".utf8).search, ["c"])
        expectEqual(ResolverConfiguration(parsing: "domain c\nsearch a b\nsearch \ndomain\n".utf8).search, ["a", "b"])
    }

    @Test func `a name server line after bytes that are not UTF-8 and before a line of 100,000 characters is read`() {
        let bytes = [0xff, 0xfe, 0x0a] + Array("nameserver 192.0.2.1\n".utf8) + [UInt8](repeating: 0x61, count: 100_000)
        expectEqual(ResolverConfiguration(parsing: bytes).nameservers.map(\.description), ["192.0.2.1"])
    }
}
