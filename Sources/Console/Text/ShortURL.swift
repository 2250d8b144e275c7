/// URLs in messages for a person: a long one keeps its beginning, with the host, and its end, with the file's name.
package enum ShortURL {
    /// The longest URL that is written in full.
    package static let limit = 100
    private static let kept = (beginning: 60, end: 37)

    /// The URL, or its beginning and end with `...` between them.
    package static func text(_ url: String) -> String {
        guard url.unicodeScalars.count > limit else { return url }
        let scalars = url.unicodeScalars
        return String(scalars.prefix(kept.beginning)) + "..." + String(scalars.suffix(kept.end))
    }
}
