/// The bytes of a reply and the waits between them. What is large is made while it is sent.
public struct StubBody: Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    /// A part of a body.
    public enum Segment: Sendable {
        /// These bytes.
        case bytes([UInt8])
        /// One byte again and again.
        case repeating(UInt8, count: Int64)
        /// ``StubBody/patternByte(at:)`` of `from` and the `count - 1` positions after it.
        case pattern(from: Int64, count: Int64)
        /// Nothing, until the wait is over.
        case wait(StubResponse.Wait)

        /// The bytes it stands for.
        var count: Int64 {
            switch self {
            case .bytes(let bytes): Int64(bytes.count)
            case .repeating(_, let count), .pattern(_, let count): count
            case .wait: 0
            }
        }

        func bytes(at offset: Int64, count: Int) -> [UInt8] {
            switch self {
            case .bytes(let bytes): Array(bytes[Int(offset)..<Int(offset) + count])
            case .repeating(let byte, _): [UInt8](repeating: byte, count: count)
            case .pattern(let from, _): StubBody.patternBytes(from: from + offset, count: count)
            case .wait: []
            }
        }
    }

    /// The parts in their order.
    public var segments: [Segment]

    /// A body of parts.
    public init(_ segments: [Segment]) {
        self.segments = segments
    }

    /// The UTF-8 of a literal.
    public init(stringLiteral text: String) {
        segments = [.bytes(Array(text.utf8))]
    }

    /// No bytes.
    public static let empty = StubBody([])

    /// The UTF-8 of a text.
    public static func text(_ text: String) -> StubBody { StubBody([.bytes(Array(text.utf8))]) }

    /// These bytes.
    public static func bytes(_ bytes: some Sequence<UInt8>) -> StubBody { StubBody([.bytes(Array(bytes))]) }

    /// Zeros.
    public static func zeros(_ count: Int64) -> StubBody { StubBody([.repeating(0, count: count)]) }

    /// Bytes that tell where they belong: ``patternByte(at:)`` of 0 and the `count - 1` positions after it.
    public static func pattern(_ count: Int64) -> StubBody { StubBody([.pattern(from: 0, count: count)]) }

    /// Parts of text with the same wait before each but the first.
    public static func texts(_ texts: [String], between wait: StubResponse.Wait) -> StubBody {
        StubBody(Array(texts.map { [Segment.bytes(Array($0.utf8))] }.joined(separator: [.wait(wait)])))
    }

    /// The byte of ``pattern(_:)`` at a position: neighbors differ, and so do positions a power of two apart.
    public static func patternByte(at position: Int64) -> UInt8 {
        patternTable[patternStart(at: position)]
    }

    /// ``patternByte(at:)`` of `from` and the `count - 1` positions after it, in pieces of a table: byte by byte, a debug build would
    /// take longer to make a body than to send it.
    public static func patternBytes(from: Int64, count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count {
            let position = from + Int64(bytes.count)
            let start = patternStart(at: position)
            let run = min(count - bytes.count, 0x10000 - Int(position & 0xFFFF), 0x10000 - start)
            bytes.append(contentsOf: patternTable[start..<(start + run)])
        }
        return bytes
    }

    /// 64 KiB, in each of the body's blocks of that size turned a little further.
    private static let patternTable: [UInt8] = {
        var table = [UInt8](repeating: 0, count: 0x10000)
        var state: UInt64 = 0
        for index in table.indices {
            state &+= 0x9E37_79B9_7F4A_7C15
            table[index] = UInt8(truncatingIfNeeded: state >> 56)
        }
        return table
    }()

    private static func patternStart(at position: Int64) -> Int {
        Int(truncatingIfNeeded: (position &+ (position >> 16) &* 977) & 0xFFFF)
    }

    /// The bytes in all.
    public var count: Int64 { segments.reduce(0) { $0 + $1.count } }
}
