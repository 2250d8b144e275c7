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
    /// The time zone of the service; `nil` for that of the system.
    private let timeZone: String?
    private var zones: [ExactString: TimeZoneRules?] = [:]
    private var secrets: [ExactString: Result<String, ConfigurationProblem>] = [:]
    /// The number of files that were read, or could not be.
    private(set) var readCount = 0

    private struct TrustFiles: Hashable {
        var authorities: ExactString?
        var revocationLists: ExactString?
        var certificate: ExactString?
        var privateKey: ExactString?
    }

    init(credentials: String?, timeZone: String? = nil) { (self.credentials, self.timeZone) = (credentials, timeZone) }

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
            case .certificate: trust.certificate = path
            case .privateKey: trust.privateKey = path
            case .proxyCredentials: authorizeProxy(&settings, file, path, &reader)
            case .heartbeatToken: addToken(&settings.heartbeat, file, path, &reader)
            case .bearerToken: authorize(&settings, file, path, &reader) { .bearer($0) }
            case .password(let user): authorize(&settings, file, path, &reader) { .basic(user: user, password: $0) }
            }
        }
        if settings.heartbeat.cron != nil { addZone(&settings.heartbeat, target, &reader) }
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
        try load(files.certificate) { path in
            let certificate = try TLSProbeSettings.contents(of: path)
            guard let keyPath = files.privateKey?.wrappedValue else {
                tls.identity = try TLSProbeSettings.identity(certificate, named: path, key: certificate, named: nil)
                return
            }
            let key = try TLSProbeSettings.contents(of: keyPath)
            tls.identity = try TLSProbeSettings.identity(certificate, named: path, key: key, named: keyPath)
        }
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

    /// The least bytes of a token: those of 128 random bits in base64.
    private static let leastToken = 22

    private mutating func addToken(
        _ heartbeat: inout HeartbeatSettings, _ file: ConfiguredTarget.FileReference, _ path: ExactString,
        _ reader: inout ConfigurationReader
    ) {
        do {
            let token = try secret(in: path).get()
            // Each of them is itself in a path.
            let isWord = token.utf8.allSatisfy { byte in
                0x30...0x39 ~= byte || 0x41...0x5a ~= byte || 0x61...0x7a ~= byte || "-._~+=".utf8.contains(byte)
            }
            guard isWord, token.utf8.count >= Self.leastToken, token.utf8.contains(where: { !(0x30...0x39 ~= $0) }) else {
                throw ConfigurationProblem(
                    .path(path.wrappedValue),
                    "its first line is not a token: write one by 'openssl rand -hex 32', of at least \(Self.leastToken) letters and digits, and not of digits alone"
                )
            }
            heartbeat.tokenDigest = HeartbeatDesk.digest(of: token) ?? []
        } catch { reader.note(file.origin, "\(error)") }
    }

    /// Reads the rules of the time zone of a schedule.
    private mutating func addZone(
        _ heartbeat: inout HeartbeatSettings, _ target: ConfiguredTarget, _ reader: inout ConfigurationReader
    ) {
        let name = heartbeat.timeZone ?? timeZone
        let path = ExactString(name.map { "\(Self.zoneFolder)/\($0)" } ?? "/etc/localtime")
        let known = zones[path] ?? (try? ConfigurationFile.bytes(path.wrappedValue)).flatMap { TimeZoneRules($0) }
        zones[path] = .some(known)
        if let known { return heartbeat.zoneRules = known }
        // Without a file, local time is UTC (tzset(3)).
        if let name = heartbeat.timeZone {
            reader.note(
                target.origin,
                "heartbeat.time_zone: the time zone '\(ConfigurationReader.shown(name))' is not in \(Self.zoneFolder)")
        }
    }

    private static let zoneFolder = "/usr/share/zoneinfo"

    private mutating func authorizeProxy(
        _ settings: inout ProbeSettings, _ file: ConfiguredTarget.FileReference, _ path: ExactString,
        _ reader: inout ConfigurationReader
    ) {
        do {
            let parts = try secret(in: path).get().split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw ConfigurationProblem(.path(path.wrappedValue), "its first line is not USER:PASSWORD")
            }
            try settings.http.authorizeProxy(user: String(parts[0]), password: String(parts[1]))
        } catch { reader.note(file.origin, "\(error)") }
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
