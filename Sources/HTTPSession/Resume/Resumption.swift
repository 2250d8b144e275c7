internal import Foundation

/// The beginning of a representation that is here already: may what comes now be put behind it?
///
/// Bytes are joined under one strong validator only (RFC 9110 section 15.3.7.3), and never by guesswork: where anything speaks against
/// it, the transfer begins anew.
struct Resumption: Hashable, Sendable, Codable {
    /// Where the bytes came from, after all redirects: a validator belongs to one resource.
    var url: URL
    var validator: StrongValidator
    /// The length of the whole, where the server said it.
    var total: Int64?

    /// What a whole response offers for later; `nil` where it has no strong validator, or was decompressed on its way.
    init?(whole head: ResponseHead, from url: URL, now: Date) {
        guard head.statusCode == 200, head.firstValue(of: "content-encoding") == nil,
            let validator = StrongValidator(head, now: now)
        else { return nil }
        self.url = url
        self.validator = validator
        total = head.bodyLength
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

    /// Whether a request to `other` would ask for the same resource. The query may differ: a signed address is signed anew.
    func isSameResource(_ other: URL) -> Bool {
        url.scheme?.lowercased() == other.scheme?.lowercased() && url.host()?.lowercased() == other.host()?.lowercased()
            && url.port == other.port && url.path(percentEncoded: true) == other.path(percentEncoded: true)
    }

    /// The fields that ask for what lies behind `received` bytes (sections 14.2 and 13.1.5), or whether they are all there is.
    func fieldLines(after received: Int64) -> [String] {
        isWhole(received)
            ? ["\(isTag ? "If-None-Match" : "If-Modified-Since"): \(validator.fieldValue)"]
            : ["Range: bytes=\(received)-", "If-Range: \(validator.fieldValue)"]
    }

    /// Whether so many bytes are all.
    func isWhole(_ received: Int64) -> Bool { total == received }

    /// Judges the final response to a request for what lies behind `received` bytes (the table of section 15.3.7 and its neighbours).
    func judge(_ head: ResponseHead, received: Int64) -> Judgement {
        switch head.statusCode {
        case 206: return judgePart(head, received)
        case 200...299: return .replace
        case 304: return isWhole(received) ? .complete : .startOver
        case 412: return .startOver
        case 416:
            guard case .unsatisfied(received)? = head.firstValue(of: "content-range").flatMap(ContentRange.init),
                total == nil || total == received, isTag, head.firstValue(of: "etag") == validator.fieldValue
            else { return .startOver }
            return .complete
        default: return .keep
        }
    }

    private func judgePart(_ head: ResponseHead, _ received: Int64) -> Judgement {
        // Of several parts (multipart/byteranges), and of a part without its place, nothing can be said.
        // Without a total nobody knows where the end is; and a part has the length that its place says.
        guard case .part(received, let last, let partTotal)? = head.firstValue(of: "content-range").flatMap(ContentRange.init),
            head.firstValue(of: "content-encoding") == nil, let whole = partTotal ?? total, total == nil || whole == total,
            last < whole, head.bodyLength == nil || head.bodyLength == last - received + 1
        else { return .startOver }
        switch validator {
        case .entityTag(let tag):
            return head.firstValue(of: "etag") == tag ? .append(total: whole) : .startOver
        case .lastModified(let date):
            let isSame = head.firstValue(of: "last-modified").map { $0 == date } ?? (partTotal != nil && partTotal == total)
            return isSame ? .append(total: whole) : .startOver
        }
    }

    private var isTag: Bool {
        if case .entityTag = validator { return true }
        return false
    }
}
