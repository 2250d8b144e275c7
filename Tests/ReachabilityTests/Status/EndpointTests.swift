import Expectations
import Pacing
import Testing

@testable import Reachability

@Suite struct EndpointTests {
    private func refusal(_ text: String) -> String? {
        do {
            _ = try Endpoint(text)
            return nil
        } catch { return error.description }
    }

    @Test(arguments: [
        ("example.com:80", "example.com", UInt16(80)), ("tcp://example.com:65535", "example.com", 65_535), ("a:1", "a", 1),
        ("TCP://Example.COM.:443", "Example.COM.", 443), ("_srv._tcp.example:5", "_srv._tcp.example", 5),
        ("1and1.de:25", "1and1.de", 25),
    ])
    func `an endpoint with a name is parsed`(text: String, name: String, port: UInt16) throws {
        let endpoint = try Endpoint(text)
        #expect(endpoint.host == .name(name) && endpoint.hostText == name)
        expectEqual(endpoint.port, port)
        expectEqual(endpoint.text, text)
    }

    @Test(arguments: [
        ("bücher.de:80", "xn--bcher-kva.de"), ("BÜCHER.example.:80", "xn--bcher-kva.example."),
        ("例え。テスト:80", "xn--r8jz45g.xn--zckzah"),
    ])
    func `an international name is converted to ASCII, and the text stays`(text: String, name: String) throws {
        let endpoint = try Endpoint(text)
        expectEqual(endpoint.host, .name(name))
        expectEqual(endpoint.text, text)
    }

    @Test func `an address in full-width digits is an address`() throws {
        try expectEqual(Endpoint("１９２.0.2.1:80").host, .address(IPAddress(v4: 0xc000_0201), zone: nil))
    }

    @Test(arguments: [
        ("fe80::1%lo", "[fe80::1%lo]:443"), ("fe80::1%eth0.7", "[fe80::1%eth0.7]:443"), ("::1", "[::1]:443"),
        ("[fe80::1%lo]", "[fe80::1%lo]:443"), ("192.0.2.1", "192.0.2.1:443"), ("a.example", "a.example:443"),
    ])
    func `a host given without a port needs no brackets`(host: String, text: String) throws {
        try expectEqual(Endpoint(host: host, port: 443), Endpoint(text))
        try expectEqual(Endpoint(host: host, port: 443).text, text)
    }

    @Test(arguments: [
        ("a.example:80", "host: 'a.example:80' contains a port"), ("[::1]:80", "host: '[::1]:80' contains a port"),
        ("tcp://a.example:80", "scheme: 'tcp://a.example:80' has one"), ("1:2:3", "host: '1:2:3' is not an IPv6 address"),
        ("fe80::1%", "host: '' is not the name of an interface"), ("", "host: is empty"), ("https://a.example", "scheme: "),
    ])
    func `a host with a port or scheme, or an invalid one, is refused`(host: String, words: String) {
        let error = #expect(throws: Endpoint.ParseError.self) { try Endpoint(host: host, port: 443) }
        expectEqual(error?.description.hasPrefix(words), true, "\(error?.description ?? "")")
    }

    @Test func `an endpoint with an address is parsed, with a zone if it is link-local`() throws {
        try expectEqual(Endpoint("192.0.2.1:53").host, .address(IPAddress(v4: 0xc000_0201), zone: nil))
        try expectEqual(Endpoint("[::1]:53").host, .address(IPAddress(v6: 0, 1), zone: nil))
        try expectEqual(Endpoint("tcp://[fe80::1%eth0]:22").host, .address(IPAddress(v6: 0xfe80 << 48, 1), zone: "eth0"))
        // The form of RFC 6874 belongs to URLs alone.
        let url = try Endpoint("http://[fe80::1%25eth0]:8080/")
        #expect(try url == Endpoint("http://[fe80::1%eth0]:8080/") && url.text == "http://[fe80::1%25eth0]:8080/")
        try expectEqual(Endpoint("https://[fe80::1%25]").host, .address(IPAddress(v6: 0xfe80 << 48, 1), zone: "25"))
        try expectEqual(Endpoint("[fe80::1%25eth0]:22").host, .address(IPAddress(v6: 0xfe80 << 48, 1), zone: "25eth0"))
        try expectEqual(Endpoint("[::ffff:192.0.2.1]:1").host, .address(IPAddress(v4: 0xc000_0201), zone: nil))
    }

