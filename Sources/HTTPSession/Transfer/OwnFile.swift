internal import CLinux
internal import Glibc

/// The check that keeps files of other users out of transfers, and files that other users can write to.
package enum OwnFile {
    package enum Kind: Sendable {
        /// A regular file with one name: a second hard link may be another user's.
        case file
        /// A directory; its number of links says nothing.
        case directory
    }

    /// The reason why the open file, or directory, must not be used, and the remedy; `nil`: it may be used.
    package static func objection(to descriptor: Int32, _ kind: Kind = .file) -> String? {
        var found = stat()
        guard fstat(descriptor, &found) == 0 else { return FileFailure.text(errno) }
        return objection(to: found, kind, user: geteuid())
    }

    /// The same for what lies at a path, without following a symbolic link; `nil` also if nothing is there.
    package static func objection(at path: String, _ kind: Kind = .file) -> String? {
        var found = stat()
        guard lstat(path, &found) == 0 else { return nil }
        return objection(to: found, kind, user: geteuid())
    }

    static func objection(to found: stat, _ kind: Kind, user: uid_t) -> String? {
        switch kind {
        case .file:
            guard found.st_mode & S_IFMT == S_IFREG else { return "it is no regular file; remove it or choose another place" }
            guard found.st_uid == user else { return foreign(found) }
            guard found.st_nlink <= 1 else { return "it has \(found.st_nlink) hard links; replace it by a copy, or remove it" }
        case .directory:
            guard found.st_mode & S_IFMT == S_IFDIR else { return "it is no directory; remove it or choose another place" }
            guard found.st_uid == user else { return foreign(found) }
        }
        // The bits of a group are the mask of an access control list, so that this covers its entries too (man 5 acl).
        guard found.st_mode & 0o022 == 0 else { return "other users may write to it; check it, and run chmod go-w" }
        return nil
    }

    private static func foreign(_ found: stat) -> String {
        "it belongs to user \(found.st_uid); remove it, change its owner or choose another place"
    }

    /// Whether the path still names the open file.
    static func isFile(_ descriptor: Int32, at path: String) -> Bool {
        var (here, there) = (stat(), stat())
        return fstat(descriptor, &here) == 0 && lstat(path, &there) == 0 && here.st_ino == there.st_ino
            && here.st_dev == there.st_dev
    }
}
