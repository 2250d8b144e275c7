import CLinux
import Console
import Glibc
import HTTPSession
import Reachability

/// The checks of the file of `put`, made before the first request.
enum Source {
    static func check(_ file: String) throws(Failure) {
        var found = stat()
        guard stat(file, &found) == 0 else { throw failure(file, errno) }
        let kind = found.st_mode & S_IFMT
        guard kind != S_IFDIR else {
            throw Failure(ExitCode.noInput, "\(file): cannot send: it is a directory; put sends one file")
        }
        guard kind == S_IFREG else {
            throw Failure(
                ExitCode.noInput,
                "\(file): cannot send: it is not a regular file, and cannot be read again after an outage; write it to a file first"
            )
        }
        guard access(file, R_OK) == 0 else { throw failure(file, errno) }
        if found.st_size == 0, FileContent.hasBytes(file) {
            throw Failure(ExitCode.noInput, "\(file): cannot send: \(FileContent.reason)")
        }
    }

    private static func failure(_ file: String, _ number: Int32) -> Failure {
        let code =
            switch number {
            case EACCES, EPERM: ExitCode.notPermitted
            case EIO: ExitCode.inputOutput
            default: ExitCode.noInput
            }
        return Failure(code, "\(file): cannot read: \(errorText(number))")
    }
}
