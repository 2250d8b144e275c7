import Expectations
import Testing

@testable import HTTPSession

@Suite struct HostOverrideTests {
    private func error(_ host: String, _ port: Int = 443, _ addresses: [String] = ["127.0.0.1"]) -> HTTPSessionError? {
        var configuration = SessionConfiguration()
        configuration.hostOverrides = [.init(host: host, port: port, addresses: addresses)]
        return HTTPSessionError.thrown { try EngineConfiguration(configuration) }
    }

    @Test(arguments: ["a.example", "A.Example.", "xn--bcher-kva.example", "_service.example", "1.example", "127.0.0.1", "a"])
    func `a host override for a valid host name is accepted`(host: String) {
        expectNil(error(host))
    }

    /// CURLOPT_RESOLVE reads a leading `-` as a removal, a leading `+` as a lifetime, and `*` as every host.
    @Test(
        arguments: [
            "", "*", "*.example", "-a.example", "+a.example", "a:80", "a,b", "a b", "a\n-b", "a\0", "[::1]", "::1", "a..b", ".a",
            ".", "bücher.example",
            "a/b", "a\\b", "a@b", "127.1", "0x7f.1", String(repeating: "a", count: 64), String(repeating: "a.", count: 127) + "a",
        ])
    func `a host override for an invalid host name is refused`(host: String) {
        let error = error(host)
        #expect(error?.code == .invalidConfiguration && error?.reason.contains("hostOverrides") == true)
    }

    @Test func `a host override requires a valid port and addresses`() {
        #expect(error("a", 0)?.reason.contains("port") == true)
        #expect(error("a", 65_536)?.reason.contains("port") == true)
        #expect(error("a", 1, [])?.reason.contains("address") == true)
        for address in ["", "a.example", "127.1", "1.2.3.4,5.6.7.8", "[::1", "*", "::1\n", "127.0.0.1 "] {
            expectEqual(error("a", 1, ["127.0.0.1", address])?.reason.contains("address"), true, "\(address.debugDescription)")
        }
        expectNil(error("a", 1, ["::1", "[::1]", "127.0.0.1"]))
    }
}
