import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import HTTPSession
import HTTPTypes
import Reachability

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

    @OptionGroup var request: RequestOptions

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
    private static let reserved: Set<String> = [
        "range", "if-range", "accept-encoding", "content-range", "upload-offset", "content-length", "transfer-encoding",
        "connection",
    ]

    /// Applies the options except the user to a session, and the authorities also to the probes that find the cause of a failure.
    ///
    /// - Throws: ``Failure`` with code 64 for a value that is not valid, 65 for a file whose contents are not valid, 66 for one that cannot be read, and 77 for
    ///   one that this user may not read.
    func apply(to configuration: inout SessionConfiguration, _ probes: inout TLSProbeSettings) throws(Failure) {
        if let cafile {
            // Read once: it may be a pipe.
            do throws(TLSProbeSettings.FileError) {
                let data = try TLSProbeSettings.contents(of: cafile)
                try probes.trustAuthorities(data, named: cafile)
                configuration.securityPolicy.roots = .given(Set((try? Certificate.all(in: data)) ?? []))
            } catch { throw Failure("--cafile", error) }
        }
        guard cert != nil || key == nil else { throw .usage("--key \(key ?? "")", "it needs --cert") }
        if let cert {
            configuration.clientIdentity = try Self.identity(cert, key)
        }
        for field in try request.fields() { try Self.add(field, to: &configuration) }
        // Read when the session is made.
        if let noproxy { for name in ["no_proxy", "NO_PROXY"] { setenv(name, noproxy, 1) } }
        if let proxy {
            if let problem = ProxyText.problem(proxy) { throw .usage("--proxy", problem) }
            let environment = ProcessInfo.processInfo.environment
            let exceptions = ["no_proxy", "NO_PROXY"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
            let hosts = exceptions.split { $0 == "," || $0.isWhitespace }
            configuration.proxy = .explicit(proxy, except: hosts.map(String.init))
        }
    }

    /// Reads the client certificate, and its key from the same file or another one. Each is read once: it may be a pipe.
    private static func identity(_ cert: String, _ key: String?) throws(Failure) -> ClientIdentity {
        func contents(_ option: String, _ path: String) throws(Failure) -> Data {
            do { return try TLSProbeSettings.contents(of: path) } catch { throw Failure(option, error) }
        }
        let certificate = try contents("--cert", cert)
        guard (try? Certificate.all(in: certificate))?.isEmpty == false else {
            throw Failure(ExitCode.badData, "--cert \(cert): has no certificate that can be read")
        }
        let privateKey = if let key { try contents("--key", key) } else { certificate }
        do { return try ClientIdentity(certificate: certificate, privateKey: privateKey) } catch {
            let place = key.map { "--key \($0)" } ?? "--cert \(cert)"
            guard error.reason.contains("no private key") else {
                throw Failure(ExitCode.badData, "\(place): the private key does not belong to the certificate of \(cert)")
            }
            let remedy = key == nil ? "; name the file of the key with --key" : ""
            throw Failure(ExitCode.badData, "\(place): has no private key that can be read without a passphrase\(remedy)")
        }
    }

    private static func add(_ field: FieldArgument, to configuration: inout SessionConfiguration) throws(Failure) {
        guard let name = HTTPField.Name(field.name) else { throw .usage(field.place, "'\(field.name)' is not a field's name") }
        guard !reserved.contains(name.canonicalName) else { throw .usage(field.place, "the transfer sets this field itself") }
        guard name != .proxyAuthorization else {
            throw .usage(field.place, "the server would receive it too; write --proxy with NAME:PASSWORD@ before the host")
        }
        let sent = HTTPField(name: name, value: field.value)
        guard sent.value.utf8.elementsEqual(field.value.utf8) else {
            throw .usage(field.place, "the value has characters that no field may have")
        }
        if name == .userAgent { configuration.additionalHeaderFields[.userAgent] = nil }
        configuration.additionalHeaderFields.append(sent)
        guard configuration.additionalHeaderFields.repeatedSingleton == nil else {
            throw .usage(field.place, "this field may occur only once")
        }
    }

    /// Returns the handlers that answer challenges of the servers of these URLs by the user and the password; `nil` if there is no user.
    ///
    /// - Throws: ``Failure`` with code 64 for a password among the arguments, or if there is no terminal to ask on.
    func handlers(for urls: [URL]) throws(Failure) -> TransferHandlers? {
        guard let (name, password) = try request.credential() else { return nil }
        let credential = Credential(user: name, password: password)
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
}
