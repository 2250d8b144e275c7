import Pacing
import Testing

@Suite struct FloorDivisionTests {
    @Test(arguments: [(7, 3, 2, 1), (-7, 3, -3, 2), (-6, 3, -2, 0), (0, 3, 0, 0), (-1, 3, -1, 2)])
    func `the quotient is rounded down, and the remainder is not negative`(
        number: Int, divisor: Int, quotient: Int, remainder: Int
    ) {
        #expect(number.floorDivided(by: divisor) == (quotient, remainder))
    }

    @Test func `the extreme numbers do not overflow`() {
        #expect(Int64.min.floorDivided(by: 1) == (.min, 0))
        #expect(Int64.max.floorDivided(by: .max) == (1, 0))
    }
}
