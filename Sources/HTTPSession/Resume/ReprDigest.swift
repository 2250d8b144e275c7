internal import Foundation

/// `Repr-Digest` (RFC 9530 section 3): the server's own digest of the whole representation, also beside a part of it.
enum ReprDigest {
    /// The strongest digest in the field that can be checked here; `nil` where there is none. What is malformed, or of another
    /// algorithm, says nothing.
    ///
    /// The field is a dictionary of byte sequences (RFC 8941): `sha-256=:BASE64:, sha-512=:BASE64:`.
    static func parse(_ text: String) -> ContentDigest? {
        let found = text.split(separator: ",").compactMap(member)
        return found.first { $0.algorithm == .sha512 } ?? found.first
    }

    /// The one that a response has.
    static func of(_ head: ResponseHead) -> ContentDigest? {
        head.firstValue(of: "repr-digest").flatMap(parse)
    }

    private static func member(_ text: Substring) -> ContentDigest? {
        let parts = text.split(separator: "=", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        let (name, value) = (String(parts[0]), String(parts[1]))
        guard let algorithm = ContentDigest.Algorithm(rawValue: name.trimmingCharacters(in: .whitespaces)) else { return nil }
        let encoded = value.trimmingCharacters(in: .whitespaces)
        guard encoded.count >= 2, encoded.hasPrefix(":"), encoded.hasSuffix(":"),
            let bytes = Data(base64Encoded: String(encoded.dropFirst().dropLast()))
        else { return nil }
        return ContentDigest(algorithm, bytes)
    }
}
