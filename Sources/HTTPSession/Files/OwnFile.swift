internal import CLinux
internal import Glibc

/// The check that refuses files of other users, and files that other users can write to.
package enum OwnFile {
    package enum Kind: Sendable {
        /// A regular file with one hard link: another user may have made a second one.
        case file
        /// A directory, whose number of links is not checked.
        case directory
        /// A file that a download has finished. The user's private group may write to it, because a umask of 002 permits that for every file.
        case finished
    }

    /// The reason why the open file or directory must not be used, with the remedy; `nil` if it may be used.
    package static func objection(to descriptor: Int32, _ kind: Kind = .file) -> String? {
        var found = stat()
        guard fstat(descriptor, &found) == 0 else { return FileFailure.text(errno) }
        // With an access control list, the group's bits are a mask and not the permissions of the group.
        if kind == .finished, fgetxattr(descriptor, "system.posix_acl_access", nil, 0) < 0 { ignorePrivateGroup(&found) }
        return objection(to: found, kind, user: geteuid())
    }

    /// The reason why the file or directory at a path must not be used; `nil` if it may be used or does not exist. Symbolic links are not followed.
    package static func objection(at path: String, _ kind: Kind = .file) -> String? {
        var found = stat()
        guard lstat(path, &found) == 0 else { return nil }
        if kind == .finished { ignorePrivateGroup(&found) }
        return objection(to: found, kind, user: geteuid())
    }

    static func objection(to found: stat, _ kind: Kind, user: uid_t) -> String? {
        switch kind {
        case .file, .finished:
            guard found.st_mode & S_IFMT == S_IFREG else { return "it is not a regular file; remove it or choose another path" }
            guard found.st_uid == user else { return foreign(found) }
            guard found.st_nlink <= 1 else { return "it has \(found.st_nlink) hard links; replace it by a copy, or remove it" }
        case .directory:
            guard found.st_mode & S_IFMT == S_IFDIR else { return "it is not a directory; remove it or choose another path" }
            guard found.st_uid == user else { return foreign(found) }
        }
        // With an access control list, the group's bits are its mask, so that this check covers its entries too (man 5 acl).
        guard found.st_mode & 0o022 == 0 else { return "other users may write to it; check it, and run chmod go-w" }
        return nil
    }

    /// Removes the group's write permission from the mode if the group is the user's private group: of the same name, without other members.
    private static func ignorePrivateGroup(_ found: inout stat) {
        guard found.st_mode & 0o020 != 0, found.st_gid == getegid() else { return }
        var (user, group) = (passwd(), Glibc.group())
        var (userResult, groupResult): (UnsafeMutablePointer<passwd>?, UnsafeMutablePointer<group>?)
        var (userText, groupText) = ([CChar](repeating: 0, count: 16 << 10), [CChar](repeating: 0, count: 64 << 10))
        guard getpwuid_r(geteuid(), &user, &userText, userText.count, &userResult) == 0, userResult != nil,
            getgrgid_r(found.st_gid, &group, &groupText, groupText.count, &groupResult) == 0, groupResult != nil,
            user.pw_gid == group.gr_gid, strcmp(user.pw_name, group.gr_name) == 0
        else { return }
        var member = group.gr_mem
        while let name = member?.pointee {
            guard strcmp(name, user.pw_name) == 0 else { return }
            member = member?.successor()
        }
        found.st_mode &= ~0o020
    }

    private static func foreign(_ found: stat) -> String {
        "it belongs to user \(found.st_uid); remove it, change its owner or choose another path"
    }

    /// Removes the permissions of other users from an open file. File systems without permissions refuse that, so an error is ignored.
    static func makePrivate(_ descriptor: Int32) {
        var found = stat()
        guard fstat(descriptor, &found) == 0, found.st_mode & 0o077 != 0 else { return }
        fchmod(descriptor, found.st_mode & 0o700)
    }

    /// Whether the path still names the open file.
    static func isFile(_ descriptor: Int32, at path: String) -> Bool {
        var (here, there) = (stat(), stat())
        return fstat(descriptor, &here) == 0 && lstat(path, &there) == 0 && here.st_ino == there.st_ino
            && here.st_dev == there.st_dev
    }
}
