import FoundationEssentials
import Reachability

/// The files that targets need: authorities, revocation lists and secrets. A file of certificates that many targets name is read once.
struct TargetFiles {
    /// A path that begins so is one of a credential of systemd (systemd.exec(5), `LoadCredential=`).
    static let credentialPrefix = "$CREDENTIALS_DIRECTORY/"

    /// The directory of credentials; `nil` outside a unit of systemd.
    let credentials: String?
    private var trusts: [TrustFiles: TLSProbeSettings] = [:]

    private struct TrustFiles: Hashable {
        var authorities: String?
        var revocationLists: String?
    }

    init(credentials: String?) { self.credentials = credentials }

    /// Reads the files of a target.
    ///
    /// - Parameters:
    ///   - target: the target.
    ///   - reader: receives the errors, at the places of the paths.
    /// - Returns: The settings of the target's probes with the content of its files.
    mutating func settings(of target: ConfiguredTarget, _ reader: inout ConfigurationReader) -> ProbeSettings {
        var settings = target.settings
        var trust = TrustFiles()
        var origins: [String: ConfigurationOrigin] = [:]
        for file in target.files {
            guard let path = path(of: file, &reader) else { continue }
            origins[path] = file.origin
            switch file.purpose {
            case .authorities: trust.authorities = path
            case .revocationLists: trust.revocationLists = path
            case .bearerToken: authorize(&settings, file, path, &reader) { .bearer($0) }
            case .password(let user): authorize(&settings, file, path, &reader) { .basic(user: user, password: $0) }
            }
        }
        guard trust != TrustFiles() else { return settings }
        do {
            var tls = try trusts[trust] ?? load(trust)
            trusts[trust] = tls
            tls.serverName = settings.tls.serverName
            tls.isInsecure = settings.tls.isInsecure
            tls.certificateDays = settings.tls.certificateDays
            settings.tls = tls
        } catch let problem as ConfigurationProblem {
            reader.note(origins["\(problem.origin)"] ?? target.origin, problem.reason)
        } catch { reader.note(target.origin, "\(error)") }
        return settings
    }

    private func load(_ files: TrustFiles) throws -> TLSProbeSettings {
        func load(_ path: String?, _ change: (String) throws -> Void) throws {
            guard let path else { return }
            do { try change(path) } catch { throw ConfigurationProblem(.path(path), "\(error)") }
        }
        var tls = TLSProbeSettings()
        try load(files.authorities) { try tls.trustAuthorities(in: $0) }
        try load(files.revocationLists) { try tls.checkRevocation(by: $0) }
        return tls
    }

    private func authorize(
        _ settings: inout ProbeSettings, _ file: ConfiguredTarget.FileReference, _ path: String,
        _ reader: inout ConfigurationReader,
        _ authorization: (String) -> HTTPProbeSettings.Authorization
    ) {
        do { try settings.http.authorize(by: authorization(try Self.secret(in: path))) } catch {
            reader.note(file.origin, "\(error)")
        }
    }

    /// Returns the path of a file. A relative one is relative to the folder of the configuration's file.
    private func path(of file: ConfiguredTarget.FileReference, _ reader: inout ConfigurationReader) -> String? {
        if file.path.hasPrefix(Self.credentialPrefix) {
            guard let credentials else {
                reader.note(file.origin, "'\(Self.credentialPrefix)' needs a unit of systemd with LoadCredential=")
                return nil
            }
            return "\(credentials)/\(file.path.dropFirst(Self.credentialPrefix.count))"
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
