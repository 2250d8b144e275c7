/// The user information of URLs (RFC 3986 section 3.2.1), which may contain a password. Messages, records and logs never show one.
package enum UserInformation {
    private static let mask = Array("***".utf8)

    /// Returns a URL or a target as the user wrote it, with `***` in place of the password.
    ///
    /// The password is everything between the first colon and the last `@` of the authority. In a URL, a user without a password is
    /// replaced too: it may be a token. The text may be malformed:
    ///
    /// - It may have no scheme, any number of slashes, no host, or several `@`.
    /// - `:` and `@` may be percent-encoded.
    /// - The password may contain `/`, `?` or `#`, which end the authority. The remaining authority has no `@`, and no port. The
    ///   password then ends at the last `@` of the text.
    package static func withoutPassword(_ text: String) -> String {
        // Nearly no target has one of these, and a monitor may have 100,000 targets.
        guard text.utf8.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "%") }) else { return text }
        let bytes = Array(text.utf8)
        let start = startOfAuthority(bytes)
        let authority = bytes[start...].prefix { !"/?#".utf8.contains($0) }
        guard let end = lastSign(in: authority) ?? (hasPort(authority) ? nil : lastSign(in: bytes[start...])) else { return text }
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
    /// (https://url.spec.whatwg.org), so a server may send such references.
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
        let authority = reference[start...].prefix { !Array("/\\?#".utf8).contains($0) }
        guard let end = authority.lastIndex(of: UInt8(ascii: "@")) else { return reference }
        return reference[..<authority.startIndex] + mask + reference[end...]
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

    /// Returns the last `@`, or the last `%40`.
    private static func lastSign(in bytes: ArraySlice<UInt8>) -> Int? {
        let behind = withoutBrackets(bytes).startIndex
        return bytes.indices.last { index in
            bytes[index] == UInt8(ascii: "@") || index >= behind && bytes[index...].starts(with: "%40".utf8)
        }
    }

    /// Returns the position behind the first `:`, or behind the first `%3A`.
    private static func endOfFirstColon(in bytes: ArraySlice<UInt8>) -> Int? {
        for index in bytes.indices {
            if bytes[index] == UInt8(ascii: ":") { return index + 1 }
            if bytes[index...].starts(with: "%3A".utf8) || bytes[index...].starts(with: "%3a".utf8) { return index + 3 }
        }
        return nil
    }
}
