import Glibc

/// The bytes of an open file, from its position to its end.
package enum DescriptorContents {
    package struct Failure: Error {
        /// errno(3) of read(2).
        package let number: Int32
    }

    /// Reads at most `limit` bytes.
    package static func read(_ descriptor: Int32, atMost limit: Int) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while bytes.count < limit {
            let count = Glibc.read(descriptor, &chunk, min(chunk.count, limit - bytes.count))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure(number: errno) }
            guard count > 0 else { break }
            bytes += chunk.prefix(count)
        }
        return bytes
    }
}
