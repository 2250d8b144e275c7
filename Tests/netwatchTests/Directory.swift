import Foundation

/// A directory that is removed after the test.
final class Directory {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "netwatch-test-\(UUID())").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func text(_ name: String) -> String {
        (try? String(contentsOfFile: "\(path)/\(name)", encoding: .utf8)) ?? ""
    }
}
