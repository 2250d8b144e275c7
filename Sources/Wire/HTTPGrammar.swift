/// The characters of HTTP's grammar (RFC 9110 sections 5.5 and 5.6).
package enum HTTPGrammar {
    @inlinable package static var horizontalTab: UInt8 { 0x09 }
    @inlinable package static var lineFeed: UInt8 { 0x0A }
    @inlinable package static var carriageReturn: UInt8 { 0x0D }
    @inlinable package static var space: UInt8 { 0x20 }

    /// Returns whether the text is a token (RFC 9110 section 5.6.2).
    ///
    /// The bytes are read as one buffer: a caller that does not specialize this function would pay a dynamic call for each byte.
    @inlinable package static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.withContiguousStorageIfAvailable { !$0.isEmpty && $0.allSatisfy(isTokenByte) }
            ?? (!bytes.isEmpty && bytes.allSatisfy(isTokenByte))
    }

    @inlinable package static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        // !  # $ % & '  *  +  -  .  ^ _ `  |  ~
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
        default: false
        }
    }

    /// Returns whether a field's value may have the byte: tab, space, visible characters and bytes above 0x7F (RFC 9110 section 5.5).
    @inlinable package static func isValueByte(_ byte: UInt8) -> Bool {
        byte == horizontalTab || byte >= space && byte != 0x7F
    }

    @inlinable package static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    /// Returns the value of a hexadecimal digit.
    @inlinable package static func hexadecimalValue(_ byte: UInt8) -> Int? {
        switch byte {
        case 0x30...0x39: Int(byte) - 0x30
        case 0x41...0x46: Int(byte) - 0x41 + 10
        case 0x61...0x66: Int(byte) - 0x61 + 10
        default: nil
        }
    }

    @inlinable package static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == horizontalTab }

    /// Returns the bytes without optional whitespace at both ends (RFC 9110 section 5.6.3).
    @inlinable package static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes.drop(while: isBlank)
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        return bytes
    }

    /// Returns whether both are the same name, in upper or lower case. `name` is in lower case.
    @inlinable package static func isName(_ bytes: ArraySlice<UInt8>, _ name: String) -> Bool {
        bytes.count == name.utf8.count && zip(bytes, name.utf8).allSatisfy { lowercase($0) == $1 }
    }

    @inlinable package static func lowercase(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}

extension String {
    /// Whether the text has a control character: CR and LF would end a line early, NUL a C string.
    @inlinable package var hasControlCharacter: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7F } }
}
