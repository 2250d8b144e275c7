import Expectations
import Testing

@testable import Pacing

struct SaturatingArithmeticTests {
    @Test func `a sum within 64 bits is exact`() {
        expectEqual(Int64(2).addingSaturated(-5), -3)
        expectEqual(Int64.max.addingSaturated(.min), -1)
    }

    @Test func `a sum beyond 64 bits is clamped`() {
        expectEqual(Int64.max.addingSaturated(1), .max)
        expectEqual(Int64.min.addingSaturated(-1), .min)
    }

    @Test func `a product beyond 64 bits is clamped with its sign`() {
        expectEqual(Int64(-3).multipliedSaturated(by: 4), -12)
        expectEqual((Int64.max / 2 + 1).multipliedSaturated(by: 2), .max)
        expectEqual(Int64.min.multipliedSaturated(by: -1), .max)
        expectEqual(Int64.max.multipliedSaturated(by: -2), .min)
        expectEqual(Int64(-2).multipliedSaturated(by: .max), .min)
    }
}
