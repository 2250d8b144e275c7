internal import Foundation

/// What tells one version of a resource from every other, so that bytes of two responses may be joined (RFC 9110 section 8.8).
///
/// It is as good as the server's word: one whose entity tags are made of seconds and size calls two versions of one second the same.
enum StrongValidator: Hashable, Sendable {
    /// An entity tag that is not weak, with its quotes.
    case entityTag(String)
    /// `Last-Modified`, as received, of a response whose `Date` is at least a second later (section 8.8.2.2).
    case lastModified(String)

    /// The one that the response has; `nil`: none, and what comes of it cannot be continued.
    init?(_ head: ResponseHead, now: Date) {
        if let tag = head.firstValue(of: "etag") {
            // A date beside a weak tag may not be used either (section 13.1.5): the server has better, and calls it weak.
            guard tag.hasPrefix("\""), tag.count > 1, tag.hasSuffix("\"") else { return nil }
            self = .entityTag(tag)
            return
        }
        guard let text = head.firstValue(of: "last-modified"), let modified = HTTPDate.parse(text, now: now),
            let date = head.firstValue(of: "date").flatMap({ HTTPDate.parse($0, now: now) }),
            date.timeIntervalSince(modified) >= 1
        else { return nil }
        self = .lastModified(text)
    }

    /// The value of `If-Range` (section 13.1.5).
    var fieldValue: String {
        switch self {
        case .entityTag(let text), .lastModified(let text): text
        }
    }
}
