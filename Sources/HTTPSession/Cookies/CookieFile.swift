internal import FoundationEssentials

/// A cookie file in Netscape's format, with one line for each cookie.
enum CookieFile {
    /// Reads the cookies of a file. A file that does not exist yet has none.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` if the file cannot be read, or other users may write to it.
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
            // `#HttpOnly_` begins a cookie, any other `#` a comment. A cookie has seven columns and no NUL.
            (line.bytes.first != UInt8(ascii: "#") || line.bytes.starts(with: "#HttpOnly_".utf8))
                && line.bytes.count { $0 == 0x09 } >= 6 && !line.bytes.contains(0)
        }
    }

    /// Replaces the file in one step (rename(2)); only its owner can read it.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotWriteFile``.
    static func write(_ lines: [CookieLine], to url: URL) throws(HTTPSessionError) {
        if let reason = OwnFile.objection(at: url.path) {
            throw HTTPSessionError(.cannotWriteFile, "the cookie file '\(url.path)' is not used: \(reason)")
        }
        var data = Data("# Netscape HTTP Cookie File\n".utf8)
        for line in lines { data += line.bytes + [0x0A] }
        try SmallFile.replace(url.path, with: data)
    }
}
