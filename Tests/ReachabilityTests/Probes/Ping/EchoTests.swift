import Expectations
import Testing

@testable import Reachability

/// The bytes and the arithmetic of echo requests.
@Suite struct EchoTests {
    /// Returns the reply that a host sends to a request.
    private func reply(to request: [UInt8], _ family: IPAddress.Family) -> [UInt8] {
        [family == .v4 ? 0 : 129] + request.dropFirst()
    }

    private func header(_ bytes: [UInt8], _ family: IPAddress.Family, ip: Bool = false) -> EchoMessage.Header? {
        bytes.withUnsafeBytes { EchoMessage.reply($0, family, hasIPHeader: ip) }
    }

    @Test func `a request of IPv4 has a checksum that makes the sum of its words 0xffff`() {
        for size in [0, 1, 7, 8, 56, 65_000] {
            let request = EchoMessage.request(
                .v4, identifier: 0x1234, sequence: 0xfffe, cookie: 0x0102_0304_0506_0708, size: size)
            expectEqual(request.count, 8 + size)
            expectEqual(EchoMessage.checksum(request), 0)
        }
        expectEqual(
            EchoMessage.request(.v6, identifier: 1, sequence: 2, cookie: 0xaa00_0000_0000_00bb, size: 9),
            [128, 0, 0, 0, 0, 1, 0, 2, 0xaa, 0, 0, 0, 0, 0, 0, 0xbb, 8])
    }

    @Test(arguments: [IPAddress.Family.v4, .v6])
    func `a reply has the numbers of its request, and matches its cookie alone`(family: IPAddress.Family) throws {
        let request = EchoMessage.request(family, identifier: 7, sequence: 300, cookie: 0xdead_beef_0000_0001, size: 56)
        let found = try #require(header(reply(to: request, family), family))
        #expect(found.identifier == 7 && found.sequence == 300)
        #expect(found.matches(0xdead_beef_0000_0001) && !found.matches(0xdead_beef_0000_0002))
        // A request without room for a cookie cannot be told from an earlier one.
        let short = EchoMessage.request(family, identifier: 7, sequence: 300, cookie: 1, size: 0)
        expectEqual(header(reply(to: short, family), family)?.matches(2), true)
    }

    @Test func `messages that are no replies, or that are cut at any byte, have no header`() {
        let request = EchoMessage.request(.v4, identifier: 7, sequence: 300, cookie: 1, size: 8)
        expectNil(header(request, .v4), "the request itself, which a socket on this machine may see")
        let complete = reply(to: request, .v4)
        for length in 0..<8 { expectNil(header(Array(complete.prefix(length)), .v4)) }
        // With an IP header of 20 and of 60 bytes, and with a length that lies.
        for words: UInt8 in [5, 15] {
            let bytes = [0x40 | words] + [UInt8](repeating: 0, count: Int(words) * 4 - 1) + complete
            expectEqual(header(bytes, .v4, ip: true)?.sequence, 300)
            for length in 0..<(Int(words) * 4 + 8) { expectNil(header(Array(bytes.prefix(length)), .v4, ip: true)) }
        }
        expectNil(header([0x44] + [UInt8](repeating: 0, count: 40), .v4, ip: true), "an IP header of 16 bytes")
    }

    @Test func `an error names the request that it quotes`() {
        let request = EchoMessage.request(.v6, identifier: 9, sequence: 5, cookie: 1, size: 56)
        expectEqual(EchoMessage.quoted(request, .v6)?.sequence, 5)
        expectNil(EchoMessage.quoted(request.prefix(7), .v6))
        expectNil(EchoMessage.quoted(request, .v4))
        expectNil(EchoMessage.quoted(reply(to: request, .v6), .v6))
    }

    @Test func `a burst has the mean, the range and the jitter of its answers, and each answer counts once`() {
        var answers = EchoAnswers()
        for _ in 0..<4 { answers.noteSent() }
        expectNil(answers.mean)
        let counted = [(0, Int64(10)), (3, 40), (1, 30)].map { answers.receive($0, roundTrip: $1) }
        expectEqual(counted, [true, true, true])
        let refused = [3, 4, -1].map { answers.receive($0, roundTrip: 1) }
        expectEqual(refused, [false, false, false])
        #expect(answers.sent == 4 && answers.received == 3)
        expectEqual(answers.mean, 26)
        expectEqual(answers.range, 10...40)
        // 10 → 30 → 40, in the order of the requests.
        expectEqual(answers.jitter, 15)
    }

    @Test func `settings stay within their ranges`() {
        var settings = PingSettings()
        expectEqual(settings, PingSettings())
        (settings.count, settings.size, settings.hopLimit, settings.spacing) = (0, -1, 0, .zero)
        #expect(settings.count == 1 && settings.size == 0 && settings.hopLimit == 1 && settings.spacing == .milliseconds(1))
        (settings.count, settings.size, settings.hopLimit, settings.spacing) = (.max, .max, .max, .seconds(1_000_000))
        #expect(settings.count == 100 && settings.size == 65_000 && settings.hopLimit == 255 && settings.spacing == .seconds(10))
    }
}
