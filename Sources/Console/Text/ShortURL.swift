/// URLs in messages for a person. A long URL is shortened to its beginning, with the host, and its end, with the file's name.
package enum ShortURL {
    /// The maximum length of a URL that is not shortened.
    package static let limit = 100
    private static let kept = (beginning: 60, end: 37)

    /// Returns the URL, or its beginning and end with `...` between them.
    package static func text(_ url: String) -> String {
        guard url.unicodeScalars.count > limit else { return url }
        let scalars = url.unicodeScalars
        return String(scalars.prefix(kept.beginning)) + "..." + String(scalars.suffix(kept.end))
    }
}
