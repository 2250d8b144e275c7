internal import CLinux
internal import Glibc

/// The files of `/etc/netns/NAME/` in the place of those of `/etc`, for one thread, as `ip netns exec` arranges them for a
/// program (ip-netns(8)).
///
/// The thread gets a mount namespace of its own, in which the files are bound over their namesakes; no other thread sees that.
/// glibc looks at the files again for each lookup, so that threads of several namespaces stay apart in one process.
package enum NamespaceFiles {
    /// What the resolver of libc reads. ip-netns(8) binds everything in the directory; nothing else matters to a lookup.
    static let names = ["resolv.conf", "nsswitch.conf", "hosts"]

    /// Whose files a thread resolves names with.
    package enum Outcome: Hashable, Sendable {
        /// Those of `/etc`: there is no directory for the namespace, or no thread has looked yet.
        case notAsked
        /// Those of `/etc`: the directory is there and has none of them.
        case none
        /// These were put in place.
        case arranged([String])
        /// Those of `/etc`, at least for one file: the mount was refused. EPERM without CAP_SYS_ADMIN or in a container that
        /// forbids mounts, ENOENT when `/etc` has no such file to bind over.
        case refused(file: String, errno: Int32)
    }

    /// Arranges the files of a namespace that has a name for the calling thread and for those that it starts from now on: for a program
    /// that lives in it, before it has other threads.
    @discardableResult
    package static func arrange(forNamespace name: String) -> Outcome { arrange(from: "/etc/netns/\(name)") }

    /// Arranges the files of `directory` for the calling thread, which shall do nothing but resolve names from now on.
    static func arrange(from directory: String) -> Outcome {
        guard access(directory, F_OK) == 0 else { return .notAsked }
        let present = names.filter { access("\(directory)/\($0)", R_OK) == 0 }
        guard let first = present.first else { return .none }
        // CLONE_NEWNS takes CLONE_FS along (unshare(2)): root and working directory are the thread's own from here on.
        guard unshare(netwatch_CLONE_FS | netwatch_CLONE_NEWNS) == 0 else { return .refused(file: first, errno: errno) }
        // Mounts of the system still arrive, ours do not leave.
        guard mount("", "/", "none", UInt(MS_SLAVE | MS_REC), nil) == 0 else {
            return .refused(file: first, errno: errno)
        }
        for name in present {
            // mount(2) follows a symbolic link, as /etc/resolv.conf often is: the file that it points to is covered.
            guard mount("\(directory)/\(name)", "/etc/\(name)", "none", UInt(MS_BIND), nil) == 0 else {
                return .refused(file: name, errno: errno)
            }
        }
        return .arranged(present)
    }
}
