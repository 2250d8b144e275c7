internal import Glibc

/// The errors of file operations, with the path and the text of `errno`.
enum FileFailure {
    static func reading(_ path: String, _ number: Int32) -> HTTPSessionError {
        HTTPSessionError(.cannotReadFile, "cannot read '\(path)': \(text(number))", context: .init(systemError: number))
    }

    static func changed(_ path: String) -> HTTPSessionError {
        HTTPSessionError(.fileChanged, "'\(path)' changed while it was being sent")
    }

    static func writing(_ path: String, _ number: Int32) -> HTTPSessionError {
        HTTPSessionError(.cannotWriteFile, "cannot write '\(path)': \(text(number))", context: .init(systemError: number))
    }

    /// The error of a destination that cannot take a file; nothing has been moved.
    static func placing(_ path: String, _ number: Int32) -> HTTPSessionError {
        HTTPSessionError(
            .cannotWriteFile, "cannot put the file at '\(path)': \(text(number))", context: .init(systemError: number))
    }

    static func moving(_ path: String, _ number: Int32) -> HTTPSessionError {
        HTTPSessionError(
            .cannotMoveFile, "cannot put the file at '\(path)': \(text(number))", context: .init(systemError: number))
    }

    /// Whether the error is caused by the destination: a missing directory, missing permissions, or an existing file.
    static func isDestinationFault(_ error: HTTPSessionError) -> Bool {
        guard let number = error.context.systemError else { return false }
        return [ENOENT, ENOTDIR, EACCES, EPERM, EROFS, EEXIST, EISDIR, ENAMETOOLONG].contains(number)
    }

    static func text(_ number: Int32) -> String { String(cString: strerror(number)) }
}
