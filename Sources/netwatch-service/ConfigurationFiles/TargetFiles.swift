import ByteComparison
import FoundationEssentials
import Reachability

/// The files that targets need: authorities, revocation lists and secrets. A file that many targets name is read once.
struct TargetFiles {
    /// A path that begins so is one of a credential of systemd (systemd.exec(5), `LoadCredential=`).
    static let credentialPrefix = "$CREDENTIALS_DIRECTORY/"

    /// The directory of credentials; `nil` outside a unit of systemd.
    let credentials: String?
    private var trusts: [TrustFiles: Result<TLSProbeSettings, ConfigurationProblem>] = [:]
    private var secrets: [ExactString: Result<String, ConfigurationProblem>] = [:]
    /// The number of files that were read, or could not be.
    private(set) var readCount = 0

    private struct TrustFiles: Hashable {
        var authorities: ExactString?
        var revocationLists: ExactString?
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
        var origins: [ExactString: ConfigurationOrigin] = [:]
        for file in target.files {
            guard let path = path(of: file, &reader).map({ ExactString($0) }) else { continue }
            origins[path] = file.origin
            switch file.purpose {
            case .authorities: trust.authorities = path
            case .revocationLists: trust.revocationLists = path
            case .bearerToken: authorize(&settings, file, path, &reader) { .bearer($0) }
            case .password(let user): authorize(&settings, file, path, &reader) { .basic(user: user, password: $0) }
            }
        }
        guard trust != TrustFiles() else { return settings }
        switch self.trust(trust) {
        case .success(var tls):
            tls.serverName = settings.tls.serverName
            tls.isInsecure = settings.tls.isInsecure
            tls.certificateDays = settings.tls.certificateDays
            settings.tls = tls
        case .failure(let problem): reader.note(origins[ExactString("\(problem.origin)")] ?? target.origin, problem.reason)
        }
        return settings
    }

    private mutating func trust(_ files: TrustFiles) -> Result<TLSProbeSettings, ConfigurationProblem> {
        if let known = trusts[files] { return known }
        readCount += 1
        let result = Result { () throws(ConfigurationProblem) in try Self.load(files) }
        trusts[files] = result
        return result
    }

    private static func load(_ files: TrustFiles) throws(ConfigurationProblem) -> TLSProbeSettings {
        func load(_ path: ExactString?, _ change: (String) throws -> Void) throws(ConfigurationProblem) {
            guard let path = path?.wrappedValue else { return }
            do { try change(path) } catch { throw ConfigurationProblem(.path(path), "\(error)") }
        }
        var tls = TLSProbeSettings()
        try load(files.authorities) { try tls.trustAuthorities(in: $0) }
        try load(files.revocationLists) { try tls.checkRevocation(by: $0) }
        return tls
    }

    private mutating func authorize(
        _ settings: inout ProbeSettings, _ file: ConfiguredTarget.FileReference, _ path: ExactString,
        _ reader: inout ConfigurationReader,
        _ authorization: (String) -> HTTPProbeSettings.Authorization
    ) {
        do { try settings.http.authorize(by: authorization(try secret(in: path).get())) } catch {
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

    /// Returns a secret: the first line of a file.
    private mutating func secret(in path: ExactString) -> Result<String, ConfigurationProblem> {
        if let known = secrets[path] { return known }
        readCount += 1
        let result = Result { () throws(ConfigurationProblem) in
            let line = try ConfigurationFile.text(path.wrappedValue).prefix { !$0.isNewline }
            guard !line.isEmpty else { throw ConfigurationProblem(.path(path.wrappedValue), "its first line is empty") }
            return String(line)
        }
        secrets[path] = result
        return result
    }
}