    @Test(arguments: [
        ("DB.example:443", "db.example:443", true), ("tcp://db.example:443", "Db.Example:443", true),
        ("[2001:DB8:0::1]:443", "[2001:db8::1]:443", true), ("[::ffff:192.0.2.1]:1", "192.0.2.1:1", true),
        ("db.example:443", "db.example:444", false), ("db.example:443", "dc.example:443", false),
        // The search list of resolv.conf applies to the name without the final dot.
        ("db.example.:443", "db.example:443", false), ("DB.example.:443", "db.example.:443", true),
        // Names of interfaces are case-sensitive.
        ("[fe80::1%Eth0]:443", "[fe80::1%eth0]:443", false), ("[::1]:1", "a:1", false),
    ])
    func `endpoints with the same host and port are equal, and keep their spelling`(
        _ one: String, _ other: String, equal: Bool
    ) throws {
        let (first, second) = (try Endpoint(one), try Endpoint(other))
        #expect((first == second) == equal && (first.host == second.host || !equal))
        expectEqual(Set([first, second]).count, (equal ? 1 : 2))
        #expect(first.text == one && "\(second)" == other)
    }

    @Test func `only ASCII letters are compared without regard to case`() {
        #expect(Endpoint.Host.name("@[") != .name("`{") && Endpoint.Host.name("É") != .name("é"))
        expectEqual(Endpoint.Host.name("AZ-_09"), .name("az-_09"))
    }

    @Test(arguments: [
        ("", "host: is empty"), (":80", "host: is empty"), ("tcp://", "host: is empty"), ("tcp://:80", "host: is empty"),
        ("example.com", "port: is missing; write example.com:PORT"), ("example.com:", "port: is missing"),
        ("[::1]", "port: is missing"), ("[::1]:", "port: is missing"), ("[::1]80", "port: is missing"),
        ("example.com:0", "port: 0 is not between 1 and 65535"), ("example.com:65536", "port: 65536 is not between"),
        ("example.com:99999999999999999999", "port: 99999999999999999999 is not between"),
        ("example.com:-1", "port: '-1' is not a number"), ("example.com:http", "port: 'http' is not a number"),
        ("example.com:８０", "port: '８０' is not a number"), ("example.com: 80", "port: ' 80' is not a number"),
        ("http://", "host: is empty; write HOST or HOST:PORT"), ("https://:443/", "host: is empty"),
        ("https://user:secret@example.com/", "host: a user name or password"),
        ("tls://a/b", "port: '/b' does not belong to a TLS"),
        ("https://a:0/", "port: 0 is not between"), ("https://a:/", "port: is missing"), ("https://[::1]x/", "port: is missing"),
        ("https://a/b c", "path: contains a space or a control character; write %20"),
        ("https://a/b\r\nX: y", "path: contains a space or a control character; write %0D"),
        ("https://a/" + String(repeating: "b", count: 8_001), "path: is longer than 8000 bytes"),
        ("ftp://example.com", "scheme: 'ftp' is not known"), ("://example.com:80", "scheme: '' is not known"),
        ("tcp://example.com:80/path", "port: '/path' does not belong"), ("tcp://example.com:80?q", "port: '?q' does not belong"),
        ("::1:80", "host: an IPv6 address needs brackets"), ("a:b:80", "host: an IPv6 address needs brackets"),
        ("[::1:80", "host: '[' without ']'"), ("[192.0.2.1]:80", "host: '192.0.2.1' is not an IPv6 address"),
        ("[]:80", "host: '' is not an IPv6 address"), ("[fe80::1%]:80", "host: '' is not the name of an interface"),
        ("[fe80::1%a-name-too-long-for-an-interface]:80", "host: 'a-name-too-long-for-an-interface' is not the name"),
        ("256.1.1.1:80", "host: '256.1.1.1' is not an IPv4 address"), ("1.2.3:80", "host: '1.2.3' is not an IPv4 address"),
        ("0x7f.1:80", "host: '0x7f.1' is not an IPv4 address"), ("0X7F000001:80", "host: '0X7F000001' is not an IPv4 address"),
        ("a..b:80", "host: 'a..b' has an empty label"), (".:80", "host: '.' has an empty label"),
        ("-a.b:80", "host: '-a.b' is neither"), ("a-.b:80", "host: 'a-.b' is neither"),
        ("user@host:80", "host: a user name or password does not belong to a TCP target; write HOST:PORT"),
        ("user:secret@host:80", "host: a user name or password does not belong to a TCP target"),
        ("user:secret@[::1]:80", "host: a user name or password does not belong to a TCP target"),
        ("tcp://user@host:80", "host: a user name or password does not belong to a TCP target; write tcp://HOST:PORT"),
        ("tls://user:secret@host", "host: a user name or password does not belong to a TLS target; write tls://HOST:PORT"),
        ("exa mple.com:80", "host: 'exa mple.com' is neither"), ("bü cher.de:80", "host: 'bü cher.de' is neither"),
        ("ü..de:80", "host: 'ü..de' is neither"), ("ü\0.de:80", "host: 'ü�.de' is neither"),
        ("a\0.de:80", "host: 'a�.de' is neither"), ("２５６.1.1.1:80", "host: '256.1.1.1' is not an IPv4 address"),
        (String(repeating: "ü", count: 300) + ".de:80", "host: "),
        (String(repeating: "a", count: 300) + ":80", "host: is longer"),
        (String(repeating: "a", count: 64) + ".de:80", "host: a label is longer than 63"),
        (Array(repeating: "abcdefg", count: 33).joined(separator: ".") + ":80", "host: is longer than the 253"),
    ])
    func `an invalid endpoint is refused with its faulty part`(text: String, message: String) {
        let refusal = refusal(text)
        expectEqual(refusal?.hasPrefix(message), true, "\(refusal ?? "accepted")")
    }

