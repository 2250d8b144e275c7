import Expectations
import Testing

@testable import Reachability

/// The proxy of probes: its URL, the hosts that it serves, and the request for a tunnel.
@Suite struct ProbeProxyTests {
    @Test(arguments: [
        ("http://proxy.example:3128", "proxy.example:3128", ""), ("HTTP://proxy.example", "proxy.example:1080", ""),
        ("http://[fd00::1]:8080/", "[fd00::1]:8080", ""), ("http://192.0.2.1:/", "192.0.2.1:1080", ""),
        ("http://ada:p%40ss@192.0.2.1:80", "192.0.2.1:80", "Basic YWRhOnBAc3M="),
        ("http://[fe80::1%25lo]:3128", "[fe80::1]:3128", ""), ("http://ada@p:1", "p:1", "Basic YWRhOg=="),
    ])
    func `a URL has a host, a port and credentials`(_ url: String, _ text: String, _ authorization: String) throws {
        let proxy = try ProbeProxy(url, exceptions: "")
        expectEqual(proxy.text, text)
        expectEqual(proxy.authorization, authorization)
    }

    @Test(arguments: [
        "", "proxy.example:3128", "https://p:1", "socks5://p:1", "http://", "http://:1", "http://s3cret:s3cret@:1",
        "http://s3cret@p:99999", "http://s3cret@p:0", "http://s3cret@p:x", "http://s3cret@[::1", "http://s3cret%@p:1",
        "http://s3cret%4@p:1", "http://s3cret%zz@p:1", "http://%ff:s3cret@p:1", "http://a%3as3cret:b@p:1", "http://s3cret@a b:1",
        "http://ada:s3cret@b@p:1", "http://ada:s3cret%0d%0a@p:1", "http://ada:s3cret%00@p:1",
        "http://ada:s3cret/x@p:1", "http://s3cret/x@p:1",
        "http://ada:1/s3cret@p:1",
    ])
    func `a URL that is no proxy's is refused without a part of it`(_ url: String) throws {
        var settings = HTTPProbeSettings()
        let error = try #require(throws: HTTPProbeSettings.InvalidValue.self) { try settings.setProxy(url) }
        #expect(!error.description.contains("s3cret") && !error.description.contains("\n"), "\(error)")
        expectNil(settings.proxy)
    }

    @Test func `targets of http and https use the proxy, unless they are exceptions`() throws {
        var settings = HTTPProbeSettings()
        try settings.setProxy("http://proxy.example:3128", except: "internal.example, 10.0.0.0/8,[::1]:8443")
        let rows = [
            "http://a.example": true, "https://a.example": true, "tls://a.example": false, "a.example:80": false,
            "https://internal.example": false, "https://X.Internal.Example": false, "https://notinternal.example": true,
            "http://10.1.2.3": false, "http://11.1.2.3": true, "https://[::1]:8443": false, "https://[::1]": true,
        ]
        for (target, isServed) in rows {
            try expectEqual(settings.proxy(for: Endpoint(target)) != nil, isServed, "\(target)")
        }
        try settings.setProxy("http://proxy.example:3128", except: "*")
        try expectNil(settings.proxy(for: Endpoint("http://a.example")))
        try settings.setProxy(nil)
        expectEqual(settings, HTTPProbeSettings())
    }

    private func tunnel(_ url: String = "http://proxy.example:3128") throws -> ProxyTunnel {
        try ProxyTunnel(to: Endpoint("https://[2001:db8::7]:8443").withoutScheme, through: ProbeProxy(url, exceptions: ""))
    }

    @Test func `the request names the server, and has the credentials of the proxy alone`() throws {
        expectEqual(
            String(decoding: try tunnel("http://ada:secret@p:1").request, as: UTF8.self),
            "CONNECT [2001:db8::7]:8443 HTTP/1.1\r\nHost: [2001:db8::7]:8443\r\nUser-Agent: netwatch/\(PackageVersion.text)\r\n"
                + "Proxy-Authorization: Basic YWRhOnNlY3JldA==\r\n\r\n")
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n\r\n", true, 200),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 204 x\r\nContent-Length: 7\r\n\r\n", true, 204),
        ("HTTP/1.1 407 No\r\nContent-Length: 3\r\n\r\n", false, 407), ("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", false, 302),
    ])
    func `the answer ends where the server's bytes begin, however it is divided`(_ head: String, _ isOpen: Bool, _ status: Int)
        throws
    {
        let bytes = Array(head.utf8) + [0x16, 3, 3, 0, 1]
        for cut in 0...bytes.count {
            var (tunnel, used) = (try tunnel(), 0)
            for piece in [bytes[..<cut], bytes[cut...]] where !tunnel.hasEnded {
                used += Array(piece).withUnsafeBytes { tunnel.receive($0) }
            }
            #expect(
                tunnel.hasEnded && tunnel.isOpen == isOpen && tunnel.facts.status == status && used == head.utf8.count, "\(cut)")
        }
    }

    @Test(arguments: ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nX: y\r\n", "SSH-2.0-x\r\n", "\u{16}\u{3}\u{1}\r\n"])
    func `an answer that is cut or no HTTP opens no tunnel`(_ text: String) throws {
        var tunnel = try tunnel()
        _ = Array(text.utf8).withUnsafeBytes { tunnel.receive($0) }
        tunnel.endOfInput()
        #expect(tunnel.hasEnded && !tunnel.isOpen && tunnel.facts.failure != nil)
    }
}
