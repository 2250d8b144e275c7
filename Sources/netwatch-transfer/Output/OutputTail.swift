/// The last bytes of a job's output, as text.
struct OutputTail: Hashable, Sendable {
    /// The number of bytes that a service keeps.
    static let limit = 10 << 10

    /// The last bytes, at most twice the limit: so each byte is moved once at most.
    private var bytes: [UInt8] = []
    /// Whether earlier bytes were dropped.
    private var isCut = false

    mutating func append(_ new: some Collection<UInt8>) {
        let kept = new.suffix(Self.limit)
        isCut = isCut || kept.count < new.count
        bytes += kept
        if bytes.count > 2 * Self.limit { dropFirst() }
    }

    private mutating func dropFirst() {
        bytes.removeFirst(bytes.count - Self.limit)
        isCut = true
    }

    /// Returns the end of the output as UTF-8 of at most ``limit`` bytes. Invalid bytes are U+FFFD. `note` is a line that follows it.
    func text(note: String = "") -> String {
        var end = bytes.suffix(Self.limit)
        if isCut || end.count < bytes.count {
            // The first character may have lost its first bytes.
            for _ in 0..<3 { if let byte = end.first, byte & 0xC0 == 0x80 { end.removeFirst() } }
        }
        var text = String(decoding: end, as: UTF8.self)
        if !note.isEmpty {
            if let last = text.utf8.last, last != UInt8(ascii: "\n") { text += "\n" }
            text += note + "\n"
        }
        return Self.limited(text)
    }

    /// Returns the end of a text: at most ``limit`` bytes, beginning with a complete scalar.
    static func limited(_ text: String) -> String {
        guard text.utf8.count > limit else { return text }
        let utf8 = text.utf8
        var start = utf8.index(utf8.endIndex, offsetBy: -limit)
        while start < utf8.endIndex, utf8[start] & 0xC0 == 0x80 { start = utf8.index(after: start) }
        return String(text.unicodeScalars[start...])
    }
}
