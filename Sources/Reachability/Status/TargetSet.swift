/// A set of numbers of targets: one bit for each number from its smallest to its largest one.
package struct TargetSet: Hashable, Sendable {
    /// The place of the first word among those of all numbers.
    private var start = 0
    // Numbers are never removed, so the first and the last word have a bit, and equal sets have equal words.
    private var words: [UInt64] = []
    package private(set) var count = 0

    package init() {}

    /// Creates a set. Negative numbers are ignored.
    package init(_ numbers: some Sequence<Int>) { for number in numbers { insert(number) } }

    package var isEmpty: Bool { count == 0 }

    /// Adds a number. A negative one is ignored.
    package mutating func insert(_ number: Int) {
        guard number >= 0 else { return }
        insert(1 << UInt64(number & 63), at: number >> 6)
    }

    /// Adds the numbers of a range, which costs a step for 64 of them. Negative ones are ignored.
    package mutating func insert(contentsOf range: Range<Int>) {
        let range = range.clamped(to: 0..<Int.max)
        guard !range.isEmpty else { return }
        let (first, last) = (range.lowerBound >> 6, (range.upperBound - 1) >> 6)
        for place in first...last {
            let lowest = place == first ? range.lowerBound & 63 : 0
            let highest = place == last ? (range.upperBound - 1) & 63 : 63
            insert((~0 >> UInt64(63 - highest + lowest)) << UInt64(lowest), at: place)
        }
    }

    /// Adds the bits of a word, at least one.
    private mutating func insert(_ bits: UInt64, at place: Int) {
        if words.isEmpty { start = place }
        if place < start {
            words.insert(contentsOf: repeatElement(0, count: start - place), at: 0)
            start = place
        }
        if place - start >= words.count { words += repeatElement(0, count: place - start + 1 - words.count) }
        count += (bits & ~words[place - start]).nonzeroBitCount
        words[place - start] |= bits
    }

    package mutating func formUnion(_ other: TargetSet) {
        for (index, word) in other.words.enumerated() where word != 0 { insert(word, at: other.start + index) }
    }

    package func contains(_ number: Int) -> Bool {
        let place = (number >> 6) - start
        return words.indices.contains(place) && words[place] & (1 << UInt64(number & 63)) != 0
    }

    /// The numbers in ascending order.
    package var numbers: some Sequence<Int> { ranges.lazy.joined() }

    /// The ranges of successive numbers in ascending order.
    package var ranges: [Range<Int>] {
        var ranges: [Range<Int>] = []
        for (index, word) in words.enumerated() {
            var remaining = word
            while remaining != 0 {
                let bit = remaining.trailingZeroBitCount
                let length = (~(remaining >> UInt64(bit))).trailingZeroBitCount
                let first = (start + index) << 6 + bit
                if let last = ranges.last, last.upperBound == first {
                    ranges[ranges.count - 1] = last.lowerBound..<first + length
                } else {
                    ranges.append(first..<first + length)
                }
                remaining &= bit + length >= 64 ? 0 : ~0 << UInt64(bit + length)
            }
        }
        return ranges
    }
}
