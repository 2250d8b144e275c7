internal import Foundation
internal import Glibc

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

    /// In one step, readable by its owner only. A jar that cannot be written is not worth a session's end.
    static func write(_ lines: [String], to url: URL) {
        let text = "# Netscape HTTP Cookie File\n" + lines.map { $0 + "\n" }.joined()
        let temporary = url.appendingPathExtension("\(UInt64.random(in: 0 ... .max))")
        guard
            FileManager.default.createFile(
                atPath: temporary.path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
        else { return }
        if rename(temporary.path, url.path) != 0 { unlink(temporary.path) }
    }
}
