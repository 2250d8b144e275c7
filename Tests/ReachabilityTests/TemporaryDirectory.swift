import Foundation

/// A directory for one test. It is removed with this object.
final class TemporaryDirectory {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "netwatch-test-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func at(_ name: String) -> String { path + "/" + name }

    func makeDirectory(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: at(name), withIntermediateDirectories: true)
    }

    /// Writes in place into an existing or new file, never by rename.
    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: at(name)))
    }

    func link(_ name: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: at(name), withDestinationPath: target)
    }

    func rename(_ name: String, to other: String) throws {
        guard Glibc.rename(at(name), at(other)) == 0 else { throw CocoaError(.fileWriteUnknown) }
    }

    func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: at(name)) }
}
