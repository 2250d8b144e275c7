internal import CLinux
internal import FoundationEssentials
internal import Glibc

/// The mode and owner of a finished file: those of the file that it replaces, or those that open(2) would set.
enum FileAttributes {
    /// Sets the attributes of an open file that will be renamed to `target`.
    ///
    /// Permission bits are copied from a file that is replaced; set-user-ID, set-group-ID and the sticky bit are not. If no file is replaced and
    /// `isFresh` is set, the mode is 0666 without the bits of the umask.
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
                // If the group differs from the old one, it gets no more permissions than all users have.
                mode = (mode & ~0o070) | (mode & ((mode & 0o007) << 3))
            }
        } else {
            // Another user may have created the file so that its owner and mode are copied.
            mode &= ordinary
        }
        try setMode(mode, descriptor, target)
    }

    /// Reverts ``adopt(_:from:isFresh:)`` for a file whose rename failed.
    static func withdraw(_ descriptor: Int32) {
        fchown(descriptor, geteuid(), getegid())
        fchmod(descriptor, 0o600)
    }

    private static func setMode(_ mode: mode_t, _ descriptor: Int32, _ target: String) throws(HTTPSessionError) {
        guard fchmod(descriptor, mode) == 0 else { throw FileFailure.writing(target, errno) }
    }

    // umask(2) returns the mask only when it sets another one; files that other threads create meanwhile get too strict a mode. So /proc is first.
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
