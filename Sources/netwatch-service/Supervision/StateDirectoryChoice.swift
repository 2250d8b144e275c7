import Console
import Glibc
import Reachability

/// The directory of the history.
enum StateDirectory {
    /// Returns the directory: the configured one, else the service manager's (`$STATE_DIRECTORY`), else the user's (XDG Base Directory
    /// Specification).
    ///
    /// - Throws: ``Failure`` with code 78 if the environment names none.
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

    /// Creates the directory and its parents, readable by this user alone.
    ///
    /// - Throws: ``Failure`` with code 73, or 77 without permission.
    static func create(_ path: String) throws(Failure) {
        var parent = ""
        for component in path.split(separator: "/") {
            parent += "/\(component)"
            guard mkdir(parent, 0o700) != 0, errno != EEXIST else { continue }
            let number = errno
            // A parent on a read-only file system may exist already.
            if access(parent, F_OK) == 0 { continue }
            throw failure(path, number)
        }
        guard access(path, W_OK | X_OK) == 0 else { throw failure(path, errno) }
    }

    private static func failure(_ path: String, _ number: Int32) -> Failure {
        let isPermission = number == EACCES || number == EPERM
        return Failure(
            isPermission ? ExitCode.notPermitted : ExitCode.cannotCreate,
            "\(path): cannot write the history: \(errorText(number)); name another directory with --state")
    }
}
