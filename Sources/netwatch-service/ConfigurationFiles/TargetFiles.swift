import FoundationEssentials
import Reachability

/// The files that targets need: authorities, revocation lists and secrets.
enum TargetFiles {
    /// A path that begins so is one of a credential of systemd (systemd.exec(5), `LoadCredential=`).
    static let credentialPrefix = "$CREDENTIALS_DIRECTORY/"

    /// Reads the files of a target.
    ///
    /// - Parameters:
    ///   - target: the target.
    ///   - credentials: the directory of credentials; `nil` outside a unit of systemd.
    ///   - reader: receives the errors, at the places of the paths.
    /// - Returns: The settings of the target's probes with the content of its files.
    static func settings(
        of target: ConfiguredTarget, credentials: String?, _ reader: inout ConfigurationReader
    ) -> ProbeSettings {
        var settings = target.settings
        for file in target.files {
            guard let path = path(of: file, credentials, &reader) else { continue }
            do {
                switch file.purpose {
                case .authorities: try settings.tls.trustAuthorities(in: path)
                case .revocationLists: try settings.tls.checkRevocation(by: path)
                case .bearerToken: try settings.http.authorize(by: .bearer(try secret(in: path)))
                case .password(let user):
                    try settings.http.authorize(by: .basic(user: user, password: try secret(in: path)))
                }
            } catch let problem as ConfigurationProblem {
                reader.note(file.origin, "\(problem)")
            } catch {
                reader.note(file.origin, "\(error)")
            }
        }
        return settings
    }

    /// Returns the path of a file. A relative one is relative to the folder of the configuration's file.
    private static func path(
        of file: ConfiguredTarget.FileReference, _ credentials: String?, _ reader: inout ConfigurationReader
    ) -> String? {
        if file.path.hasPrefix(credentialPrefix) {
            guard let credentials else {
                reader.note(file.origin, "'\(credentialPrefix)' needs a unit of systemd with LoadCredential=")
                return nil
            }
            return "\(credentials)/\(file.path.dropFirst(credentialPrefix.count))"
        }
        guard !file.path.hasPrefix("/"), case .file(let source, _, _) = file.origin, let slash = source.lastIndex(of: "/") else {
            return file.path
        }
        return "\(source[..<slash])/\(file.path)"
    }

    /// Reads a secret: the first line of a file.
    private static func secret(in path: String) throws -> String {
        let line = try ConfigurationFile.text(path).prefix { !$0.isNewline }
        guard !line.isEmpty else { throw ConfigurationProblem(.path(path), "its first line is empty") }
        return String(line)
    }
}
