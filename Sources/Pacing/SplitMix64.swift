/// A small random number generator with a seed, so that a run can be repeated (Steele, Lea, Flood: "Fast splittable pseudorandom
/// number generators", 2014). It is not suitable for secrets.
package struct SplitMix64: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    /// Creates a generator whose numbers depend on `seed` alone.
    package init(seed: UInt64) { state = seed }

    /// Returns the next 64 bits.
    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
