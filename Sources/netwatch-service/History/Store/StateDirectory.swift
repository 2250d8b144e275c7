import Console
import EventLoop
import Glibc
import Pacing

/// The state directory: its lock, and the names of its files.
///
/// | file | content |
/// |---|---|
/// | `history.sqlite`, with `-wal` and `-shm` | the database |
/// | `recent-N.dat` | the logs of the turns since the last checkpoint, with increasing numbers |
/// | `alive` | nothing; its time is the last one at which the service ran and could not record |
/// | `lock` | the number of the process that has the directory open |
struct StateDirectory: Sendable {
    let path: String

    var database: String { "\(path)/history.sqlite" }
    /// The files that SQLite opens.
    var databaseFiles: [StateFile] { ["", "-wal", "-shm", "-journal"].map { StateFile(database + $0) } }
    func log(_ generation: UInt64) -> String { "\(path)/recent-\(generation).dat" }

    private var alive: String { "\(path)/alive" }

    /// Notes that the service runs at a time (milliseconds since 1970) and cannot record it. A full disk has room for the time of a file.
    func noteLife(at time: Int64) {
        let (seconds, milliseconds) = time.quotientAndRemainder(dividingBy: 1_000)
        let moment = timespec(tv_sec: Int(seconds), tv_nsec: Int(milliseconds) * 1_000_000)
        if utimensat(AT_FDCWD, alive, [moment, moment], AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT { return }
        let descriptor = open(alive, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        futimens(descriptor, [moment, moment])
        close(descriptor)
    }

    /// The time of the last ``noteLife(at:)`` in milliseconds since 1970; `nil` if there is none.
    var lastLife: Int64? {
        var status = stat()
        guard lstat(alive, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return SampleBlock.limited(Int64(status.st_mtim.tv_sec).multipliedSaturated(by: 1_000))
            + Int64(status.st_mtim.tv_nsec / 1_000_000)
    }

    /// The numbers of the logs in the directory, the lowest first.
    var generations: [UInt64] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var found: [UInt64] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasPrefix("recent-"), name.hasSuffix(".dat") else { continue }
            let digits = name.dropFirst(7).dropLast(4)
            if digits.allSatisfy(\.isNumber), let number = UInt64(digits), number < 1 << 62 { found.append(number) }
        }
        return found.sorted()
    }

    /// Creates the directory if it is missing, for this user alone, with the directories above it.
    func create() throws(StoreError) {
        var prefix = ""
        let parts = path.split(separator: "/", omittingEmptySubsequences: true)
        for (place, part) in parts.enumerated() {
            let isLast = place == parts.count - 1
            prefix += prefix.isEmpty && !path.hasPrefix("/") ? String(part) : "/\(part)"
            guard mkdir(prefix, isLast ? 0o700 : 0o755) != 0, errno != EEXIST else { continue }
            let number = errno
            var status = stat()
            // A directory that exists on a read-only file system, or below one that cannot be written.
            if stat(prefix, &status) == 0 { continue }
            throw StoreError(.refused, "\(prefix): cannot be created: \(SystemText.of(number))")
        }
    }

    /// Checks that no other user can create, replace or remove files in the directory.
    func requireOwnership() throws(StoreError) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw StoreError(.refused, "\(path): \(SystemText.of(errno))") }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw StoreError(.refused, "\(path): not a directory") }
        guard status.st_uid == geteuid() else {
            throw StoreError(
                .refused, "\(path): the directory belongs to user \(status.st_uid), not to \(geteuid()); choose another --state")
        }
        guard status.st_mode & 0o022 == 0 else {
            throw StoreError(
                .refused, "\(path): other users may write to the directory; run 'chmod go-w' on it, or choose another --state")
        }
    }

    /// Sets aside the files with names of logs that are none. - Returns: a line for each of them.
    func setAsideDamagedLogs(time: Int64) throws(StoreError) -> [String] {
        var notes: [String] = []
        for generation in generations {
            let log = log(generation)
            try StateFile(log).makePrivate()
            guard let reason = try StateFile(log).damageOfLog() else { continue }
            let damaged = try setAside(log, time: time)
            notes.append("\(log): damaged (\(reason)); it is now \(damaged), and its results are missing")
        }
        return notes
    }

    /// Renames a file that is damaged, with the files that belong to it. - Returns: the new path.
    func setAside(_ file: String, time: Int64) throws(StoreError) -> String {
        let stem = "\(file).damaged-\(SystemText.stamp(time))"
        var other = stem
        var number = 1
        while access(other, F_OK) == 0 {
            number += 1
            other = "\(stem)-\(number)"
        }
        // The write-ahead log is renamed first: SQLite would replay it into the new database.
        for suffix in ["-wal", "-shm", "-journal", ""] where rename(file + suffix, other + suffix) != 0 && errno != ENOENT {
            throw StoreError(.inputOutput, "\(file): cannot be renamed: \(SystemText.of(errno))")
        }
        return other
    }

    /// Writes names that were created or removed to the disk.
    func sync() {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}

/// Texts of errors and times.
enum SystemText {
    /// The text of an errno.
    static func of(_ number: Int32) -> String { String(cString: strerror(number)) }

    /// The time in UTC, as in `20261125T120000Z`. - Parameter time: milliseconds since 1970.
    static func stamp(_ time: Int64) -> String {
        var seconds = time_t(time / 1_000)
        var parts = tm()
        guard gmtime_r(&seconds, &parts) != nil else { return "\(time)" }
        var text = [CChar](repeating: 0, count: 32)
        let count = strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &parts)
        return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The choice of the directory of the history.
extension StateDirectory {
    /// Returns the directory: the configured one, else the service manager's (`$STATE_DIRECTORY`), else the user's (XDG Base Directory
    /// Specification).
    ///
    /// - Throws: ``Failure`` with code 78 if none of them names a directory.
    static func path(configured: String?, _ environment: [String: String]) throws(Failure) -> String {
        if let configured { return configured }
        // The manager separates several directories by colons.
        if let first = environment["STATE_DIRECTORY"]?.split(separator: ":").first, first.hasPrefix("/") { return String(first) }
        if let folder = environment["XDG_STATE_HOME"], folder.hasPrefix("/") { return "\(folder)/netwatch" }
        guard let home = environment["HOME"], home.hasPrefix("/") else {
            throw Failure(ExitCode.configuration, "state: HOME is not set; name the directory with --state")
        }
        return "\(home)/.local/state/netwatch"
    }
}