    @Test(arguments: [
        ("tls://example.com", Endpoint.Scheme.tls, 443, ""), ("tls://example.com:8443", .tls, 8443, ""),
        ("http://example.com", .http, 80, "/"), ("HTTP://example.com/", .http, 80, "/"),
        ("https://example.com:8443/a/b?c=d#fragment", .https, 8443, "/a/b?c=d"), ("https://example.com?q", .https, 443, "/?q"),
        ("https://[2001:db8::1]/x", .https, 443, "/x"), ("https://[2001:db8::1]:8443", .https, 8443, "/"),
        ("https://bücher.example/grüße", .https, 443, "/gr%C3%BC%C3%9Fe"), ("tcp://example.com:80", .tcp, 80, ""),
    ])
    func `a URL has a scheme, a port that may be the default, and a path`(
        text: String, scheme: Endpoint.Scheme, port: UInt16, path: String
    ) throws {
        let endpoint = try Endpoint(text)
        expectEqual(endpoint.scheme, scheme)
        expectEqual(endpoint.port, port)
        expectEqual(endpoint.path, path)
        expectEqual(endpoint.text, text, "the text stays as the user wrote it")
    }

    @Test func `endpoints differ by scheme and path, and not by a port that is the default`() throws {
        try expectEqual(Endpoint("https://a/x"), Endpoint("HTTPS://A:443/x"))
        #expect(try Endpoint("https://a/x") != Endpoint("https://a/X"))
        #expect(try Endpoint("https://a/") != Endpoint("http://a:443/"))
        #expect(try Endpoint("tls://a") != Endpoint("a:443"))
        try expectEqual(Set(["https://a", "https://a/", "https://a:443/#x"].map { try Endpoint($0) }).count, 1)
    }

    @Test func `the message of a refused endpoint is one short line without control characters`() {
        expectEqual(refusal("a\nb:80"), "host: 'a\u{fffd}b' is neither an address nor a DNS name")
        #expect(refusal("\u{1b}[31mred:80")?.contains("\u{1b}") == false)
        #expect((refusal("x" + String(repeating: "é", count: 1 << 20)) ?? "").count < 500)
    }

    @Test func `random text is an endpoint, or is refused with one line that names its faulty part`() {
        var generator = SplitMix64(seed: 7)
        let pieces = Array("abz09.-_:/[]%@?# \n\u{1b}é").map(String.init) + ["::", "://", "tcp", "80", "fe80::1", "192.0.2.1"]
        for _ in 0..<5_000 {
            let text = (0..<Int.random(in: 0...8, using: &generator)).compactMap { _ in pieces.randomElement(using: &generator) }
                .joined()
            guard let refusal = refusal(text) else { continue }
            #expect(["host: ", "port: ", "scheme: ", "path: "].contains { refusal.hasPrefix($0) }, "\(text)")
            #expect(!refusal.contains { $0.isNewline }, "\(text)")
        }
    }
}
