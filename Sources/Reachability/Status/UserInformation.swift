/// The user information of URLs (RFC 3986 section 3.2.1), which may contain a password. Messages, records and logs never show one.
package enum UserInformation {
    private static let mask = Array("***".utf8)

    /// Returns a URL or a target as the user wrote it, with `***` in place of the password.
    ///
    /// The password is everything between the first colon and the last `@` of the authority. In a URL, a user without a password is
    /// replaced too: it may be a token. The text may be malformed:
    ///
    /// - It may have no scheme, any number of slashes, no host, or several `@`.
    /// - `:` and `@` may be percent-encoded, once or twice, or fullwidth characters, which the preparation of names replaces.
    /// - The password may contain `/`, `?` or `#`, which end the authority. The remaining authority has no `@`, and no port. The
    ///   password then ends at the last `@` of the text.
    package static func withoutPassword(_ text: String) -> String {
        // Nearly no target has one of these, and a monitor may have 100,000 targets.
        guard text.utf8.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "%") || $0 == fullwidth }) else {
            return text
        }
        let bytes = Array(text.utf8)
        let start = startOfAuthority(bytes)
        guard let end = endOfUserInformation(in: bytes[start...], delimiters: "/?#") else { return text }
        let secret: ArraySlice<UInt8>
        if let colon = endOfFirstColon(in: bytes[start..<end]) {
            secret = bytes[colon..<end]
        } else if start > 0 {
            secret = bytes[start..<end]
        } else {
            return text
        }
        return String(decoding: bytes[..<secret.startIndex] + mask + bytes[secret.endIndex...], as: UTF8.self)
    }

    /// Returns a command of a shell, in whose words ``withoutPassword(_:)`` replaces the passwords.
    package static func withoutPasswords(inWordsOf command: String) -> String {
        command.split(omittingEmptySubsequences: false, whereSeparator: { $0 == " " }).map { withoutPassword(String($0)) }
            .joined(separator: " ")
    }

    /// Returns a reference whose user information is replaced by `***`.
    ///
    /// Browsers read an authority after any number of slashes and backslashes, also of none after a scheme
    /// (https://url.spec.whatwg.org), so a server may send such references. The user information ends as in ``withoutPassword(_:)``.
    static func hidden(in reference: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let slashes = Array("/\\".utf8)
        let text = String(decoding: reference.prefix(8), as: UTF8.self).lowercased()
        let scheme = ["http:", "https:"].first { text.hasPrefix($0) }
        let remainder = reference.dropFirst(scheme?.utf8.count ?? 0)
        var start = remainder.drop(while: slashes.contains).startIndex
        if scheme == nil, remainder.prefix(2).contains(where: { !slashes.contains($0) }) {
            guard let range = reference.firstRange(of: Array("//".utf8)) else { return reference }
            start = range.upperBound
        }
        guard let end = endOfUserInformation(in: reference[start...], delimiters: "/\\?#") else { return reference }
        return reference[..<start] + mask + reference[end...]
    }

    /// Finds the `@` behind the user information.
    ///
    /// - Parameters:
    ///   - bytes: the text from its authority on.
    ///   - delimiters: the characters that end an authority, and that a password may contain nevertheless.
    /// - Returns: The position; `nil` if there is no user information.
    private static func endOfUserInformation(in bytes: ArraySlice<UInt8>, delimiters: String) -> Int? {
        let authority = bytes.prefix { !delimiters.utf8.contains($0) }
        return lastSign(in: authority) ?? (hasPort(authority) ? nil : lastSign(in: bytes))
    }

    /// Returns the position behind the scheme and the slashes.
    private static func startOfAuthority(_ bytes: [UInt8]) -> Int {
        var start = 0
        if let separator = bytes.firstRange(of: Array(":/".utf8)),
            !bytes[..<separator.lowerBound].contains(where: { ":@".utf8.contains($0) })
        {
            start = separator.upperBound
        }
        while start < bytes.count, bytes[start] == UInt8(ascii: "/") { start += 1 }
        return start
    }

    /// Returns whether an authority without user information has a host alone, or a host and the number of a port.
    private static func hasPort(_ authority: ArraySlice<UInt8>) -> Bool {
        let remainder = withoutBrackets(authority)
        guard let colon = endOfFirstColon(in: remainder) else { return true }
        return UInt16(Substring(decoding: remainder[colon...], as: UTF8.self)) != nil
    }

    /// Returns the bytes behind an IPv6 address in brackets, which has colons, and may have the interface 40 as its zone.
    private static func withoutBrackets(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard bytes.first == UInt8(ascii: "["), let close = bytes.firstIndex(of: UInt8(ascii: "]")) else { return bytes }
        return bytes[(close + 1)...]
    }

    /// The first byte of the fullwidth forms of `@` and `:` in UTF-8.
    private static let fullwidth: UInt8 = 0xEF
    private static let signs = ["@", "%40", "%2540", "\u{FF20}"].map { Array($0.utf8) }
    private static let colons = [":", "%3A", "%3a", "%253A", "%253a", "\u{FF1A}"].map { Array($0.utf8) }

    /// Returns the position of the last `@` in one of its forms.
    private static func lastSign(in bytes: ArraySlice<UInt8>) -> Int? {
        let behind = withoutBrackets(bytes).startIndex
        return bytes.indices.last { index in
            bytes[index] == UInt8(ascii: "@") || index >= behind && signs.contains { bytes[index...].starts(with: $0) }
        }
    }

    /// Returns the position behind the first `:` in one of its forms.
    private static func endOfFirstColon(in bytes: ArraySlice<UInt8>) -> Int? {
        for index in bytes.indices {
            if let colon = colons.first(where: { bytes[index...].starts(with: $0) }) { return index + colon.count }
        }
        return nil
    }
}
