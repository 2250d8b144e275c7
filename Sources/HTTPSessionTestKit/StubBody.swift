/// The body of a response: bytes, and waits between them. Large bodies are made while they are sent.
public struct StubBody: Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    /// A part of a body.
    @nonexhaustive public enum Segment: Sendable {
        /// Given bytes.
        case bytes([UInt8])
        /// One byte, repeated.
        case repeating(UInt8, count: Int64)
        /// ``StubBody/patternByte(at:)`` of `from` and the `count - 1` positions after it.
        case pattern(from: Int64, count: Int64)
        /// A wait without bytes.
        case wait(StubResponse.Wait)

        /// The number of bytes.
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

    /// The parts of the body, in their order.
    public var segments: [Segment]

    /// Creates a body from its parts.
    public init(_ segments: [Segment]) {
        self.segments = segments
    }

    /// Creates a body from the UTF-8 bytes of a literal.
    public init(stringLiteral text: String) {
        segments = [.bytes(Array(text.utf8))]
    }

    /// The empty body.
    public static let empty = StubBody([])

    /// Returns a body of the UTF-8 bytes of a text.
    public static func text(_ text: String) -> StubBody { StubBody([.bytes(Array(text.utf8))]) }

    /// Given bytes.
    public static func bytes(_ bytes: some Sequence<UInt8>) -> StubBody { StubBody([.bytes(Array(bytes))]) }

    /// Returns a body of this number of zero bytes.
    public static func zeros(_ count: Int64) -> StubBody { StubBody([.repeating(0, count: count)]) }

    /// Returns a body whose bytes identify their positions: ``patternByte(at:)`` of 0 and the `count - 1` positions after it.
    public static func pattern(_ count: Int64) -> StubBody { StubBody([.pattern(from: 0, count: count)]) }

    /// Returns a body of texts with the same wait between them.
    public static func texts(_ texts: [String], between wait: StubResponse.Wait) -> StubBody {
        StubBody(Array(texts.map { [Segment.bytes(Array($0.utf8))] }.joined(separator: [.wait(wait)])))
    }

    /// Returns the byte of ``pattern(_:)`` at a position. Adjacent bytes differ, and so do bytes whose distance is a power of
    /// two.
    public static func patternByte(at position: Int64) -> UInt8 {
        patternTable[patternStart(at: position)]
    }

    /// Returns the bytes of ``pattern(_:)`` at `from` and the `count - 1` positions after it. They are copied from a table. Otherwise a
    /// debug build would need more time to make a body than to send it.
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

    /// A table of 64 KiB, which each block of the body rotates a little further.
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

    /// The number of bytes of the body.
    public var count: Int64 { segments.reduce(0) { $0 + $1.count } }
}
