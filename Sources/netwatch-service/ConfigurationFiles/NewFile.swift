import Console
import Glibc
import Reachability

/// The creation of a file that does not exist yet.
enum NewFile {
    /// Writes a new file. If an error occurs, the file is removed.
    ///
    /// - Throws: ``Failure`` with code 73 if the path exists or the file cannot be created, and 74 if it cannot be written.
    static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
        // O_EXCL does not follow a symbolic link either.
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            let why = errno == EEXIST ? "exists already, and is not replaced" : "cannot be created: \(errorText(errno))"
            throw Failure(ExitCode.cannotCreate, "\(path): \(why)")
        }
        var remaining = bytes[...]
        var number: Int32 = 0
        while !remaining.isEmpty {
            let count = remaining.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                remaining = remaining.dropFirst(count)
            } else if errno != EINTR {
                number = errno
                break
            }
        }
        if close(descriptor) != 0, number == 0 { number = errno }
        guard number != 0 else { return }
        unlink(path)
        throw Failure(ExitCode.inputOutput, "\(path): cannot be written: \(errorText(number))")
    }
}
