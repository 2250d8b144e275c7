import Foundation
import Glibc

/// An empty directory. It is removed with this object, and at the end of the test process, however that ends.
public final class ScratchDirectory: Sendable {
    /// The path of the directory.
    public let path: String

    /// Makes an empty directory.
    public init() throws {
        // The watchdog's list is separated by spaces, so no path with a space may come from TMPDIR.
        var template = Array("/tmp/nwlab-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw LabError("mkdtemp", errno: errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        try Watchdog.shared.get().take(.directory(path))
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
        if case .success(let watchdog) = Watchdog.shared { watchdog.release(.directory(path)) }
    }

    /// The path of an entry, which need not exist.
    public func file(_ name: String) -> String { "\(path)/\(name)" }
}
