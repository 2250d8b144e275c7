/// The filter for external text: header fields, file names, interface names, URLs, certificate subjects, causes.
///
/// It covers control characters (C0, DEL and C1: U+009B begins an escape sequence like ESC [), format characters (bidirectional
/// controls, which reorder text, joiners and tags) and line and paragraph separators.
package enum UnsafeCharacters {
    /// Returns whether a terminal could interpret the character, or display it or its neighbors out of place.
    package static func contain(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7f }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
        default: false
        }
    }

    /// Returns the character's escape sequence in JSON: `\u009b`, beyond U+FFFF a surrogate pair (RFC 8259 section 7).
    package static func jsonEscape(_ scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }
}
