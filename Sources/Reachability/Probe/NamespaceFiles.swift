internal import CLinux
internal import Glibc

/// Replaces files of `/etc` by those of `/etc/netns/NAME/` for one thread, as `ip netns exec` does for a program (ip-netns(8)).
///
/// The thread receives its own mount namespace, in which the files are bind-mounted over those of the same name. Other threads
/// are not affected. glibc checks the files for each lookup, so threads for several namespaces work in one process.
package enum NamespaceFiles {
    /// The files that libc's resolver reads. ip-netns(8) binds all files of the directory; the others do not affect a lookup.
    static let names = ["resolv.conf", "nsswitch.conf", "hosts"]

    /// The files with which a thread resolves names.
    package enum Outcome: Hashable, Sendable {
        /// The files of `/etc`: the namespace has no directory, or no thread has checked yet.
        case notAsked
        /// The files of `/etc`: the directory exists and contains none of the files.
        case none
        /// These files of the namespace were mounted.
        case arranged([String])
        /// The files of `/etc`, at least for one file, because the mount was refused: EPERM without CAP_SYS_ADMIN or in a
        /// container that forbids mounts, ENOENT if `/etc` has no such file to cover.
        case refused(file: String, errno: Int32)
    }

    /// Mounts the files of a named namespace for the calling thread and the threads that it starts later. A program that runs
    /// inside the namespace calls this before it has other threads.
    @discardableResult
    package static func arrange(forNamespace name: String) -> Outcome { arrange(from: "/etc/netns/\(name)") }

    /// Mounts the files of `directory` for the calling thread. From then on, the thread must only resolve names.
    static func arrange(from directory: String) -> Outcome {
        guard access(directory, F_OK) == 0 else { return .notAsked }
        let present = names.filter { access("\(directory)/\($0)", R_OK) == 0 }
        guard let first = present.first else { return .none }
        // CLONE_NEWNS implies CLONE_FS (unshare(2)): from now on, root and working directory belong to the thread alone.
        guard unshare(netwatch_CLONE_FS | netwatch_CLONE_NEWNS) == 0 else { return .refused(file: first, errno: errno) }
        // Mounts of the system still propagate to the thread, and the thread's mounts do not propagate to the system.
        guard mount("", "/", "none", UInt(MS_SLAVE | MS_REC), nil) == 0 else {
            return .refused(file: first, errno: errno)
        }
        for name in present {
            // mount(2) follows a symbolic link, which /etc/resolv.conf often is, and covers the link's target.
            guard mount("\(directory)/\(name)", "/etc/\(name)", "none", UInt(MS_BIND), nil) == 0 else {
                return .refused(file: name, errno: errno)
            }
        }
        return .arranged(present)
    }
}
