import Foundation
import HTTPSessionTestKit

/// What the client is to transfer, and what is in each file: known to both sides, so that no byte has to be kept.
struct Manifest: Codable, Sendable {
    struct Download: Codable, Sendable {
        var url: String
        var file: String
    }

    struct Upload: Codable, Sendable {
        var url: String
        var file: String
        var number: Int
        var size: Int64
    }

    var downloads: [Download]
    var uploads: [Upload]
    /// A line for everything that happens; lines survive the client.
    var log: String

    /// Where the bytes of a version begin in the test kit's endless pattern: no two files have any in common.
    static func base(file: Int, version: Int) -> Int64 { Int64(file) << 34 + Int64(version) << 27 }

    static func bytes(file: Int, version: Int, size: Int64) -> [UInt8] {
        ReplyBody.patternBytes(from: base(file: file, version: version), count: Int(size))
    }

    /// Uploads come after all files.
    static func bytes(upload: Upload) -> [UInt8] { bytes(file: 1_000_000 + upload.number, version: 0, size: upload.size) }
}
