/// The bytes that need no escape sequence in JSON: printable ASCII but `"` and `\`.
enum PlainText {
    /// Whether all bytes are plain. Eight are compared at a time, because a document may have 30 MB of text.
    static func isPlain(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index + 8 <= bytes.count {
            guard isPlain(bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) else { return false }
            index += 8
        }
        while index < bytes.count {
            guard isPlain(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        0x20..<0x7f ~= byte && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highestBits: UInt64 = 0x8080_8080_8080_8080

    /// Whether all eight bytes are plain. A subtraction sets the highest bit of a byte that is less than what is subtracted; a byte above 0x7F has
    /// this bit already ("Bit Twiddling Hacks" by S. E. Anderson: "Determine if a word has a byte less than n").
    private static func isPlain(_ word: UInt64) -> Bool {
        let control = (word &- ones &* 0x20) & ~word
        return
            (word | control | zeros(of: word ^ (ones &* 0x22)) | zeros(of: word ^ (ones &* 0x5C))
            | zeros(of: word ^ (ones &* 0x7F)))
            & highestBits == 0
    }

    /// A word with the highest bit of some byte set exactly if some byte is 0.
    private static func zeros(of word: UInt64) -> UInt64 { (word &- ones) & ~word & highestBits }
}
