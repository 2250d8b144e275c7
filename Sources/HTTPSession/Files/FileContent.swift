internal import CLinux
internal import Glibc

/// The check for files of /proc and similar file systems, which have the size 0 in stat(2) but can be read.
package enum FileContent {
    package static let reason = "the system reports the size 0 but the file has bytes, as files of /proc do; send a copy of it"

    /// Whether a file of size 0 has bytes; `false` if it cannot be opened or read, because the transfer that sends it reports that error.
    package static func hasBytes(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        return read(descriptor, &byte, 1) == 1
    }
}
