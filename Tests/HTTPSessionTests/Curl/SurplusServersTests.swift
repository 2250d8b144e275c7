import Expectations
import Testing

@testable import HTTPSession

/// The record of servers that send surplus responses.
@Suite struct SurplusServersTests {
    private static func server(_ port: Int32) -> SurplusServers.Server {
        .init(
            .init(remoteAddress: "192.0.2.1", remotePort: port, localAddress: "192.0.2.2", localPort: 50_000 + port))
    }

    @Test func `a surplus server is known for its lifetime, whatever the local port`() {
        var servers = SurplusServers()
        #expect(servers.isEmpty && !servers.contains(Self.server(1), now: 0))
        servers.insert(Self.server(1), now: 10)
        let other = SurplusServers.Server(
            .init(remoteAddress: "192.0.2.1", remotePort: 1, localAddress: "192.0.2.3", localPort: 7))
        #expect(servers.contains(other, now: 9 + SurplusServers.lifetime))
        #expect(!servers.contains(other, now: 10 + SurplusServers.lifetime))
        #expect(!servers.contains(Self.server(2), now: 11))
    }

    @Test func `more surplus servers than the maximum evict the oldest`() {
        var servers = SurplusServers()
        for number in 0...SurplusServers.maximumCount { servers.insert(Self.server(Int32(number)), now: Int64(number)) }
        #expect(!servers.contains(Self.server(0), now: 1_000))
        #expect(servers.contains(Self.server(1), now: 1_000))
        #expect(servers.contains(Self.server(Int32(SurplusServers.maximumCount)), now: 1_000))
    }

    @Test func `a quiet period follows the first response of a server only`() {
        var periods = QuietPeriods()
        expectNil(periods.end(for: "http://a/", now: 0))
        periods.begin(with: Self.server(1), url: "http://a:81/x/y?z", now: 100)
        let end = 100 + QuietPeriods.duration
        expectEqual(periods.end(for: "http://a:81/", now: 101), end)
        expectEqual(periods.end(for: "http://a:81?q", now: 101), end)
        expectNil(periods.end(for: "http://a:8/", now: 101))
        expectNil(periods.end(for: "http://a:81/", now: end))
        periods.begin(with: Self.server(1), url: "http://a:81/", now: end)
        expectNil(periods.end(for: "http://a:81/", now: end))
    }

    @Test(arguments: [
        ("HTTP/1.1", true), ("\r\n\r\nHTTP", true), ("H", true), ("\r\n", true), ("<html>", false), ("HTML", false),
    ])
    func `bytes behind a response begin another response if they are its first bytes`(_ text: String, _ isResponse: Bool) {
        expectEqual(IdleSockets.isBeginningOfResponse(Array(text.utf8)), isResponse)
    }
}
