/// A cookie in Netscape's format, as bytes: a value that is not UTF-8 returns to its server unchanged.
package struct CookieLine: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
    package init(_ text: String) { bytes = Array(text.utf8) }

    /// The line as text, in which invalid UTF-8 is replaced by U+FFFD.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}
