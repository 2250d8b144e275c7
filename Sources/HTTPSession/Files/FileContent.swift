internal import CLinux
internal import Glibc

/// Files of /proc and the like: their size is 0 for stat(2), and yet they can be read.
package enum FileContent {
    package static let reason = "its size is 0 for the system, and yet it has bytes, as files of /proc do; send a copy of it"

    /// Whether a file of size 0 has bytes. A file that cannot be opened or read has none here: whoever sends it meets that error.
    package static func isHidden(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        return read(descriptor, &byte, 1) == 1
    }
}
