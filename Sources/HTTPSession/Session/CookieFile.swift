internal import Foundation

/// A cookie jar in Netscape's format, a line a cookie.
enum CookieFile {
    /// Nothing where there is no file: the first session finds none.
    static func read(_ url: URL) throws(HTTPSessionError) -> [String] {
        guard FileManager.default.fileExists(atPath: url.path) else { return [] }
        let data: Data
        do { data = try Data(contentsOf: url) } catch {
            throw HTTPSessionError(.invalidConfiguration, "the cookie file '\(url.path)' cannot be read", underlying: error)
        }
        return String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init).filter { line in
            // `#HttpOnly_` begins a cookie, any other `#` a comment; a cookie has seven columns.
            (!line.hasPrefix("#") || line.hasPrefix("#HttpOnly_"))
                && line.split(separator: "\t", omittingEmptySubsequences: false).count >= 7
        }
    }

    /// In one step, readable by its owner only.
    static func write(_ lines: [String], to url: URL) throws(HTTPSessionError) {
        let text = "# Netscape HTTP Cookie File\n" + lines.map { $0 + "\n" }.joined()
        let file = PartialFile(DownloadDestination(url, existingFile: .replace), mode: 0o600)
        try file.begin(expected: nil)
        try file.write(Array(text.utf8))
        _ = try file.commit()
    }
}
