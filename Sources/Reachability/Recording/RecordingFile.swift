internal import CLinux
internal import Glibc

/// Opens the file of a recording. A recording contains addresses, routes and target names, so only its owner may read it.
enum RecordingFile {
    /// The two names of standard output.
    static let standardOutput: Set<String> = ["-", "/dev/stdout"]

    /// The error of a file that cannot be used for a recording.
    struct OpenError: Error {
        let errno: Int32
    }

    /// Opens `path` for writing. It may be a new file (mode 0600), an existing file of this user (which is emptied), a pipe, or a
    /// descriptor of this process.
    ///
    /// A symbolic link is not followed (`ELOOP`). A file of another user (`EPERM`), or one with further hard links (`EMLINK`), is
    /// not changed, because another user could have created it in a shared directory.
    ///
    /// - Returns: the descriptor; non-blocking for a pipe, because a pipe without a reader would block the program despite
    ///   signals.
    static func open(_ path: String) throws(OpenError) -> Int32 {
        if let number = descriptorNumber(path) { return try duplicate(number) }
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW
        let descriptor = Glibc.open(path, flags, 0o600)
        guard descriptor >= 0 else { throw OpenError(errno: errno) }
        if let number = truncate(descriptor) {
            close(descriptor)
            throw OpenError(errno: number)
        }
        return descriptor
    }

    /// Empties a regular file that only this user can have created.
    private static func truncate(_ descriptor: Int32) -> Int32? {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return errno }
        guard status.st_mode & S_IFMT == S_IFREG else { return nil }
        guard status.st_uid == geteuid() else { return EPERM }
        guard status.st_nlink == 1 else { return EMLINK }
        return ftruncate(descriptor, 0) == 0 ? nil : errno
    }

    /// Returns the number in `/dev/fd/N` or `/proc/self/fd/N`, which are symbolic links. A shell's `>(command)` is such a name.
    private static func descriptorNumber(_ path: String) -> Int32? {
        if standardOutput.contains(path) { return STDOUT_FILENO }
        if path == "/dev/stderr" { return STDERR_FILENO }
        for folder in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(folder) { return Int32(path.dropFirst(folder.count)) }
        return nil
    }

    private static func duplicate(_ number: Int32) throws(OpenError) -> Int32 {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw OpenError(errno: errno) }
        // The position in a file is shared with the program's parent. A pipe or terminal is opened again, because O_NONBLOCK
        // would be shared too.
        let isFile = status.st_mode & S_IFMT == S_IFREG
        let descriptor =
            isFile
            ? fcntl(number, F_DUPFD_CLOEXEC, 3)
            : Glibc.open("/proc/self/fd/\(number)", O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw OpenError(errno: errno) }
        return descriptor
    }
}
