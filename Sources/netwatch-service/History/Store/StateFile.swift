import Glibc

/// A file of the state directory before it is opened. No symbolic link is followed, and no FIFO is waited for.
struct StateFile {
    /// The kind of a file.
    enum Kind: Hashable {
        case missing
        case regular
        /// The text of another kind, as in `a FIFO`.
        case other(String)
        /// The kind is not known, because of an errno.
        case unknown(Int32)
    }

    let path: String

    init(_ path: String) { self.path = path }

    /// The kind of the file (lstat(2)).
    var kind: Kind {
        var status = stat()
        guard lstat(path, &status) == 0 else { return errno == ENOENT || errno == ENOTDIR ? .missing : .unknown(errno) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return .regular
        case S_IFLNK: return .other("a symbolic link")
        case S_IFIFO: return .other("a FIFO")
        case S_IFDIR: return .other("a directory")
        case S_IFSOCK: return .other("a socket")
        default: return .other("a device")
        }
    }

    /// The number of bytes; 0 if the file cannot be examined.
    var size: Int {
        var status = stat()
        return lstat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    /// The device and the inode of a file, which no other file has while it exists.
    struct Identity: Hashable, Sendable {
        var device: UInt64
        var inode: UInt64
    }

    /// The identity of the file; `nil` if there is none.
    var identity: Identity? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }

    /// Opens the file for reading. - Returns: the descriptor of a regular file; `nil` for another kind.
    static func open(_ path: String) throws(StoreError) -> Int32? {
        // Without O_NONBLOCK, opening a FIFO waits for a writer.
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            // ELOOP is the error of a symbolic link, ENXIO that of a socket.
            if errno == ELOOP || errno == ENXIO { return nil }
            throw StoreError(.inputOutput, "\(path): \(SystemText.of(errno))")
        }
        guard isRegular(descriptor) else {
            Glibc.close(descriptor)
            return nil
        }
        return descriptor
    }

    /// Whether an open file is a regular one.
    static func isRegular(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// Reads the first bytes: at most `count`.
    func head(_ count: Int) throws(StoreError) -> [UInt8] {
        guard let descriptor = try Self.open(path) else { return [] }
        defer { Glibc.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: count)
        let received = pread(descriptor, &bytes, count, 0)
        guard received >= 0 else { throw StoreError(.inputOutput, "\(path): cannot be read: \(SystemText.of(errno))") }
        return Array(bytes.prefix(received))
    }

    // MARK: Checks

    /// Throws if the file exists and is no regular one.
    func requireRegularOrMissing() throws(StoreError) {
        switch kind {
        case .missing, .regular: return
        case .other(let kind):
            throw StoreError(.refused, "\(path): it is \(kind), not a file; remove it, or choose another --state")
        case .unknown(let number): throw Self.failure(path, number)
        }
    }

    /// Removes the permissions of other users.
    func makePrivate() throws(StoreError) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0 else { return }
        guard chmod(path, status.st_mode & 0o700) == 0 else { throw Self.failure(path, errno) }
    }

    /// The error of a file or a directory that the system refuses.
    static func failure(_ path: String, _ number: Int32) -> StoreError {
        let code: StoreError.Code = number == EACCES || number == EPERM ? .notPermitted : .refused
        return StoreError(code, "\(path): \(SystemText.of(number))")
    }

    /// The reason why a log cannot be one; `nil` for a log. A service that ended before the first bytes were written leaves an empty one.
    func damageOfLog() throws(StoreError) -> String? {
        if case .other(let kind) = kind { return "it is \(kind)" }
        let head = try head(TurnLog.headerSize)
        return head.allSatisfy { $0 == 0 } || TurnLog.Header(head) != nil ? nil : "its first bytes are not those of a log"
    }

    /// Whether SQLite ignores the write-ahead log because its header is damaged (sqlite.org/fileformat2.html, "WAL File Format").
    func isDamagedWriteAheadLog() throws(StoreError) -> Bool {
        guard kind == .regular else { return false }
        let head = try head(32)
        // A log whose first bytes were not written is empty.
        guard head.contains(where: { $0 != 0 }) else { return false }
        guard head.count == 32 else { return true }
        func number(_ place: Int, isBigEndian: Bool = true) -> UInt32 {
            let bytes = head[place..<place + 4]
            return (isBigEndian ? Array(bytes) : bytes.reversed()).reduce(0) { $0 << 8 | UInt32($1) }
        }
        let magic = number(0)
        guard magic & ~1 == 0x377f_0682 else { return true }
        var (first, second): (UInt32, UInt32) = (0, 0)
        for place in stride(from: 0, to: 24, by: 8) {
            first &+= number(place, isBigEndian: magic & 1 == 1) &+ second
            second &+= number(place + 4, isBigEndian: magic & 1 == 1) &+ first
        }
        return number(24) != first || number(28) != second
    }
}
