import ByteComparison
import Console
import EventLoop
import FoundationEssentials
import Glibc
import HTTPSession
import Reachability

// MARK: Names, order, limits and content

/// The name of a file with a report that waits: `NAME~SERVICE~TIME~NUMBER.json`. Names are in the order of time within a heartbeat and service.
struct SpooledReport: Hashable, Comparable, Sendable {
    /// The heartbeat's name, which has no `~`.
    @ExactString var name: String
    /// The first 16 hexadecimal digits of the digest of the service's identity.
    @ExactString var service: String
    /// The time of the report in nanoseconds since 1970.
    var time: Int64
    /// A random number, for reports of the same time.
    var number: UInt64

    init(name: String, service: String, time: Int64, number: UInt64) {
        (self.name, self.service, self.time, self.number) = (name, service, max(0, time), number)
    }

    static let suffix = ".json"
    /// The suffix of a file that is set aside because no report is in it.
    static let damagedSuffix = ".damaged"

    /// The name of the file.
    var file: String {
        "\(name)~\(service)~\(Self.padded("\(time)", 20))~\(Self.padded(String(number, radix: 16), 16))\(Self.suffix)"
    }

    /// Reads the name of a file, which may be set aside; `nil` for any other file.
    init?(file: String) {
        var stem = file[...]
        if stem.hasSuffix(Self.damagedSuffix) { stem = stem.dropLast(Self.damagedSuffix.count) }
        guard stem.hasSuffix(Self.suffix) else { return nil }
        let parts = stem.dropLast(Self.suffix.count).split(separator: "~", omittingEmptySubsequences: false)
        guard parts.count == 4, HeartbeatReport.isName(String(parts[0])), let time = Int64(parts[2]), time >= 0,
            let number = UInt64(parts[3], radix: 16)
        else { return nil }
        self.init(name: String(parts[0]), service: String(parts[1]), time: time, number: number)
        // Another spelling of the same numbers would be another file.
        guard stem.utf8.elementsEqual(self.file.utf8) else { return nil }
    }

    /// The key of the lock for the reports to one heartbeat of a service.
    static func lockFile(_ name: String, _ service: String) -> String { "\(name)~\(service).lock" }

    static func < (one: SpooledReport, other: SpooledReport) -> Bool { (one.time, one.number) < (other.time, other.number) }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: "0", count: max(0, width - text.utf8.count)) + text
    }
}

/// The limits of the reports that wait.
enum SpoolLimits {
    /// The number of reports of one heartbeat.
    static let reportsPerName = 100
    /// The bytes of all files.
    static let bytes = 1 << 20

    /// A file of the directory.
    struct Entry: Hashable, Sendable {
        var report: SpooledReport
        var isDamaged = false
        var bytes: Int
    }

    /// Returns the files to remove, the oldest first, so that the others are within the limits. `kept`, the newest report, is never removed: a wrong
    /// clock may have made it the oldest.
    static func surplus(_ entries: [Entry], keeping kept: SpooledReport) -> [Entry] {
        var counts: [ExactString: Int] = [:]
        for entry in entries where !entry.isDamaged { counts[ExactString(entry.report.name), default: 0] += 1 }
        var total = entries.reduce(0) { $0 + $1.bytes }
        return entries.sorted { $0.report < $1.report }.filter { entry in
            let key = ExactString(entry.report.name)
            let isOver = !entry.isDamaged && counts[key, default: 0] > reportsPerName
            guard entry.report != kept, isOver || total > bytes else { return false }
            total -= entry.bytes
            if !entry.isDamaged { counts[key, default: 0] -= 1 }
            return true
        }
    }
}

/// The content of a file: a report, and the service that it is for.
struct SpoolContent: Codable, Hashable, Sendable {
    /// The version of the form.
    private var v = 1
    private(set) var service: String
    private(set) var report: HeartbeatReport

    init(_ report: HeartbeatReport, service: String) { (self.report, self.service) = (report, service) }

    /// Reads the bytes of a file; `nil` unless they are the report that its name announces.
    init?(_ bytes: [UInt8], of entry: SpooledReport) {
        guard let content = try? JSONDecoder().decode(SpoolContent.self, from: Data(bytes)), content.v == 1,
            content.report.name.isExactly(entry.name), content.report.time == entry.time
        else { return nil }
        self = content
        report.body = OutputTail.limited(report.body)
    }

    /// The bytes of the file.
    func bytes() -> [UInt8]? { (try? JSONEncoder().encode(self)).map { [UInt8]($0) } }
}

// MARK: The directory

