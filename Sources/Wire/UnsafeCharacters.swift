/// The filter for external text that people read: header fields, file names, interface names, URLs, certificate subjects, causes, keys of JSON.
///
/// It covers control characters (C0, DEL and C1: U+009B begins an escape sequence like ESC [), format characters (bidirectional
/// controls, which reorder text, joiners and tags) and line and paragraph separators.
package enum UnsafeCharacters {
    /// Returns whether a terminal could interpret the character, or display it or its neighbors out of place.
    @inlinable package static func contain(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7f }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
        default: false
        }
    }
}
