import Expectations
import Foundation
import Testing

@testable import HTTPSession

struct ReprDigestTests {
    /// The digests of no bytes, as `openssl dgst` prints them.
    private let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    private let encoded = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

    @Test func `Repr-Digest is parsed as it is written`() throws {
        let digest = try #require(ContentDigest(sha256: empty))
        expectEqual(digest.description, "sha-256:\(empty)")
        expectEqual(ContentDigest(sha256: empty.uppercased()), digest)
        expectEqual(ReprDigest.parse("sha-256=:\(encoded):"), digest)
        expectEqual(ReprDigest.parse("md5=:AAAA:,\t sha-256=:\(encoded): "), digest)
        expectEqual(ContentDigest.sha256(of: Data()), digest)
        try expectEqual(JSONDecoder().decode(ContentDigest.self, from: JSONEncoder().encode(digest)), digest)
    }

    @Test func `the strongest of several digests counts`() throws {
        let long = Data(repeating: 7, count: 64).base64EncodedString()
        expectEqual(ReprDigest.parse("sha-256=:\(encoded):, sha-512=:\(long):")?.algorithm, .sha512)
    }

    @Test func `parameters and unknown members of Repr-Digest are ignored, and lines are joined`() throws {
        let digest = try #require(ContentDigest(sha256: empty))
        expectEqual(ReprDigest.parse("sha-256=:\(encoded):;a=1, new=(1 2), sha-512=:AAAA:"), digest)
        let head = "HTTP/1.1 200 OK\r\nRepr-Digest: md5=:AAAA:\r\nRepr-Digest: sha-256=:\(encoded):\r\n\r\n"
        expectEqual(ReprDigest.of(try #require(ResponseHead(bytes: Array(head.utf8)))), digest)
    }

    @Test(arguments: [
        "", "sha-256", "sha-256=", "sha-256=:", "sha-256=::", "sha-256=:AAAA:",
        "sha-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "SHA-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:", "unixsum=:AAAA:",
        "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:, md5=AAAA=",
        "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:,",
    ]) func `a malformed Repr-Digest, or an unknown algorithm, is ignored`(_ text: String) {
        expectNil(ReprDigest.parse(text))
    }

    @Test(arguments: ["", "e3b0", "z3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"])
    func `text other than 64 hexadecimal digits is not a SHA-256 digest`(_ text: String) {
        expectNil(ContentDigest(sha256: text))
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(ContentDigest.self, from: Data(#"{"algorithm":"sha-256","bytes":"AAAA"}"#.utf8))
        }
    }
}
