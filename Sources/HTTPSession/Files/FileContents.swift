internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// The content of a file of the user.
enum FileContents {
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
