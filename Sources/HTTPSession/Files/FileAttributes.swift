internal import CLinux
internal import FoundationEssentials
internal import Glibc

/// The mode and owner of a finished file: those of the file that it replaces, else what open(2) would give it.
enum FileAttributes {
    /// Sets the attributes of an open file that is about to be renamed to `target`. Permission bits are kept; set-user-ID, set-group-ID and the
    /// sticky bit never are. `isFresh`: without a file to replace, the mode is 0666 less the umask.
    static func adopt(_ descriptor: Int32, from target: String, isFresh: Bool = true) throws(HTTPSessionError) {
        let (ordinary, user) = (0o666 & ~umaskOfProcess(), geteuid())
        var (found, own, parent) = (stat(), stat(), stat())
        guard fstat(descriptor, &own) == 0 else { throw FileFailure.writing(target, errno) }
        guard lstat(target, &found) == 0, found.st_mode & S_IFMT == S_IFREG else {
            if isFresh { try setMode(ordinary, descriptor, target) }
            return
        }
        var mode = found.st_mode & 0o777
        let directory = URL(fileURLWithPath: target).deletingLastPathComponent().path
        if found.st_uid == user || (stat(directory, &parent) == 0 && parent.st_mode & 0o022 == 0) {
            if fchown(descriptor, found.st_uid, found.st_gid) != 0, fchown(descriptor, uid_t.max, found.st_gid) != 0,
                own.st_gid != found.st_gid
            {
                // Another group than before gets no more than everybody has.
                mode = (mode & ~0o070) | (mode & ((mode & 0o007) << 3))
            }
        } else {
            // Somebody else may have put it there for its owner and mode to be taken over.
            mode &= ordinary
        }
        try setMode(mode, descriptor, target)
    }

    /// Takes back what ``adopt(_:from:isFresh:)`` gave: the file keeps its hidden name.
    static func withdraw(_ descriptor: Int32) {
        fchown(descriptor, geteuid(), getegid())
        fchmod(descriptor, 0o600)
    }

    private static func setMode(_ mode: mode_t, _ descriptor: Int32, _ target: String) throws(HTTPSessionError) {
        guard fchmod(descriptor, mode) == 0 else { throw FileFailure.writing(target, errno) }
    }

    /// umask(2) can only be read by changing it; for that moment files of other threads get too strict a mode.
    private static func umaskOfProcess() -> mode_t {
        if let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("Umask:") }),
            let mask = mode_t(line.dropFirst("Umask:".count).drop(while: \.isWhitespace), radix: 8)
        {
            return mask
        }
        let mask = umask(0o077)
        umask(mask)
        return mask
    }
}
