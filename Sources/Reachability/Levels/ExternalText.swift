/// The conversion of a server's bytes into text for sentences and evidence.
enum ExternalText {
    /// The most characters of an excerpt.
    static let excerptLength = 64
    /// The most characters of a field's value or of a URL.
    static let valueLength = 256

    /// Returns UTF-8 bytes as text of at most `length` characters. Control characters and invalid bytes become U+FFFD.
    static func shortened(_ bytes: some Collection<UInt8>, to length: Int = valueLength) -> String {
        // A character of a cut sequence at the end becomes U+FFFD, and is removed with the excess.
        let text = String(decoding: bytes.prefix(length * 4 + 4), as: UTF8.self)
        var shown = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            guard count < length else { return String(shown) + "…" }
            shown.append(isUnsafe(scalar) ? "\u{FFFD}" : scalar)
            count += 1
        }
        return String(shown)
    }

    /// Returns text of at most `length` characters, without control characters.
    static func shortened(_ text: String, to length: Int = valueLength) -> String { shortened(text.utf8, to: length) }

    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
