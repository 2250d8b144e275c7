import Foundation
import HTTPSessionTestKit

/// What the client is to transfer, and what is in each file: known to both sides, so that no byte has to be kept.
struct Manifest: Codable, Sendable {
    struct Download: Codable, Sendable {
        var url: String
        var file: String
        var number: Int
        /// Through the durable session, not the one that ends with its process.
        var isDurable: Bool

        var name: String { "d\(number)" }
    }

    struct Upload: Codable, Sendable {
        var url: String
        var file: String
        var number: Int
        var size: Int64
        var isDurable: Bool

        var name: String { "u\(number)" }
    }

    var downloads: [Download]
    var uploads: [Upload]
    /// A line for everything that happens; lines survive the client.
    var log: String
    /// The durable session's directory.
    var journal: String

    /// Where the bytes of a version begin in the test kit's endless pattern. That repeats after 2^32 bytes, and begins elsewhere in its table
    /// with each 64 KiB: what stands at one place differs between any two of 2,048 files and 8 versions, but for bytes that are equal by
    /// chance.
    static func base(file: Int, version: Int) -> Int64 { Int64(file) << 34 + Int64(file % 2_048) << 16 + Int64(version) << 27 }

    static func bytes(file: Int, version: Int, size: Int64) -> Data {
        Data(StubBody.patternBytes(from: base(file: file, version: version), count: Int(size)))
    }

    /// Uploads come behind 1,024 files.
    static func bytes(upload: Upload) -> Data { bytes(file: 1_024 + upload.number, version: 0, size: upload.size) }
}
