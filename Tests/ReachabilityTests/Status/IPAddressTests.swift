import Expectations
import FoundationEssentials
import Glibc
import Pacing
import Testing

@testable import Reachability

@Suite struct IPAddressTests {
    private func text(_ bytes: [UInt8]) -> String {
        var buffer = [CChar](repeating: 0, count: 64)
        inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &buffer, 64)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    @Test func `random address bytes have inet_ntop's text, and that text gives the same address`() throws {
        var generator = SplitMix64(seed: 11)
        for _ in 0..<2_000 {
            var bytes = (0..<(Bool.random(using: &generator) ? 4 : 16)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            // Runs of zeros, which the text shortens.
            let zeros = Int.random(in: 0...bytes.count, using: &generator)
            bytes.replaceSubrange(
                (bytes.count - zeros) / 2..<(bytes.count + zeros) / 2, with: [UInt8](repeating: 0, count: zeros / 2 * 2))
            guard let address = IPAddress(bytes: bytes) else { continue }
            expectEqual(address.bytes, bytes)
            expectEqual(address.description, text(bytes))
            expectEqual(IPAddress(address.description), address)
        }
    }

    @Test(arguments: [
        "", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.0.0.1", " 1.2.3.4", "1.2.3.4 ", ":::", "1::2::3", "[::1]", "fe80::1%eth0",
        "::g",
    ])
    func `an invalid address is refused`(text: String) {
        expectNil(IPAddress(text))
    }

    @Test func `a number of bytes other than 4 or 16 is no address`() {
        for count in [0, 1, 3, 5, 8, 15, 17] { expectNil(IPAddress(bytes: [UInt8](repeating: 1, count: count))) }
    }

    @Test func `loopback, link-local, multicast, unspecified and IPv4-mapped addresses are recognized`() throws {
        func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }
        #expect(try address("127.9.9.9").isLoopback && address("::1").isLoopback && !address("128.0.0.1").isLoopback)
        #expect(try address("169.254.1.1").isLinkLocal && address("fe80::1").isLinkLocal && address("febf::1").isLinkLocal)
        #expect(try !address("fec0::1").isLinkLocal && !address("169.253.1.1").isLinkLocal)
        #expect(try address("224.0.0.1").isMulticast && address("ff02::1").isMulticast && !address("fe02::1").isMulticast)
        #expect(try address("0.0.0.0").isUnspecified && address("::").isUnspecified && !address("::1").isUnspecified)
        #expect(
            try address("::ffff:1.2.3.4").isIPv4Mapped && !address("1.2.3.4").isIPv4Mapped && !address("::1.2.3.4").isIPv4Mapped)
        #expect(try address("255.255.255.255") < address("::"))
    }

    @Test func `a prefix contains the addresses that share its leading bits`() {
        var generator = SplitMix64(seed: 12)
        for _ in 0..<500 {
            let isV4 = Bool.random(using: &generator)
            let width = isV4 ? 32 : 128
            let base = (0..<width / 8).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let length = Int.random(in: 0...width, using: &generator)
            let flipped = Int.random(in: 0..<width, using: &generator)
            var other = base
            other[flipped / 8] ^= 0x80 >> UInt8(flipped % 8)
            guard let one = IPAddress(bytes: base), let two = IPAddress(bytes: other) else { continue }
            let prefix = IPPrefix(one, length: UInt8(length))
            #expect(prefix.contains(one))
            expectEqual(prefix.contains(two), (flipped >= length), "\(prefix) \(two)")
        }
    }

    @Test func `a prefix contains no address of the other family, and its length is limited to the address's`() {
        let everything = IPPrefix(IPAddress(v4: 0), length: 0)
        #expect(everything.isDefault && everything.contains(IPAddress(v4: .max)) && !everything.contains(IPAddress(v6: 0, 0)))
        expectEqual(IPPrefix(IPAddress(v4: 1), length: 255).length, 32)
        expectEqual(IPPrefix(IPAddress(v6: 0, 1), length: 255).description, "::1/128")
    }

    @Test func `the longest texts of prefixes are complete`() {
        expectEqual(IPPrefix(IPAddress(v4: .max), length: 32).description, "255.255.255.255/32")
        expectEqual(IPPrefix(IPAddress(v4: 0), length: 0).description, "0.0.0.0/0")
        expectEqual(IPPrefix(IPAddress(v6: 0, 0xffff_ffff_ffff), length: 128).description, "::ffff:255.255.255.255/128")
        let longest = IPPrefix(IPAddress(v6: .max, .max), length: 128)
        expectEqual(longest.description, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")
    }
}

@Suite struct MomentTests {
    @Test func `moments advance on both clocks and never overflow`() {
        let start = Moment(monotonicNanoseconds: 5, wallClockNanoseconds: 1_700_000_000_000_000_000)
        let later = start.advanced(by: .milliseconds(250))
        expectEqual(later.monotonicNanoseconds, 250_000_005)
        expectEqual(later.wallClockNanoseconds, 1_700_000_000_250_000_000)
        expectEqual(later.elapsed(since: start), .milliseconds(250))
        expectEqual(start.elapsed(since: later), .milliseconds(-250))
        #expect(start < later)
        let far = start.advanced(by: .seconds(Int64.max))
        expectEqual(far.monotonicNanoseconds, .max)
        let ancient = Moment(monotonicNanoseconds: .min, wallClockNanoseconds: 0)
        expectEqual(start.elapsed(since: ancient), .nanoseconds(Int64.max))
        expectEqual(ancient.advanced(by: .seconds(Int64.min)).monotonicNanoseconds, .min)
    }

    @Test func `moments are ordered by the monotonic clock alone`() {
        let early = Moment(monotonicNanoseconds: 1, wallClockNanoseconds: 9_000_000_000)
        let late = Moment(monotonicNanoseconds: 2, wallClockNanoseconds: 3_000_000_000)
        #expect(early < late)
        #expect(late.date.timeIntervalSince1970 < early.date.timeIntervalSince1970)
    }
}
