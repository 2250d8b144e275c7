import Expectations
import Foundation
import NetworkLab
import Testing

import HTTPSessionTestKit

@testable import TestServers

@Suite struct UploadShelfTests {
    /// ThreadSanitizer reported `_swiftEmptyArrayStorage` here.
    @Test func `an empty upload read by several threads at once is empty and no data race`() async throws {
        let folder = try ScratchDirectory()
        try Data().write(to: URL(fileURLWithPath: folder.file("upload")))
        let path = folder.file("upload")
        await withTaskGroup(of: Int.self) { group in
            for _ in 0..<8 { group.addTask { (0..<50).map { _ in UploadShelf.read(path).count }.reduce(0, +) } }
            for await count in group { expectEqual(count, 0) }
        }
        expectEmpty(UploadShelf.read(folder.file("missing")))
    }
}
