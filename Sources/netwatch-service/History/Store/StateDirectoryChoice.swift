import Console

/// The choice of the directory of the history.
extension StateDirectory {
    /// Returns the directory: the configured one, else the service manager's (`$STATE_DIRECTORY`), else the user's (XDG Base Directory
    /// Specification).
    ///
    /// - Throws: ``Failure`` with code 78 if none of them names a directory.
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
}
