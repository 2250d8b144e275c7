internal import CLinux
internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// A file with certificates or revocation lists, which may be a pipe.
enum TrustFile {
    private static let sizeLimit = 16 << 20

    /// Reads a file or a pipe to its end.
    ///
    /// - Parameters:
    ///   - path: the file.
    ///   - patience: the time for which a pipe's writer is awaited, in milliseconds.
    /// - Returns: the contents.
    /// - Throws: the error that names the file.
    static func contents(of path: String, patience: Int64 = 10_000) throws(TLSProbeSettings.FileError) -> Data {
        func failure(_ number: Int32) -> TLSProbeSettings.FileError {
            .init("\(path): cannot be read: \(errorText(number))", systemError: number)
        }
        // A pipe without a writer must not block the program.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw failure(errno) }
        defer { close(file) }
        let end = milliseconds + patience
        // Without a writer, a pipe that has a name reads as empty.
        if isPipe(file) { _ = waitForWriter(of: file, until: end) }
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while data.count <= sizeLimit {
            let count = read(file, &buffer, buffer.count)
            if count > 0 {
                data += buffer[..<count]
            } else if count == 0 {
                return data
            } else if errno == EAGAIN {
                guard waitForWriter(of: file, until: end) else {
                    let reason = "its writer has not finished after \(patience / 1000) s"
                    throw .init("\(path): cannot be read: \(reason)", systemError: EAGAIN)
                }
            } else if errno != EINTR {
                throw failure(errno)
            }
        }
        throw .init("\(path): is larger than \(sizeLimit >> 20) MiB")
    }

    private static func isPipe(_ file: Int32) -> Bool {
        var status = stat()
        return fstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    }

    /// Waits until a pipe has bytes, or has lost its last writer (poll(2)). Returns false at the time `end`.
    private static func waitForWriter(of file: Int32, until end: Int64) -> Bool {
        let remaining = end - milliseconds
        guard remaining > 0 else { return false }
        var descriptor = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
        // A signal ends the wait early; the caller reads again.
        return poll(&descriptor, 1, Int32(clamping: remaining)) != 0
    }

    private static var milliseconds: Int64 { MonotonicClock.now() / 1_000_000 }
}