/// The directory of reports that could not be delivered yet. Its files are readable only by their owner and have no token.
///
/// Every report is stored before it is sent, so that one that is killed, or loses its machine, leaves it to the next run. Files are written under
/// another name and renamed, and a lock for each heartbeat and service keeps two runs from sending the same report.
final class ReportSpool: Sendable {
    /// The greatest size of a file that is read. A longer one was not written by this program.
    private static let longestFile = 128 << 10
    /// The prefix of files that are being written, and the time in seconds after which such a file is left over from a killed process.
    private static let (temporaryPrefix, temporaryLifetime) = (".new-", 3_600)

    let path: String
    private let directory: Int32

    /// Returns the directory by the XDG base directory specification; `nil` if the environment names no home directory.
    static func directory(_ environment: [String: String]) -> String? {
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return "\(state)/netwatch/beat" }
        if let home = environment["HOME"], home.hasPrefix("/") { return "\(home)/.local/state/netwatch/beat" }
        return nil
    }

    /// Opens the directory, or creates it.
    ///
    /// - Throws: ``Failure`` with code 77 if it is a symbolic link, belongs to another user or may be written by others, and with 73 if it cannot be
    ///   created or opened.
    init(_ path: String) throws(Failure) {
        var path = path
        // With a slash at its end, a symbolic link would be followed.
        while path.hasSuffix("/"), path.utf8.count > 1 { path.removeLast() }
        self.path = path
        if let slash = path.lastIndex(of: "/"), slash > path.startIndex {
            try? FileManager.default.createDirectory(
                atPath: String(path[..<slash]), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        let isNew = mkdir(path, 0o700) == 0
        let number = errno
        guard isNew || number == EEXIST else { throw Self.failure("'\(path)' cannot be created", number) }
        var found = stat()
        if lstat(path, &found) == 0, found.st_mode & S_IFMT == S_IFLNK {
            throw Failure(ExitCode.notPermitted, "'\(path)' is not used: it is a symbolic link; name the directory itself")
        }
        directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard directory >= 0 else { throw Self.failure("'\(path)' cannot be opened", errno) }
        guard let reason = OwnFile.objection(to: directory, .directory) else { return }
        // The deinitializer closes the directory: all properties are set.
        throw Failure(ExitCode.notPermitted, "'\(path)' is not used: \(reason)")
    }

    deinit { if directory >= 0 { close(directory) } }

    private static func failure(_ what: String, _ number: Int32) -> Failure {
        Failure(ExitCode.cannotCreate, "\(what): \(errorText(number))")
    }

    // MARK: Writing

    /// Stores a report under a random number for a service, given by its identity and its key in names of files. Removes the oldest reports beyond the limits,
    /// with a line for `note`.
    ///
    /// - Returns: The name of its file.
    /// - Throws: ``Failure`` if the report cannot be written, as on a full or read-only disk.
    func store(
        _ report: HeartbeatReport, for service: (identity: String, key: String), number: UInt64, note: (String) -> Void
    ) throws(Failure) -> SpooledReport {
        let entry = SpooledReport(name: report.name, service: service.key, time: report.time, number: number)
        var report = report
        report.time = entry.time
        guard let bytes = SpoolContent(report, service: service.identity).bytes() else {
            throw Failure(ExitCode.internalError, "the report cannot be encoded")
        }
        try write(bytes, to: entry.file, number: number)
        evict(keeping: entry, note)
        return entry
    }

    private func write(_ bytes: [UInt8], to name: String, number: UInt64) throws(Failure) {
        let temporary = "\(Self.temporaryPrefix)\(String(number, radix: 16))"
        let file = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Self.failure("no file can be created in '\(path)'", errno) }
        // The umask may have taken the owner's permissions.
        var isWritten = fchmod(file, 0o600) == 0 && Self.writeAll(bytes, to: file) && fsync(file) == 0
        var number = errno
        // A network file system may report the error of a write only here.
        if close(file) != 0, isWritten { (isWritten, number) = (false, errno) }
        if isWritten, renameat(directory, temporary, directory, name) != 0 { (isWritten, number) = (false, errno) }
        guard isWritten else {
            unlinkat(directory, temporary, 0)
            throw Self.failure("no file can be written in '\(path)'", number)
        }
        // Some file systems cannot sync directories.
        fsync(directory)
    }

    private static func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
        var remaining = bytes[...]
        while !remaining.isEmpty {
            let count = remaining.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                if count == 0 { errno = ENOSPC }
                return false
            }
            remaining = remaining.dropFirst(count)
        }
        return true
    }

    private func evict(keeping kept: SpooledReport, _ note: (String) -> Void) {
        let surplus = SpoolLimits.surplus(entries(), keeping: kept)
        for entry in surplus { unlinkat(directory, entry.report.file + (entry.isDamaged ? SpooledReport.damagedSuffix : ""), 0) }
        let count = surplus.count { !$0.isDamaged }
        guard count > 0 else { return }
        note(
            "\(count == 1 ? "the oldest waiting report was" : "the \(count) oldest waiting reports were") removed: at most "
                + "\(SpoolLimits.reportsPerName) of a heartbeat, and \(SpoolLimits.bytes >> 20) MiB of all, wait in \(path)")
    }

    // MARK: Reading

    /// The files of the directory that are reports, also those that are set aside. Files that a killed process has not finished are removed.
    private func entries() -> [SpoolLimits.Entry] {
        var entries: [SpoolLimits.Entry] = []
        for file in files() {
            var found = stat()
            guard fstatat(directory, file, &found, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            if file.hasPrefix(Self.temporaryPrefix) {
                if found.st_mtim.tv_sec < time(nil) - Self.temporaryLifetime { unlinkat(directory, file, 0) }
            } else if let report = SpooledReport(file: file) {
                entries.append(
                    .init(report: report, isDamaged: file.hasSuffix(SpooledReport.damagedSuffix), bytes: Int(found.st_size)))
            }
        }
        return entries
    }

    private func files() -> [String] {
        // A descriptor of its own, because fdopendir(3) takes it, and its own position.
        let descriptor = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        guard let stream = fdopendir(descriptor) else {
            close(descriptor)
            return []
        }
        defer { closedir(stream) }
        var files: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            if name != ".", name != ".." { files.append(name) }
        }
        return files
    }

    /// The reports to a heartbeat that wait, oldest first.
    func waiting(_ name: String, _ service: String) -> [SpooledReport] {
        entries().filter { !$0.isDamaged && $0.report.name.isExactly(name) && $0.report.service.isExactly(service) }
            .map(\.report).sorted()
    }

    /// Reads a report; `nil` if it is gone. A file without a report is set aside, with a line for `note`, which has one for a file that cannot be read
    /// too.
    func read(_ entry: SpooledReport, note: (String) -> Void) -> HeartbeatReport? {
        let file = openat(directory, entry.file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else {
            let number = errno
            if number == ELOOP {
                setAside(entry, "it is a symbolic link", note)
            } else if number != ENOENT {
                note("'\(path)/\(entry.file)' cannot be read: \(errorText(number))")
            }
            return nil
        }
        defer { close(file) }
        if let reason = OwnFile.objection(to: file) {
            setAside(entry, reason, note)
            return nil
        }
        guard let bytes = try? DescriptorContents.read(file, atMost: Self.longestFile + 1) else {
            note("'\(path)/\(entry.file)' cannot be read")
            return nil
        }
        guard bytes.count <= Self.longestFile, let content = SpoolContent(bytes, of: entry) else {
            setAside(entry, "it has no report", note)
            return nil
        }
        return content.report
    }

    private func setAside(_ entry: SpooledReport, _ reason: String, _ note: (String) -> Void) {
        let name = entry.file + SpooledReport.damagedSuffix
        guard renameat(directory, entry.file, directory, name) == 0 else { return }
        note("'\(path)/\(entry.file)' is damaged, and set aside as \(name): \(reason)")
    }

    /// Removes a report that is delivered or refused. - Returns: 0, or the errno.
    func remove(_ entry: SpooledReport) -> Int32 {
        unlinkat(directory, entry.file, 0) == 0 || errno == ENOENT ? 0 : errno
    }

    // MARK: The lock

    /// The lock for the delivery to one heartbeat of a service (flock(2)), which ends with the object or the process.
    final class Lock: Sendable {
        private let file: Int32

        fileprivate init(_ file: Int32) { self.file = file }

        deinit {
            // A child that begins has a copy of the descriptor until its execve(2).
            flock(file, LOCK_UN)
            close(file)
        }
    }

    /// Takes the lock; `nil` if another run has it. The file remains, because a lock on a file that is removed keeps nobody out.
    ///
    /// - Throws: ``Failure`` if it cannot be opened, as on a read-only disk.
    func lock(_ name: String, _ service: String) throws(Failure) -> Lock? {
        let lockFile = SpooledReport.lockFile(name, service)
        let file = openat(directory, lockFile, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Self.failure("'\(path)/\(lockFile)' cannot be opened", errno) }
        if let reason = OwnFile.objection(to: file) {
            close(file)
            throw Failure(ExitCode.cannotCreate, "'\(path)/\(lockFile)' is not used: \(reason)")
        }
        LockFile.makePrivate(file)
        if flock(file, LOCK_EX | LOCK_NB) == 0 { return Lock(file) }
        let number = errno
        close(file)
        guard number == EWOULDBLOCK else { throw Self.failure("'\(path)/\(lockFile)' cannot be locked", number) }
        return nil
    }
}
