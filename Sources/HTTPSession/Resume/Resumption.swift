internal import ByteComparison
internal import FoundationEssentials

/// The bytes at the start of a representation that are already present, and the rules by which further bytes may be appended.
///
/// Bytes are joined only under one strong validator (RFC 9110 section 15.3.7.3), or under the digest of the complete
/// representation, which is checked at the end. If a response contradicts either, the transfer restarts.
struct Resumption: Hashable, Sendable {
    /// The URL after all redirects. A validator belongs to one resource.
    let url: URL
    let validator: StrongValidator?
    /// The length of the complete representation, if the server has sent it.
    var total: Int64?
    /// The digest of the complete representation: the caller's expectation, or else the server's field (RFC 9530), which partial
    /// content has too.
    private(set) var digest: ContentDigest?

    /// `nil` if there is neither a validator nor a digest by which bytes could be joined.
    init?(url: URL, validator: StrongValidator?, total: Int64?, digest: ContentDigest?) {
        guard validator != nil || digest != nil else { return nil }
        self.url = url
        self.validator = validator
        self.total = total
        self.digest = digest
    }

    /// The rules that a complete response allows; `nil` if it has neither a strong validator nor a digest, or is encoded.
    init?(completeResponse head: ResponseHead, from url: URL, expecting digest: ContentDigest? = nil, now: Date) {
        guard head.statusCode == 200, head.firstValue(of: "content-encoding") == nil else { return nil }
        self.init(
            url: url, validator: StrongValidator(head, now: now), total: head.bodyLength, digest: digest ?? ReprDigest.of(head))
    }

    /// Adds what a partial response says about the complete representation.
    mutating func update(from head: ResponseHead, total: Int64) {
        self.total = total
        digest = digest ?? ReprDigest.of(head)
    }

    /// The basis on which the present bytes and those of another response may be joined.
    enum Basis: Hashable, Sendable {
        case validator(StrongValidator)
        /// The digest is checked at the end, whatever validator the server sends.
        case digest
    }

    /// The basis for bytes from `other`; `nil` if there is none. A validator says nothing about another resource.
    func basis(at other: URL) -> Basis? {
        if let validator, isSameResource(other) { return .validator(validator) }
        return digest == nil ? nil : .digest
    }

    /// The decision about a response to the request with ``fieldLines(after:by:)``.
    enum Decision: Hashable, Sendable {
        /// The body continues at the end of the present bytes; `total` is the length of the complete representation.
        case append(total: Int64)
        /// The body is the complete representation: the present bytes are discarded.
        case replace
        /// The body is of no use: the present bytes are discarded, and the complete representation is requested.
        case restart
        /// The present bytes are complete.
        case complete
        /// The response says nothing about the present bytes, which are kept.
        case keep
    }

    /// Whether a request to `other` asks for the same resource. With an entity tag the query may differ: a signed URL gets a new
    /// signature. Without one, two resources with different queries may have been modified in the same second.
    func isSameResource(_ other: URL) -> Bool {
        (hasTag || url.query(percentEncoded: true).isExactly(other.query(percentEncoded: true)))
            && url.scheme?.lowercased() == other.scheme?.lowercased()
            && (url.host()?.lowercased()).isExactly(other.host()?.lowercased())
            && url.port == other.port && url.path(percentEncoded: true).isExactly(other.path(percentEncoded: true))
    }

    /// The field lines that request the range behind `received` bytes (sections 14.2 and 13.1.5), or ask whether those are
    /// complete.
    func fieldLines(after received: Int64, by basis: Basis) -> [String] {
        let range = "Range: bytes=\(received)-"
        return switch basis {
        case .validator(.entityTag(let tag)) where isComplete(received): ["If-None-Match: \(tag)"]
        case .validator(.lastModified(let date)) where isComplete(received): ["If-Modified-Since: \(date)"]
        case .validator(let validator): [range, "If-Range: \(validator.fieldValue)"]
        // No range exists behind the complete representation; the server states that with its length (416).
        case .digest: [range]
        }
    }

    /// Whether `received` bytes are the complete representation.
    func isComplete(_ received: Int64) -> Bool { total == received }

    /// Decides about the final response to a request for the range behind `received` bytes (section 15.3.7).
    func decide(_ head: ResponseHead, received: Int64, by basis: Basis) -> Decision {
        switch head.statusCode {
        case 206, 304, 416:
            // A response with contradictory fields proves nothing about the bytes.
            if head.hasDifferentValues(of: "content-range") || head.hasDifferentValues(of: "etag")
                || head.hasDifferentValues(of: "last-modified")
            {
                return .restart
            }
        default: break
        }
        switch head.statusCode {
        case 206: return decideOnPartialContent(head, received, basis)
        case 200...299: return .replace
        case 304: return isComplete(received) && isConfirmed(by: head, basis) ? .complete : .restart
        case 412: return .restart
        case 416:
            guard case .unsatisfied(received)? = head.firstValue(of: "content-range").flatMap(ContentRange.init),
                total == nil || total == received
            else { return .restart }
            switch basis {
            case .digest: return .complete
            case .validator(.entityTag(let tag)) where head.firstValue(of: "etag", isExactly: tag) == true: return .complete
            case .validator: return .restart
            }
        default: return .keep
        }
    }

    /// Whether a 304 does not name another version than the present one. Servers compare entity tags weakly, and dates perhaps only by their order
    /// (RFC 9110 sections 13.1.2 and 13.1.3).
    private func isConfirmed(by head: ResponseHead, _ basis: Basis) -> Bool {
        switch basis {
        case .digest: true
        case .validator(.entityTag(let tag)): head.firstValue(of: "etag", isExactly: tag) ?? true
        case .validator(.lastModified(let date)): head.firstValue(of: "last-modified", isExactly: date) ?? true
        }
    }

    private func decideOnPartialContent(_ head: ResponseHead, _ received: Int64, _ basis: Basis) -> Decision {
        // Several parts (multipart/byteranges), and a part without its range, cannot be appended. The total must be known, and
        // the body must have the length of the range.
        guard
            case .satisfied(received, let last, let rangeTotal)? = head.firstValue(of: "content-range").flatMap(ContentRange.init),
            head.firstValue(of: "content-encoding") == nil, let complete = rangeTotal ?? total, total == nil || complete == total,
            last < complete, head.bodyLength == nil || head.bodyLength == last - received + 1
        else { return .restart }
        // Digests of two different algorithms cannot be compared.
        if let digest, let other = ReprDigest.of(head), other.algorithm == digest.algorithm, other != digest { return .restart }
        switch basis {
        case .digest: return .append(total: complete)
        case .validator(.entityTag(let tag)):
            return head.firstValue(of: "etag", isExactly: tag) == true ? .append(total: complete) : .restart
        case .validator(.lastModified(let date)):
            let isSame =
                head.firstValue(of: "last-modified", isExactly: date) ?? (rangeTotal != nil && rangeTotal == total)
            return isSame ? .append(total: complete) : .restart
        }
    }

    private var hasTag: Bool {
        if case .entityTag = validator { return true }
        return false
    }
}
