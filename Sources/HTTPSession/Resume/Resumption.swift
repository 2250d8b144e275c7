internal import FoundationEssentials

/// The beginning of a representation that is here already: may what comes now be put behind it?
///
/// Bytes are joined under one strong validator only (RFC 9110 section 15.3.7.3), or under the digest of the whole, which is checked at
/// the end; never by guesswork: where anything speaks against it, the transfer begins anew.
struct Resumption: Hashable, Sendable {
    /// Where the bytes came from, after all redirects: a validator belongs to one resource.
    let url: URL
    let validator: StrongValidator?
    /// The length of the whole, where the server said it.
    var total: Int64?
    /// Of the whole: what the caller expects, or else what the server says (RFC 9530), beside the whole or beside a part.
    private(set) var digest: ContentDigest?

    /// `nil` where there is nothing by which bytes could be joined.
    init?(url: URL, validator: StrongValidator?, total: Int64?, digest: ContentDigest?) {
        guard validator != nil || digest != nil else { return nil }
        self.url = url
        self.validator = validator
        self.total = total
        self.digest = digest
    }

    /// What a whole response offers for later; `nil` where it has neither a strong validator nor a digest, or is encoded.
    init?(whole head: ResponseHead, from url: URL, expecting digest: ContentDigest? = nil, now: Date) {
        guard head.statusCode == 200, head.firstValue(of: "content-encoding") == nil else { return nil }
        self.init(
            url: url, validator: StrongValidator(head, now: now), total: head.bodyLength, digest: digest ?? ReprDigest.of(head))
    }

    /// Notes what a response says of the whole that it brings a part of.
    mutating func learn(from head: ResponseHead, total: Int64) {
        self.total = total
        digest = digest ?? ReprDigest.of(head)
    }

    /// By what the bytes that are here and those of another response may be joined.
    enum Basis: Hashable, Sendable {
        case validator(StrongValidator)
        /// Whatever the server calls its version.
        case digest
    }

    /// By what they may be joined with those of `other`; `nil`: not at all. A validator says nothing of another resource.
    func basis(at other: URL) -> Basis? {
        if let validator, isSameResource(other) { return .validator(validator) }
        return digest == nil ? nil : .digest
    }

    /// What to do with a response to the request that ``fieldLines(at:)`` belongs to.
    enum Judgement: Hashable, Sendable {
        /// The body goes on where the bytes that are here end; `total` is the length of the whole.
        case append(total: Int64)
        /// The body is the whole: what is here is dropped.
        case replace
        /// The body is of no use: what is here is dropped, and the whole is asked for.
        case startOver
        /// All is here.
        case complete
        /// It says nothing of the bytes: they are kept.
        case keep
    }

    /// Whether a request to `other` would ask for the same resource. Beside an entity tag the query may differ: a signed address is
    /// signed anew. Two resources that a query tells apart may well have been changed in the same second.
    func isSameResource(_ other: URL) -> Bool {
        (hasTag || url.query(percentEncoded: true) == other.query(percentEncoded: true))
            && url.scheme?.lowercased() == other.scheme?.lowercased() && url.host()?.lowercased() == other.host()?.lowercased()
            && url.port == other.port && url.path(percentEncoded: true) == other.path(percentEncoded: true)
    }

    /// The fields that ask for what lies behind `received` bytes (sections 14.2 and 13.1.5), or whether they are all there is.
    func fieldLines(after received: Int64, by basis: Basis) -> [String] {
        let range = "Range: bytes=\(received)-"
        return switch basis {
        case .validator(.entityTag(let tag)) where isWhole(received): ["If-None-Match: \(tag)"]
        case .validator(.lastModified(let date)) where isWhole(received): ["If-Modified-Since: \(date)"]
        case .validator(let validator): [range, "If-Range: \(validator.fieldValue)"]
        // Behind the whole there is nothing, which the server says with its length (416).
        case .digest: [range]
        }
    }

    /// Whether so many bytes are all.
    func isWhole(_ received: Int64) -> Bool { total == received }

    /// Judges the final response to a request for what lies behind `received` bytes (the table of section 15.3.7 and its neighbors).
    func judge(_ head: ResponseHead, received: Int64, by basis: Basis) -> Judgement {
        switch head.statusCode {
        case 206, 304, 416:
            // A response that contradicts itself says nothing of the bytes.
            if head.hasDifferentValues(of: "content-range") || head.hasDifferentValues(of: "etag")
                || head.hasDifferentValues(of: "last-modified")
            {
                return .startOver
            }
        default: break
        }
        switch head.statusCode {
        case 206: return judgePart(head, received, basis)
        case 200...299: return .replace
        case 304: return isWhole(received) ? .complete : .startOver
        case 412: return .startOver
        case 416:
            guard case .unsatisfied(received)? = head.firstValue(of: "content-range").flatMap(ContentRange.init),
                total == nil || total == received
            else { return .startOver }
            switch basis {
            case .digest: return .complete
            case .validator(.entityTag(let tag)) where head.firstValue(of: "etag") == tag: return .complete
            case .validator: return .startOver
            }
        default: return .keep
        }
    }

    private func judgePart(_ head: ResponseHead, _ received: Int64, _ basis: Basis) -> Judgement {
        // Of several parts (multipart/byteranges), and of a part without its place, nothing can be said.
        // Without a total nobody knows where the end is; and a part has the length that its place says.
        guard case .part(received, let last, let partTotal)? = head.firstValue(of: "content-range").flatMap(ContentRange.init),
            head.firstValue(of: "content-encoding") == nil, let whole = partTotal ?? total, total == nil || whole == total,
            last < whole, head.bodyLength == nil || head.bodyLength == last - received + 1
        else { return .startOver }
        // Of two algorithms nothing can be said.
        if let digest, let other = ReprDigest.of(head), other.algorithm == digest.algorithm, other != digest { return .startOver }
        switch basis {
        case .digest: return .append(total: whole)
        case .validator(.entityTag(let tag)):
            return head.firstValue(of: "etag") == tag ? .append(total: whole) : .startOver
        case .validator(.lastModified(let date)):
            let isSame = head.firstValue(of: "last-modified").map { $0 == date } ?? (partTotal != nil && partTotal == total)
            return isSame ? .append(total: whole) : .startOver
        }
    }

    private var hasTag: Bool {
        if case .entityTag = validator { return true }
        return false
    }
}
