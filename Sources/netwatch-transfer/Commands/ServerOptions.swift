import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import HTTPSession
import HTTPTypes
import Reachability

/// The trust, the credentials, the fields and the proxy of `get` and `put`, named as in curl.
struct ServerOptions: ParsableArguments {
    @OptionGroup var trust: TrustOptions

    @OptionGroup var request: RequestOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The proxy: http://, https://, socks5://, … (default: http_proxy, https_proxy, all_proxy).", valueName: "url"))
    var proxy: String?

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
        try trust.apply(to: &configuration, &probes)
        for field in try request.fields() { try Self.add(field, to: &configuration) }
        // Read when the session is made.
        if let noproxy = request.noproxy { for name in ["no_proxy", "NO_PROXY"] { setenv(name, noproxy, 1) } }
        if let proxy {
            if let problem = ProxyText.problem(proxy) { throw .usage("--proxy", problem) }
            let hosts = request.proxyExceptions.split { $0 == "," || $0.isWhitespace }
            configuration.proxy = .explicit(proxy, except: hosts.map(String.init))
        }
    }

    private static func add(_ field: FieldArgument, to configuration: inout SessionConfiguration) throws(Failure) {
        guard let name = HTTPField.Name(field.name) else { throw .usage(field.place, "'\(field.name)' is not a field's name") }
        guard !reserved.contains(name.canonicalName) else { throw .usage(field.place, "the transfer sets this field itself") }
        let sent = HTTPField(name: name, value: field.value)
        guard sent.value.utf8.elementsEqual(field.value.utf8) else {
            throw .usage(field.place, "the value has characters that no field may have")
        }
        if name == .userAgent { configuration.additionalHeaderFields[.userAgent] = nil }
        configuration.additionalHeaderFields.append(sent)
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
            // A user and a password answer no challenge for a token; the response may have another one.
            return challenge.scheme == .bearer ? .rejectProtectionSpace : .useCredential(credential)
        }
        return handlers
    }
}

extension TrustOptions {
    /// Applies the authorities and the client certificate to a session, and the authorities also to probes.
    ///
    /// - Throws: ``Failure``, see ``trust(in:)`` and ``identity()``.
    func apply(to configuration: inout SessionConfiguration, _ probes: inout TLSProbeSettings) throws(Failure) {
        if let authorities = try trust(in: &probes) {
            configuration.securityPolicy.roots = .given(Set((try? Certificate.all(in: authorities)) ?? []))
        }
        if let identity = try identity() { configuration.clientIdentity = ClientIdentity(identity) }
    }
}
