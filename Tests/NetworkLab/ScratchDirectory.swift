import Foundation
import Glibc

/// A directory of its own, which goes with this value, and with the test process however that ends.
public final class ScratchDirectory: Sendable {
    /// Where it is.
    public let path: String

    /// Makes it, empty.
    public init() throws {
        // The watchdog's list is words: no path with a space may come in by way of TMPDIR.
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
