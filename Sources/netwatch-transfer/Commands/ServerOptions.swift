import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import HTTPSession
import HTTPTypes

/// The trust, the credentials, the fields and the proxy of `get` and `put`, named as in curl.
struct ServerOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Trust the authorities in this file (PEM) instead of the system's.", valueName: "file"))
    var cafile: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The client certificate with its chain (PEM), for servers that require one.", valueName: "file"))
    var cert: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The private key of --cert (PEM); default: in the same file.", valueName: "file"))
    var key: String?

    @Option(
        name: [.customShort("H"), .customLong("header")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A header field, 'Name: value'; @FILE reads one from each line. May be repeated.", valueName: "field"))
    var headers: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The user's name; the password is asked for on the terminal. @FILE reads NAME:PASSWORD from the first line.",
            valueName: "name"))
    var user: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The proxy: http://, https://, socks5://, … (default: http_proxy, https_proxy, all_proxy).", valueName: "url"))
    var proxy: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The hosts that need no proxy, or * for all (default: no_proxy).", valueName: "list"))
    var noproxy: String?

    /// Fields that the transfer itself decides about.
    private static let reserved: Set<String> = ["range", "if-range", "accept-encoding", "content-range", "upload-offset"]

    /// Applies the options except ``user`` to a session.
    ///
    /// - Throws: ``Failure`` with code 64 for a value that is not valid, 65 for a file whose contents are not valid, and 66 for one that cannot be read.
    func apply(to configuration: inout SessionConfiguration) throws(Failure) {
        if let cafile {
            do {
                configuration.securityPolicy.roots = .given(Set(try Certificate.all(inFile: URL(fileURLWithPath: cafile))))
            } catch {
                throw Self.failure("--cafile", cafile, error)
            }
        }
        guard cert != nil || key == nil else { throw .usage("--key \(key ?? "")", "it needs --cert") }
        if let cert {
            do { configuration.clientIdentity = try ClientIdentity(certificateFile: cert, privateKeyFile: key ?? cert) } catch {
                throw Self.failure("--cert", cert, error)
            }
        }
        for header in headers { try Self.add(header, to: &configuration) }
        // Read when the session is made.
        if let noproxy { for name in ["no_proxy", "NO_PROXY"] { setenv(name, noproxy, 1) } }
        if let proxy {
            let exceptions = (noproxy ?? ProcessInfo.processInfo.environment["no_proxy"] ?? "").split { $0 == "," || $0 == " " }
            configuration.proxy = .explicit(proxy, except: exceptions.map(String.init))
        }
    }

    private static func add(_ header: String, to configuration: inout SessionConfiguration) throws(Failure) {
        guard header.hasPrefix("@") else { return try add(line: header, "-H '\(header)'", to: &configuration) }
        let name = String(header.dropFirst())
        for (number, line) in try lines(of: name, "-H").enumerated() where !line.isEmpty {
            try add(line: line, "-H \(header): line \(number + 1)", to: &configuration)
        }
    }

    private static func add(line: String, _ place: String, to configuration: inout SessionConfiguration) throws(Failure) {
        guard let colon = line.firstIndex(of: ":"), let name = HTTPField.Name(String(line[..<colon])) else {
            throw .usage(place, "write a field as 'Name: value'")
        }
        guard !reserved.contains(name.canonicalName) else { throw .usage(place, "the transfer sets this field itself") }
        let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        let field = HTTPField(name: name, value: String(value))
        guard field.value.utf8.elementsEqual(value.utf8) else {
            throw .usage(place, "the value has characters that no field may have")
        }
        if name == .userAgent { configuration.additionalHeaderFields[.userAgent] = nil }
        configuration.additionalHeaderFields.append(field)
    }

    /// Returns the handlers that answer challenges of the servers of these URLs by ``user`` and its password; `nil` if there is no user.
    ///
    /// - Throws: ``Failure`` with code 64 for a password among the arguments, or if there is no terminal to ask on.
    func handlers(for urls: [URL]) throws(Failure) -> TransferHandlers? {
        guard let user else { return nil }
        let credential = try Self.credential(user)
        let origins = Set(urls.compactMap(Origin.init))
        var handlers = TransferHandlers()
        handlers.challenge = { challenge in
            guard !challenge.protectionSpace.isProxy, origins.contains(challenge.protectionSpace.origin) else {
                return .performDefaultHandling
            }
            return .useCredential(credential)
        }
        return handlers
    }

    private static func credential(_ user: String) throws(Failure) -> Credential {
        if user.hasPrefix("@") {
            let name = String(user.dropFirst())
            let line = try lines(of: name, "--user").first ?? ""
            guard let colon = line.firstIndex(of: ":") else {
                throw Failure(ExitCode.badData, "--user \(user): the first line is not NAME:PASSWORD")
            }
            return Credential(user: String(line[..<colon]), password: String(line[line.index(after: colon)...]))
        }
        guard !user.contains(":") else {
            throw .usage("--user", "other users can read a password among the arguments; write --user NAME or --user @FILE")
        }
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard terminal >= 0 else {
            throw .usage("--user \(user)", "there is no terminal to ask for the password; write --user @FILE")
        }
        close(terminal)
        guard
            let password = getpass(
                "password of \(user.filter { !$0.unicodeScalars.contains(where: UnsafeCharacters.contain) }): ")
        else { throw .usage("--user \(user)", "no password was read") }
        return Credential(user: user, password: String(cString: password))
    }

    private static func lines(of name: String, _ option: String) throws(Failure) -> [String] {
        let bytes: Data
        do { bytes = try Data(contentsOf: URL(fileURLWithPath: name)) } catch {
            throw Failure(ExitCode.noInput, "\(option) @\(name): cannot be read")
        }
        guard bytes.count <= 1 << 20, let text = String(validating: bytes, as: UTF8.self) else {
            throw Failure(ExitCode.badData, "\(option) @\(name): it is not a text of at most 1 MiB")
        }
        return text.split(omittingEmptySubsequences: false) { $0.isNewline }.map(String.init)
    }

    private static func failure(_ option: String, _ name: String, _ error: HTTPSessionError) -> Failure {
        Failure(access(name, R_OK) == 0 ? ExitCode.badData : ExitCode.noInput, "\(option): \(error.reason)")
    }
}
