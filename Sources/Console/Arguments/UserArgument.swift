import Wire

/// The user of `--user NAME`, whose password is asked for on the terminal, or of `--user @FILE`.
package enum UserArgument {
    /// Reads the user and the password.
    ///
    /// - Throws: ``Failure`` with code 64 for a password among the arguments, or if there is no terminal to ask on or no line
    ///   is typed; 66 for a file that cannot be read,
    ///   and 65 for one whose first line is not `NAME:PASSWORD`.
    package static func read(_ user: String) throws(Failure) -> (name: String, password: String) {
        if user.hasPrefix("@") {
            let line = try ArgumentFile.lines(of: user, "--user").first ?? ""
            guard let colon = line.firstIndex(of: ":") else {
                throw Failure(ExitCode.badData, "--user \(user): the first line is not NAME:PASSWORD")
            }
            return (String(line[..<colon]), String(line[line.index(after: colon)...]))
        }
        guard !user.contains(":") else {
            throw .usage("--user", "other users can read a password among the arguments; write --user NAME or --user @FILE")
        }
        let name = user.filter { !$0.unicodeScalars.contains(where: UnsafeCharacters.contain) }
        do throws(PasswordPrompt.Problem) {
            return (user, try PasswordPrompt.read("password of \(name): "))
        } catch {
            switch error {
            case .noTerminal:
                throw .usage("--user \(user)", "there is no terminal to ask for the password; write --user @FILE")
            case .noLine: throw .usage("--user \(user)", "no password was read")
            case .notText: throw .usage("--user \(user)", "the password is not UTF-8")
            }
        }
    }
}
