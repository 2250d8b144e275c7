import Expectations
import Testing

@testable import HTTPSession

@Suite struct ProxyTextTests {
    @Test(arguments: [
        "http://h", "http://h:1", "https://h:65535/", "HTTP://h:1", "socks5h://u:p@h:1080", "http://u:p%40@h:1", "http://u@h",
        "http://h:",
        "http://[2001:db8::1]:1", "http://[fe80::1%25eth0]:1", "http://192.0.2.1:1", "socks5h://localhost/run/proxy.sock",
        "http://b\u{fc}cher.example:1",
    ]) func `a proxy that libcurl can use has no problem`(text: String) {
        expectNil(ProxyText.problem(text))
    }

    @Test(arguments: [
        ("", "give http://"), ("h:1", "give http://"), ("ftp://h:1", "give http://"), ("socks://h", "give http://"),
        ("http://", "the host is missing"), ("http://:1", "the host is missing"), ("http://u:s3cret@:1", "the host is missing"),
        ("http://u:s3cret@h:99999", "the port is not a number from 1 to 65535"), ("http://h:0", "the port"),
        ("http://h:-1", "the port"),
        ("http://h:+1", "the port"), ("http://h:port", "the port"), ("http://[::1]1", "the port"),
        ("http://u:s3/cret@h:1", "the port"),
        ("http://::1:1", "write an IPv6 address in brackets"), ("http://[::1", "'[' without ']'"),
        ("http://[192.0.2.1]:1", "the host in brackets is not an IPv6 address"), ("http://h h:1", "the host is neither"),
    ]) func `a malformed proxy has a problem that shows no password`(text: String, problem: String) {
        let found = ProxyText.problem(text) ?? ""
        #expect(found.hasPrefix(problem) && !found.contains("s3"), "\(found)")
    }

    @Test func `a proxy of the environment needs no scheme`() {
        expectNil(ProxyText.problem("u:p@h:3128", needsScheme: false))
        expectEqual(ProxyText.problem("u:p@h:99999", needsScheme: false), "the port is not a number from 1 to 65535")
        #expect(ProxyText.problem("ftp://h", needsScheme: false) != nil)
    }
}
