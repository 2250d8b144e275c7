/// The distribution of round trips or response times, with an error of at most 5 %. Two distributions can be added, as two hours to a day.
///
/// A bucket is wider than the one before by the eighth root of 2 (9 %). Only buckets with values need memory.
struct RoundTripHistogram: Hashable, Sendable {
    private struct Bucket: Hashable, Sendable {
        var index: UInt8
        var count: UInt32
    }

    // In the order of their indexes.
    private var buckets: [Bucket] = []
    /// The lowest value in units of a ``Sample``; `nil` without values.
    private(set) var minimum: UInt32?
    /// The highest value in units of a ``Sample``; `nil` without values.
    private(set) var maximum: UInt32?

    /// The number of values.
    var count: Int { buckets.reduce(0) { $0 + Int($1.count) } }

    /// Creates a distribution without values.
    init() {}

    mutating func add(_ value: UInt32) {
        minimum = min(minimum ?? value, value)
        maximum = max(maximum ?? value, value)
        add(Bucket(index: Self.index(of: value), count: 1))
    }

    mutating func add(_ other: Self) {
        guard let least = other.minimum, let greatest = other.maximum else { return }
        minimum = min(minimum ?? least, least)
        maximum = max(maximum ?? greatest, greatest)
        for bucket in other.buckets { add(bucket) }
    }

    private mutating func add(_ bucket: Bucket) {
        let place = buckets.firstIndex { $0.index >= bucket.index } ?? buckets.endIndex
        if place < buckets.endIndex, buckets[place].index == bucket.index {
            buckets[place].count = UInt32(clamping: UInt64(buckets[place].count) + UInt64(bucket.count))
        } else {
            buckets.insert(bucket, at: place)
        }
    }

    /// Returns the value that this part of the values do not exceed; `nil` without values. - Parameter part: from 0 to 1.
    func quantile(_ part: Double) -> UInt32? {
        guard let minimum, let maximum else { return nil }
        let rank = max(1, (part * Double(count)).rounded(.up))
        var passed = 0.0
        for bucket in buckets {
            passed += Double(bucket.count)
            guard passed >= rank else { continue }
            return min(max(Self.middle(of: bucket.index), minimum), maximum)
        }
        return maximum
    }

    // Values of 32 bits need 32 octaves of 8 buckets: the index fits.
    private static func index(of value: UInt32) -> UInt8 {
        let octave = UInt32(31 - max(value, 1).leadingZeroBitCount)
        let fraction = Double(max(value, 1)) / Double(UInt32(1) << octave)
        let step = logarithm(fraction)
        return UInt8(clamping: Int(octave) * 8 + min(step, 7))
    }

    /// The eighth of an octave in which a fraction from 1 to 2 is.
    private static func logarithm(_ fraction: Double) -> Int { (edges.lastIndex { fraction >= $0 } ?? 0) }

    /// The lower edges of the buckets of an octave: powers of the eighth root of 2.
    private static let edges: [Double] = {
        let root = 2.0.squareRoot().squareRoot().squareRoot()
        return (0..<8).reduce(into: [1.0]) { edges, index in if index > 0 { edges.append(edges[index - 1] * root) } }
    }()

    /// The geometric middle of a bucket.
    private static func middle(of index: UInt8) -> UInt32 {
        let (octave, step) = (index / 8, Int(index % 8))
        let lower = edges[step] * Double(UInt64(1) << UInt64(octave))
        let upper = (step == 7 ? 2.0 : edges[step + 1]) * Double(UInt64(1) << UInt64(octave))
        return UInt32(min((lower * upper).squareRoot().rounded(), Double(UInt32.max)))
    }

    // MARK: Encoding

    /// The encoded distribution: the number of its buckets; the minimum and maximum, if it has values; each bucket's distance from the
    /// one before, and its count. All are LEB128 numbers.
    func append(to writer: inout VarintWriter) {
        writer.append(UInt64(buckets.count))
        guard let minimum, let maximum else { return }
        writer.append(UInt64(minimum))
        writer.append(UInt64(maximum))
        var previous: UInt8 = 0
        for bucket in buckets {
            writer.append(UInt64(bucket.index - previous))
            writer.append(UInt64(bucket.count))
            previous = bucket.index
        }
    }

    /// Reads an encoded distribution; `nil` if the bytes are those of none.
    init?(_ reader: inout VarintReader) {
        guard let count = reader.next(), count <= 256 else { return nil }
        guard count > 0 else { return }
        guard let least = reader.next(), let greatest = reader.next(), least <= greatest else { return nil }
        guard let least = UInt32(exactly: least), let greatest = UInt32(exactly: greatest) else { return nil }
        var previous = 0
        for place in 0..<count {
            guard let distance = reader.next(), distance <= 255, distance > 0 || place == 0, let number = reader.next(),
                let number = UInt32(exactly: number), number > 0, let index = UInt8(exactly: previous + Int(distance))
            else { return nil }
            buckets.append(Bucket(index: index, count: number))
            previous = Int(index)
        }
        (minimum, maximum) = (least, greatest)
    }
}
