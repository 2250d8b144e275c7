internal import FoundationEssentials

/// A cookie in Netscape's format, byte for byte: what is no UTF-8 goes back to its server as it came.
package struct CookieLine: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
    package init(_ text: String) { bytes = Array(text.utf8) }

    /// To be read: repaired where it is no UTF-8.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// A cookie jar in Netscape's format, a line a cookie.
enum CookieFile {
    /// Nothing where there is no file: the first session finds none.
    static func read(_ url: URL) throws(HTTPSessionError) -> [CookieLine] {
        guard FileManager.default.fileExists(atPath: url.path) else { return [] }
        if let reason = OwnFile.objection(at: url.path) {
            throw HTTPSessionError(.invalidConfiguration, "the cookie file '\(url.path)' is not used: \(reason)")
        }
        let data: Data
        do { data = try Data(contentsOf: url) } catch {
            throw HTTPSessionError(.invalidConfiguration, "the cookie file '\(url.path)' cannot be read", underlying: error)
        }
        return data.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }).map { CookieLine([UInt8]($0)) }.filter { line in
            // `#HttpOnly_` begins a cookie, any other `#` a comment; a cookie has seven columns, and ends at no NUL.
            (line.bytes.first != UInt8(ascii: "#") || line.bytes.starts(with: "#HttpOnly_".utf8))
                && line.bytes.count { $0 == 0x09 } >= 6 && !line.bytes.contains(0)
        }
    }

    /// In one step, readable by its owner only.
    static func write(_ lines: [CookieLine], to url: URL) throws(HTTPSessionError) {
        if let reason = OwnFile.objection(at: url.path) {
            throw HTTPSessionError(.cannotWriteFile, "the cookie file '\(url.path)' is not used: \(reason)")
        }
        var data = Data("# Netscape HTTP Cookie File\n".utf8)
        for line in lines { data += line.bytes + [0x0A] }
        try SmallFile.replace(url.path, with: data)
    }
}
