/// The last check of the text that becomes a request's head (RFC 9110 sections 5.5 and 9.1, RFC 9112 section 3).
///
/// Every attempt is checked before libcurl receives it, because libcurl copies lines unchanged. The text may come from a caller, an interceptor, a
/// server's `ETag` or `Location`, or a file such as a download's sidecar.
extension TransferPlan {
    /// Throws ``HTTPSessionError/Code/invalidRequest`` if the request line or a field contains a forbidden byte. The error names the
    /// field, never its value.
    package func checkHead() throws(HTTPSessionError) {
        guard TransferPlan.isToken(method.utf8[...]) else { throw refusal("the method is not a token") }
        var address = url
        guard address.withUTF8({ $0.allSatisfy { $0 > 0x20 && $0 != 0x7F } }) else {
            throw refusal("the URL contains a space or a control character")
        }
        for line in headerLines { try check(line) }
        for line in proxyHeaderLines { try check(line) }
        for line in latin1Lines + proxyLatin1Lines { try check(line) }
        guard !cookies.hasControlCharacter else { throw refusal("the value of Cookie contains a control character") }
        for text in [login?.user, login?.password, proxyLogin?.user, proxyLogin?.password] {
            guard text?.hasControlCharacter != true else { throw refusal("the credential contains a control character") }
        }
    }

    /// `Name: value`, `Name;` for an empty value, or `Name:` for a field that libcurl leaves out.
    private func check(_ line: String) throws(HTTPSessionError) {
        let bytes = line.utf8
        guard let end = bytes.firstIndex(where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ";") }),
            TransferPlan.isToken(bytes[..<end])
        else { throw refusal("a header line has no field name") }
        // A tab is whitespace in a value (RFC 9110 section 5.5).
        guard bytes[end...].allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else {
            throw refusal("the value of \(line[..<end]) contains a line break, NUL or another control character")
        }
        // libcurl ignores text after `;`, and the session writes no such line.
        guard bytes[end] == UInt8(ascii: ":") || bytes.index(after: end) == bytes.endIndex else {
            throw refusal("a header line has no field name")
        }
    }

    private static func isToken(_ bytes: Substring.UTF8View) -> Bool {
        !bytes.isEmpty
            && bytes.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
                default: false
                }
            }
    }

    private func refusal(_ reason: String) -> HTTPSessionError { HTTPSessionError(.invalidRequest, reason) }
}
