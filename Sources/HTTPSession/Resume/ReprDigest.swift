internal import FoundationEssentials
internal import HTTPTypes

/// The `Repr-Digest` field (RFC 9530 section 3): the server's digest of the complete representation. Partial content has it too.
enum ReprDigest {
    /// The strongest digest of the field that can be checked here; `nil` if there is none. A malformed field, a digest of the
    /// wrong length, and unknown algorithms count as none.
    static func parse(_ text: String) -> ContentDigest? { StructuredField.dictionary(text).flatMap(strongest) }

    /// The digest in a response's field.
    static func of(_ head: ResponseHead) -> ContentDigest? {
        head.structuredDictionary(of: "repr-digest").flatMap(strongest)
    }

    /// The digest of the bytes of a response's body: only of a complete, unencoded representation.
    static func ofBody(_ head: ResponseHead) -> ContentDigest? {
        head.statusCode == 200 && head.firstValue(of: "content-encoding") == nil ? of(head) : nil
    }

    /// The digest of the uploaded bytes in the last response to an upload. Only a 204 to PUT or PATCH describes the resource
    /// itself; a response with content describes that content (RFC 9530 section 3 and appendix B). tus answers HEAD for the
    /// upload.
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
