internal import CLinux
internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// The content of a file of the user.
package enum FileContent {
    package static let reason = "the system reports the size 0 but the file has bytes, as files of /proc do; send a copy of it"

    /// Whether a file of size 0 in stat(2) has bytes, as files of /proc do. `false` if it cannot be opened or read, because the transfer that sends it
    /// reports that error.
    package static func hasBytes(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        return Glibc.read(descriptor, &byte, 1) == 1
    }

    /// Reads a file of at most `limit` bytes.
    static func read(_ path: String, atMost limit: Int) throws(HTTPSessionError) -> Data {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileFailure.reading(path, errno) }
        defer { close(descriptor) }
        let bytes: [UInt8]
        do { bytes = try DescriptorContents.read(descriptor, atMost: min(limit, .max - 1) + 1) } catch {
            throw FileFailure.reading(path, error.number)
        }
        guard bytes.count <= limit else {
            throw HTTPSessionError(
                .responseTooLarge, "'\(path)' has more than the \(limit) bytes of maximumResponseSize; use its file")
        }
        return Data(bytes)
    }
}
