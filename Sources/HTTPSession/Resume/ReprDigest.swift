internal import FoundationEssentials
internal import HTTPTypes

/// `Repr-Digest` (RFC 9530 section 3): the server's own digest of the whole representation, also beside a part of it.
enum ReprDigest {
    /// The strongest digest in the field that can be checked here; `nil` where there is none. A malformed field, a digest that is not as long
    /// as its algorithm's are, and other algorithms say nothing.
    static func parse(_ text: String) -> ContentDigest? { StructuredField.dictionary(text).flatMap(strongest) }

    /// The one that a response has.
    static func of(_ head: ResponseHead) -> ContentDigest? {
        head.structuredDictionary(of: "repr-digest").flatMap(strongest)
    }

    /// The one of the very bytes that a response brings, as they are read here: of a whole that is not encoded.
    static func ofBody(_ head: ResponseHead) -> ContentDigest? {
        head.statusCode == 200 && head.firstValue(of: "content-encoding") == nil ? of(head) : nil
    }

    /// The digest of the uploaded bytes that the last answer to an upload has. Only a 204 to PUT or PATCH is about the resource itself; with
    /// content the digest is of that (RFC 9530 section 3 and appendix B). tus answers HEAD for the upload.
    static func ofUpload(_ head: ResponseHead, to method: HTTPRequest.Method, isTus: Bool) -> ContentDigest? {
        let isOfResource = head.statusCode == 204 && [.put, .patch].contains(method)
        let isOfUpload = isTus && method == .head && (200...299).contains(head.statusCode)
        return (isOfResource || isOfUpload) && head.firstValue(of: "content-encoding") == nil ? of(head) : nil
    }

    private static func strongest(_ members: [String: StructuredField.Item]) -> ContentDigest? {
        for algorithm in [ContentDigest.Algorithm.sha512, .sha256] {
            guard case .bytes(let bytes)? = members[algorithm.rawValue] else { continue }
            if let digest = ContentDigest(algorithm, bytes) { return digest }
        }
        return nil
    }
}
