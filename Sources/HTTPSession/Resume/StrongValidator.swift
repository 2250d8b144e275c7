internal import ByteComparison
internal import FoundationEssentials
internal import Wire

/// A strong validator, which distinguishes the versions of a resource so that bytes of two responses may be joined (RFC 9110
/// section 8.8).
///
/// It is only as reliable as the server. Entity tags made of seconds and size are equal for two versions of one second.
enum StrongValidator: Hashable, Sendable {
    /// A strong entity tag, with its quotes.
    case entityTag(String)
    /// The `Last-Modified` field as received, from a response whose `Date` is at least a second later (section 8.8.2.2).
    case lastModified(String)

    /// The validator of a response; `nil` if it has none, and its body cannot be continued.
    init?(_ head: ResponseHead, now: Date) {
        guard !head.hasDifferentValues(of: "etag"), !head.hasDifferentValues(of: "last-modified") else { return nil }
        if let tag = head.firstValue(of: "etag") {
            // A date beside a weak tag may not be used either (section 13.1.5): the server knows a better validator, and calls it
            // weak.
            guard let validator = StrongValidator(entityTag: tag), head.firstValue(of: "etag", isExactly: tag) == true else {
                return nil
            }
            self = validator
            return
        }
        let now = Int(now.timeIntervalSince1970)
        guard let text = head.firstValue(of: "last-modified"), let validator = StrongValidator(lastModified: text),
            head.firstValue(of: "last-modified", isExactly: text) == true, let modified = HTTPDate.parse(text, now: now),
            let date = head.firstValue(of: "date").flatMap({ HTTPDate.parse($0, now: now) }),
            date - modified >= 1
        else { return nil }
        self = validator
    }

    /// A strong entity tag: etagc bytes between quotes (section 8.8.3); `nil` otherwise. The text is sent to the server in
    /// `If-Range`.
    ///
    /// `nil` also for bytes that are not UTF-8, which are U+FFFD in the text: the tags of two versions could have the same text.
    init?(entityTag text: String) {
        let bytes = text.utf8
        guard bytes.count >= 2, bytes.first == 0x22, bytes.last == 0x22,
            bytes.dropFirst().dropLast().allSatisfy({ $0 == 0x21 || (0x23...0x7E).contains($0) || $0 >= 0x80 }),
            !text.unicodeScalars.contains("\u{FFFD}")
        else { return nil }
        self = .entityTag(text)
    }

    /// A date in the form that HTTP generates, IMF-fixdate (section 5.6.7); `nil` for any other form.
    init?(lastModified text: String) {
        guard HTTPDate.isCanonical(text) else { return nil }
        self = .lastModified(text)
    }

    static func == (one: StrongValidator, other: StrongValidator) -> Bool {
        switch (one, other) {
        case (.entityTag(let one), .entityTag(let other)), (.lastModified(let one), .lastModified(let other)):
            one.isExactly(other)
        case (.entityTag, .lastModified), (.lastModified, .entityTag): false
        }
    }

    func hash(into hasher: inout Hasher) { fieldValue.hashBytes(into: &hasher) }

    /// The value of the `If-Range` field (section 13.1.5).
    var fieldValue: String {
        switch self {
        case .entityTag(let text), .lastModified(let text): text
        }
    }
}
