/// The filter for text from outside: header fields, file names, interface names, URLs, certificate subjects, causes.
///
/// It covers control characters (C0, DEL and C1: U+009B begins an escape sequence as ESC [ does), format characters (bidirectional controls,
/// which show text in another order, joiners and tags) and line and paragraph separators.
package enum UnsafeCharacters {
    /// Whether a terminal could act on the character, or show it or its neighbors out of place.
    package static func contain(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7f }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
        default: false
        }
    }

    /// The character as JSON escapes it: `\u009b`, beyond U+FFFF as a surrogate pair (RFC 8259 section 7).
    package static func jsonEscape(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }
}
