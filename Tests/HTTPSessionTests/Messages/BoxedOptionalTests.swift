import Expectations
import Testing

@testable import HTTPSession

@Suite struct BoxedOptionalTests {
    private struct Owner: Hashable {
        @BoxedOptional var value: [Int]?
    }

    @Test func `an owner has the value or none`() {
        var owner = Owner()
        expectNil(owner.value)
        owner.value = [1]
        owner.value?.append(2)
        expectEqual(owner.value, [1, 2])
        owner.value = nil
        expectNil(owner.value)
    }

    @Test func `copies are independent`() {
        let one = Owner(value: [1])
        var other = one
        #expect(one == other && one.hashValue == other.hashValue)
        other.value?.append(2)
        #expect(one.value == [1] && other.value == [1, 2])
        #expect(one != other)
        expectEqual(Owner(value: [1]), one)
        #expect(Owner() != one)
    }

    @Test func `an absent value takes the size of a reference`() {
        expectEqual(MemoryLayout<BoxedOptional<(Int, Int, Int, Int)>>.size, MemoryLayout<AnyObject>.size)
    }
}
