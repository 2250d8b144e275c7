import FoundationEssentials
import Wire

/// A writer of JSON (RFC 8259) that keeps the order of the keys.
///
/// `JSONEncoder` guarantees no order of keys, and people compare records as text.
package struct JSONWriter {
    /// The written JSON in UTF-8, since the last ``takeBytes()``.
    package private(set) var bytes: [UInt8] = []
    private let isIndented: Bool
    private var depth = 0
    private var needsComma = false
    private var followsKey = false

    /// Creates a writer of one line, or of an indented document, with memory for `capacity` bytes.
    package init(isIndented: Bool = false, capacity: Int = 0) {
        self.isIndented = isIndented
        bytes.reserveCapacity(capacity)
    }

    /// Removes and returns ``bytes``, for a document that is written in pieces.
    package mutating func takeBytes() -> [UInt8] {
        defer { bytes.removeAll(keepingCapacity: true) }
        return bytes
    }

    package mutating func object(_ members: (inout JSONWriter) -> Void) {
        nest(open: UInt8(ascii: "{"), close: UInt8(ascii: "}"), members)
    }

    package mutating func array(_ elements: (inout JSONWriter) -> Void) {
        nest(open: UInt8(ascii: "["), close: UInt8(ascii: "]"), elements)
    }

    /// Writes a key of printable ASCII without `"` and `\`.
    package mutating func key(_ name: StaticString) {
        assert(name.withUTF8Buffer { PlainText.isPlain(UnsafeRawBufferPointer($0)) })
        separate()
        bytes.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
        endKey()
    }

    package mutating func key(text name: String) {
        separate()
        quote(name)
        endKey()
    }

    private mutating func endKey() {
        bytes.append(UInt8(ascii: ":"))
        if isIndented { bytes.append(UInt8(ascii: " ")) }
        followsKey = true
    }

    package mutating func value(_ text: String?) {
        guard let text else { return null() }
        separate()
        quote(text)
        needsComma = true
    }

    package mutating func value(_ number: (some BinaryInteger)?) {
        guard let number else { return null() }
        guard let exact = Int(exactly: number) else { return literal(String(number)) }
        value(exact)
    }

    // A call of the generic function from another module costs several times as much.
    package mutating func value(_ number: Int?) {
        guard let number else { return null() }
        separate()
        // The sign and the digits of the smallest number.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var (first, remaining) = (digits.count, number.magnitude)
            repeat {
                first -= 1
                digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: remaining % 10)
                remaining /= 10
            } while remaining > 0
            if number < 0 {
                first -= 1
                digits[first] = UInt8(ascii: "-")
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[first...]))
        }
        needsComma = true
    }

    package mutating func value(_ flag: Bool?) {
        literal(flag.map { $0 ? "true" : "false" } ?? "null")
    }

    package mutating func null() {
        literal("null")
    }

    /// Writes a value that is JSON already.
    package mutating func json(_ text: String) { literal(text) }

    /// Writes a number with at most six decimals; null for `nil` and numbers that JSON does not have.
    package mutating func value(decimal number: Double?) {
        guard let number, number.isFinite, abs(number) < 1e12 else { return null() }
        let millionths = Int64((number * 1e6).rounded())
        let (whole, part) = millionths.magnitude.quotientAndRemainder(dividingBy: 1_000_000)
        var decimals = String(1_000_000 + part).dropFirst()
        while decimals.last == "0" { decimals.removeLast() }
        literal("\(millionths < 0 ? "-" : "")\(whole)\(decimals.isEmpty ? "" : ".\(decimals)")")
    }

    /// Writes a duration as a number of milliseconds with at most three decimals.
    package mutating func milliseconds(_ duration: Duration?) {
        literal(duration.map(Milliseconds.text) ?? "null")
    }

    /// Writes a number of thousandths as a number with at most three decimals: `0`, `0.25`, `1`.
    package mutating func value(thousandths number: Int?) {
        // Milliseconds have the same form.
        milliseconds(number.map { .microseconds($0) })
    }

    private mutating func literal(_ text: String) {
        separate()
        bytes.append(contentsOf: text.utf8)
        needsComma = true
    }

    private mutating func nest(open: UInt8, close: UInt8, _ body: (inout JSONWriter) -> Void) {
        begin(open)
        body(&self)
        end(close)
    }

    /// Begins an object whose members are written in pieces. ``endObject()`` ends it.
    package mutating func beginObject() { begin(UInt8(ascii: "{")) }

    package mutating func endObject() { end(UInt8(ascii: "}")) }

    /// Begins an array whose elements are written in pieces. ``endArray()`` ends it.
    package mutating func beginArray() { begin(UInt8(ascii: "[")) }

    package mutating func endArray() { end(UInt8(ascii: "]")) }

    private mutating func begin(_ open: UInt8) {
        separate()
        bytes.append(open)
        depth += 1
        needsComma = false
    }

    private mutating func end(_ close: UInt8) {
        depth -= 1
        if needsComma { breakLine() }
        bytes.append(close)
        needsComma = true
    }

    private mutating func separate() {
        if followsKey {
            followsKey = false
            needsComma = false
            return
        }
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        if depth > 0 { breakLine() }
        needsComma = false
    }

    private mutating func breakLine() {
        guard isIndented else { return }
        bytes.append(UInt8(ascii: "\n"))
        bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: depth * 2))
    }

    private mutating func quote(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        defer { bytes.append(UInt8(ascii: "\"")) }
        // Nearly all texts need no escape sequence.
        var text = text
        let isComplete = text.withUTF8 { utf8 in
            guard PlainText.isPlain(UnsafeRawBufferPointer(utf8)) else { return false }
            bytes.append(contentsOf: utf8)
            return true
        }
        guard !isComplete else { return }
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(truncatingIfNeeded: scalar.value)])
            case "\n": bytes.append(contentsOf: "\\n".utf8)
            case "\r": bytes.append(contentsOf: "\\r".utf8)
            case "\t": bytes.append(contentsOf: "\\t".utf8)
            // JSON requires this only for C0 controls, but people also read JSON on terminals.
            case _ where UnsafeCharacters.contain(scalar): bytes.append(contentsOf: Self.escape(scalar).utf8)
            default: bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
    }

    /// Returns the character's escape sequence: `\u009b`, beyond U+FFFF a surrogate pair (RFC 8259 section 7).
    private static func escape(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }
}

extension JSONWriter {
    package mutating func member(_ name: StaticString, _ text: String?) {
        key(name)
        value(text)
    }

    package mutating func member(_ name: StaticString, _ number: (some BinaryInteger)?) {
        key(name)
        value(number)
    }

    package mutating func member(_ name: StaticString, _ number: Int?) {
        key(name)
        value(number)
    }

    package mutating func member(_ name: StaticString, _ flag: Bool?) {
        key(name)
        value(flag)
    }

    package mutating func member(_ name: StaticString, _ texts: [String]) {
        key(name)
        array { writer in
            for text in texts { writer.value(text) }
        }
    }

    package mutating func member(_ name: StaticString, thousandths number: Int?) {
        key(name)
        value(thousandths: number)
    }

    package mutating func member(_ name: StaticString, milliseconds duration: Duration?) {
        key(name)
        self.milliseconds(duration)
    }
}
