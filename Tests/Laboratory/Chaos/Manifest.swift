import Foundation
import HTTPSessionTestKit

/// The files that the client transfers, and the bytes of each file. Both sides compute the bytes, so that they need not be
/// stored.
struct Manifest: Codable, Sendable {
    struct Download: Codable, Sendable {
        var url: String
        var file: String
        var number: Int
        /// Whether the durable session transfers it.
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
    /// The path of the log, which survives the client.
    var log: String
    /// The path of the durable session's directory.
    var journal: String

    /// Returns the start of a version's bytes in the test kit's endless pattern. The pattern repeats after 2^32 bytes, and each
    /// 64 KiB begin at another offset of its table. So the bytes at one offset differ between any two of 2,048 files and 8
    /// versions, except by chance.
    static func base(file: Int, version: Int) -> Int64 { Int64(file) << 34 + Int64(file % 2_048) << 16 + Int64(version) << 27 }

    static func bytes(file: Int, version: Int, size: Int64) -> Data {
        Data(StubBody.patternBytes(from: base(file: file, version: version), count: Int(size)))
    }

    /// The bytes of an upload. Uploads have the numbers after 1,024 files.
    static func bytes(upload: Upload) -> Data { bytes(file: 1_024 + upload.number, version: 0, size: upload.size) }
}
