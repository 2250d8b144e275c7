import Reachability

/// The numbers of targets in the history, in two bytes or more for each range.
///
/// Each range is the distance from the end of the one before it, and its length, as LEB128 numbers. All of 10,000 targets are three
/// bytes; 5,000 numbers of which no two follow each other are 10 kB.
extension TargetSet {
    /// The encoded set.
    var bytes: [UInt8] {
        var writer = VarintWriter()
        var end = 0
        for range in ranges {
            writer.append(UInt64(range.lowerBound - end))
            writer.append(UInt64(range.count))
            end = range.upperBound
        }
        return writer.bytes
    }

    /// Decodes a set; `nil` if the bytes are those of none.
    init?(bytes: [UInt8]) {
        self.init()
        var reader = VarintReader(bytes[...])
        var end = 0
        while !reader.isAtEnd {
            let limit = UInt64(TurnCoder.targetLimit - end)
            guard let distance = reader.next(), distance < limit, let length = reader.next(), length > 0,
                length <= limit - distance
            else { return nil }
            let start = end + Int(distance)
            end = start + Int(length)
            insert(contentsOf: start..<end)
        }
    }
}
