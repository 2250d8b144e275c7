import Console
import Wire

/// A piece of HTML or SVG, in which text from outside is escaped by construction.
///
/// A piece is written as a literal with interpolations: `"<td>\(name)</td>"`. The type of the literal parts is `StaticString`, so only
/// the text of this program can be markup. An interpolated `String` is always escaped. Values of attributes stand in double quotes;
/// the value of `href`, `src` or `action` must be a ``PageAddress``.
struct Markup: ExpressibleByStringInterpolation {
    /// The text in UTF-8.
    fileprivate(set) var bytes: [UInt8]

    /// Creates an empty piece.
    init() { bytes = [] }

    init(stringLiteral value: StaticString) { bytes = Array(value.utf8Start, count: value.utf8CodeUnitCount) }

    init(stringInterpolation: StringInterpolation) { bytes = stringInterpolation.bytes }

    static func += (piece: inout Self, other: Self) { piece.bytes += other.bytes }

    /// The literal and the interpolated parts of a piece.
    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var bytes: [UInt8] = []

        init(literalCapacity: Int, interpolationCount: Int) {
            bytes.reserveCapacity(literalCapacity + interpolationCount * 16)
        }

        mutating func appendLiteral(_ literal: StaticString) {
            bytes.append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
        }

        /// Appends text, escaped.
        mutating func appendInterpolation(_ text: String) {
            Self.check(bytes)
            MarkupText.append(text, to: &bytes)
        }

        /// Appends a number.
        mutating func appendInterpolation(_ number: some BinaryInteger) { bytes.append(contentsOf: String(number).utf8) }

        /// Appends text of this program, as it is.
        mutating func appendInterpolation(_ literal: StaticString) { appendLiteral(literal) }

        /// Appends a piece.
        mutating func appendInterpolation(_ piece: Markup) { bytes.append(contentsOf: piece.bytes) }

        /// Appends an address, as the value of `href`, `src` or `action`.
        mutating func appendInterpolation(_ address: PageAddress) { MarkupText.append(address.text, to: &bytes) }

        /// Stops at a template of this program that would put text into an unquoted attribute or into an address. It depends on the
        /// template alone, never on the text.
        private static func check(_ bytes: [UInt8]) {
            func ends(with text: StaticString) -> Bool {
                bytes.suffix(text.utf8CodeUnitCount).elementsEqual(
                    UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
            }
            let isUnquoted = bytes.last == UInt8(ascii: "=")
            guard isUnquoted || ends(with: "href=\"") || ends(with: "src=\"") || ends(with: "action=\"") else { return }
            preconditionFailure(
                "text stands where only an address or quoted text may: \(String(decoding: bytes.suffix(40), as: UTF8.self))")
        }
    }
}

/// The escaping of text for HTML and XML.
enum MarkupText {
    /// Appends text with character references for the five special characters. Characters that a browser could interpret or that
    /// reorder the text become U+FFFD, and so do those that XML does not allow.
    static func append(_ text: String, to bytes: inout [UInt8]) {
        var text = text
        let isComplete = text.withUTF8 { utf8 in
            guard utf8.allSatisfy({ isPlain($0) }) else { return false }
            bytes.append(contentsOf: utf8)
            return true
        }
        guard !isComplete else { return }
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": bytes.append(contentsOf: "&amp;".utf8)
            case "<": bytes.append(contentsOf: "&lt;".utf8)
            case ">": bytes.append(contentsOf: "&gt;".utf8)
            case "\"": bytes.append(contentsOf: "&quot;".utf8)
            case "'": bytes.append(contentsOf: "&#39;".utf8)
            // The lines of a document in `pre`.
            case "\n": bytes.append(UInt8(ascii: "\n"))
            case _ where isUnsafe(scalar): bytes.append(contentsOf: UTF8.encodedReplacementCharacter)
            default: bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "&"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""), UInt8(ascii: "'"): false
        default: 0x20..<0x7f ~= byte
        }
    }

    /// Returns whether a browser or another program shows the character as it is.
    static func isHarmless(_ scalar: Unicode.Scalar) -> Bool { !isUnsafe(scalar) }

    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        // Each plane ends with two characters that are none.
        UnsafeCharacters.contain(scalar) || scalar.value & 0xfffe == 0xfffe
    }

    /// Returns at most `limit` characters of a text, with an ellipsis for the others.
    static func shortened(_ text: String, to limit: Int) -> String {
        guard text.utf8.count > limit, text.unicodeScalars.count > limit else { return text }
        return String(String.UnicodeScalarView(text.unicodeScalars.prefix(max(0, limit - 1)))) + "…"
    }
}

extension [UInt8] {
    fileprivate init(_ start: UnsafePointer<UInt8>, count: Int) { self.init(UnsafeBufferPointer(start: start, count: count)) }
}
