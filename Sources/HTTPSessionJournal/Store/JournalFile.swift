internal import CLinux
internal import Foundation
internal import Glibc
internal import HTTPSession

/// The journal's files: `journal.sqlite`, and beside it what SQLite has not put into it yet.
enum JournalFile {
    /// For its owner's eyes: addresses may be secrets. SQLite gives its other files the same mode.
    static func make(_ path: String) throws(DurableSessionError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        if let reason = OwnFile.objection(to: descriptor) { throw refusal(path, reason) }
        // SQLite replays what lies there.
        for suffix in ["-wal", "-shm", "-journal"] {
            if let reason = OwnFile.objection(at: path + suffix) { throw refusal(path + suffix, reason) }
        }
    }

    private static func refusal(_ path: String, _ reason: String) -> DurableSessionError {
        DurableSessionError(.journalFailed, "'\(path)' is not used: \(reason)")
    }

    /// Gives a damaged journal another name. - Returns: that name.
    static func setAside(_ path: String) throws(DurableSessionError) -> String {
        let time = ISO8601DateFormatter()
        time.formatOptions = [.withYear, .withMonth, .withDay, .withTime, .withTimeZone]
        let stem = "\(path).damaged-\(time.string(from: Date()))"
        var other = stem
        var number = 1
        while access(other, F_OK) == 0 {
            number += 1
            other = "\(stem)-\(number)"
        }
        // The log goes first: beside a fresh journal it could be taken for that one's.
        for suffix in ["-wal", "-shm", "-journal", ""] where rename(path + suffix, other + suffix) != 0 && errno != ENOENT {
            throw failure(path)
        }
        return other
    }

    private static func failure(_ path: String) -> DurableSessionError {
        DurableSessionError(.journalFailed, "'\(path)': \(String(cString: strerror(errno)))")
    }
}
