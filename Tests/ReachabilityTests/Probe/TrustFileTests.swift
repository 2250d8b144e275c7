import Expectations
import Foundation
import Glibc
import Testing

@testable import Reachability

/// Files with certificates and revocation lists.
@Suite struct TrustFileTests {
    private func pipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [0, 0]
        try #require(Glibc.pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    @Test func `a pipe whose writer is slow is read to its end`() throws {
        let (reading, writing) = try pipe()
        defer { close(reading) }
        // More than a pipe holds, so that reader and writer wait for each other.
        let count = 4 << 20
        Thread.detachNewThread {
            let piece = [UInt8](repeating: 7, count: 1000)
            var sent = 0
            while sent < count {
                let size = write(writing, piece, min(piece.count, count - sent))
                guard size > 0 else { break }
                sent += size
            }
            close(writing)
        }
        try expectEqual(TrustFile.contents(of: "/proc/self/fd/\(reading)").count, count)
    }

    @Test func `a pipe whose writer is silent is named after the time limit`() throws {
        let (reading, writing) = try pipe()
        let path = "/proc/self/fd/\(reading)"
        let error = #expect(throws: TLSProbeSettings.FileError.self) { try TrustFile.contents(of: path, patience: 0) }
        expectEqual(error?.description, "\(path): cannot be read: its writer has not finished after 0 s")
        close(writing)
        try expectEmpty(TrustFile.contents(of: path))
        close(reading)
    }

    @Test func `a file that is missing or a directory has its errno`() {
        for (path, number) in [("/nonexistent", ENOENT), ("/", EISDIR)] {
            let error = #expect(throws: TLSProbeSettings.FileError.self) { try TrustFile.contents(of: path) }
            #expect(error?.systemError == number && error?.description.hasPrefix("\(path): cannot be read: ") == true)
        }
    }
}
