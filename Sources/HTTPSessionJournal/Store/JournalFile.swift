internal import CLinux
internal import Foundation
internal import Glibc
internal import HTTPSession

/// The journal's files: `journal.sqlite`, and beside it SQLite's write-ahead log.
enum JournalFile {
    /// Creates the journal if it is missing, readable by its owner only, because URLs may be secrets. SQLite gives its other files the same
    /// mode.
    static func create(_ path: String) throws(DurableSessionError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        if let reason = OwnFile.objection(to: descriptor) { throw refusal(path, reason) }
        // SQLite replays the logs that it finds.
        for suffix in ["-wal", "-shm", "-journal"] {
            if let reason = OwnFile.objection(at: path + suffix) { throw refusal(path + suffix, reason) }
        }
    }

    private static func refusal(_ path: String, _ reason: String) -> DurableSessionError {
        DurableSessionError(.journalFailed, "'\(path)' is not used: \(reason)")
    }

    /// Renames a damaged journal.
    ///
    /// - Returns: the new path.
    static func renameDamaged(_ path: String) throws(DurableSessionError) -> String {
        let time = ISO8601DateFormatter()
        time.formatOptions = [.withYear, .withMonth, .withDay, .withTime, .withTimeZone]
        let stem = "\(path).damaged-\(time.string(from: Date()))"
        var other = stem
        var number = 1
        while access(other, F_OK) == 0 {
            number += 1
            other = "\(stem)-\(number)"
        }
        // The log is renamed first: beside a new journal SQLite would replay it into that one.
        for suffix in ["-wal", "-shm", "-journal", ""] where rename(path + suffix, other + suffix) != 0 && errno != ENOENT {
            throw failure(path)
        }
        return other
    }

    private static func failure(_ path: String) -> DurableSessionError {
        DurableSessionError(.journalFailed, "'\(path)': \(String(cString: strerror(errno)))")
    }
}
