import Expectations
import Foundation
import Reachability
import Testing

@testable import Console
@testable import Records

@Suite struct TimestampTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000Z"),
            (1_785_672_003_123_999_999, "2026-08-02T12:00:03.123Z"), (.min, "1677-09-21T00:12:43.145Z"),
            (.max, "2262-04-11T23:47:16.854Z"),
        ] as [(Int64, String)])
    func `timestamps are rounded down to milliseconds`(nanoseconds: Int64, text: String) {
        expectEqual(Timestamp.text(wallClockNanoseconds: nanoseconds), text)
    }

    @Test func `timestamps agree with Foundation`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix(state: seed)
        let formatter = ISO8601DateFormatter()
        for _ in 0..<2000 {
            let seconds = Int64(truncatingIfNeeded: random.next() % 18_000_000_000) - 9_000_000_000
            let expected = formatter.string(from: Date(timeIntervalSince1970: Double(seconds)))
            let text = Timestamp.text(wallClockNanoseconds: seconds * 1_000_000_000)
            expectEqual(text, expected.dropLast() + ".000Z", "seed \(seed)")
        }
    }
}

@Suite struct TimeSpanTests {
    @Test(
        arguments: [
            ("250ms", .milliseconds(250)), ("3s", .seconds(3)), ("2m", .seconds(120)), ("1h", .seconds(3600)),
            ("007s", .seconds(7)),
            ("8760h", .seconds(365 * 86_400)), ("31536000000ms", .seconds(365 * 86_400)),
        ] as [(String, Duration)])
    func `durations are parsed`(text: String, duration: Duration) throws {
        try expectEqual(TimeSpan(text).duration, duration)
    }

    @Test(arguments: [
        ("0s", "must be above zero"), ("-1s", "must be above zero"), ("000h", "must be above zero"), ("1e9h", "not a duration"),
        ("5", "the unit is missing"), ("1.5s", "not a duration"), ("", "not a duration"), ("s", "not a duration"),
        ("3 s", "not a duration"), (" 3s", "not a duration"), ("3S", "not a duration"),
        ("366d", "not a duration; write days as hours, as in 24h, at most 8760h (365 days)"),
        ("٣s", "not a duration"), ("8761h", "longer than 365 days"), ("99999999999999999999999h", "longer than 365 days"),
        ("9223372036854775807ms", "longer than 365 days"), ("+3s", "not a duration"), ("--json", "not a duration"),
    ])
    func `invalid durations are refused with a reason`(text: String, why: String) {
        #expect {
            try TimeSpan(text)
        } throws: {
            "\($0)".hasPrefix(why)
        }
    }

    @Test(arguments: ["10ms", "1500ms", "1s", "90s", "2m", "1h", "8760h"])
    func `an exact duration is written as an option accepts it`(text: String) throws {
        expectEqual(TimeSpan.exact(try TimeSpan(text).duration), text)
    }

    @Test(arguments: [
        (Duration.zero, "0ms", "+0.000s"), (.milliseconds(850), "850ms", "+0.850s"), (.milliseconds(3120), "3.1s", "+3.120s"),
        (.milliseconds(123_456), "2m03s", "+2m03.4s"), (.seconds(3720), "1h02m", "+1h02m00s"),
        (.seconds(273_600), "3d04h", "+76h00m00s"),
        (.seconds(-5), "0ms", "+0.000s"),
    ])
    func `durations have a rough form and an offset form`(duration: Duration, rough: String, offset: String) {
        expectEqual(TimeSpan.rough(duration), rough)
        expectEqual(TimeSpan.offset(duration), offset)
    }

    @Test(arguments: [
        (Duration.zero, "0"), (.nanoseconds(499), "0"), (.nanoseconds(500), "0.001"), (.microseconds(250), "0.25"),
        (.milliseconds(12), "12"), (.nanoseconds(12_345_678), "12.346"), (.nanoseconds(999_999_999), "1000"),
        (.microseconds(1010), "1.01"), (.seconds(-1), "0"), (.nanoseconds(Int64.max), "9223372036854.776"),
    ])
    func `milliseconds have at most three decimals`(duration: Duration, text: String) {
        expectEqual(Milliseconds.text(duration), text)
    }
}
