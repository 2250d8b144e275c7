import ArgumentParser
import Console
import Reachability

/// The trust and the expectations of tls, http and https targets.
struct LevelOptions: ParsableArguments {
    @OptionGroup var trust: TrustOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Check certificates against the revocation lists in this file (PEM).", valueName: "file"))
    var crlfile: String?

    @Flag(help: "Accept every certificate; its errors are evidence only.")
    var insecure = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The accepted status codes, such as 200-299,401 (default: 200-299).", valueName: "list"))
    var expectStatus: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("A regular expression (RE2) that the first 64 KiB of the body must match.", valueName: "expression"))
    var expectBody: String?

    @OptionGroup var expectations: ExpectationOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("A certificate that expires sooner degrades its target (default: 14; 0 for never).", valueName: "n"))
    var certificateDays: Int?

    @OptionGroup var request: RequestOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Probe http and https targets through this proxy: http://HOST:PORT.", valueName: "url"))
    var proxy: String?

    @Option(
        name: .customLong("set"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Set a key of a kind of probe, named as in the service's configuration: ping.count=3. Repeatable.",
            valueName: "kind.key=value"))
    var assignments: [String] = []

    /// Returns the settings with the options applied.
    ///
    /// - Throws: ``Failure`` with code 64 for a value that is not valid, 65 for a file whose contents are not valid, 66 for one that
    ///   does not exist, and 77 for one that this user may not read.
    func applied(to settings: ProbeSettings) throws(Failure) -> ProbeSettings {
        var settings = settings
        try trust.trust(in: &settings.tls)
        settings.tls.identity = try trust.identity()
        if let crlfile {
            do { try settings.tls.checkRevocation(by: crlfile) } catch { throw Failure("--crlfile", error) }
        }
        for assignment in assignments { try settings.set(assignment) }
        if insecure { settings.tls.isInsecure = true }
        if let certificateDays {
            guard (0...36_500).contains(certificateDays) else {
                throw .usage("--certificate-days \(certificateDays)", "must be from 0 to 36500")
            }
            settings.tls.certificateDays = certificateDays
        }
        if let expectStatus {
            do { try settings.http.setStatuses(expectStatus) } catch { throw .usage("--expect-status", error.description) }
        }
        if let expectBody {
            do { try settings.http.expectBody(expectBody) } catch { throw .usage("--expect-body", error.description) }
        }
        try expectations.apply(to: &settings.http)
        for field in try request.fields() {
            do { try settings.http.addField(field.name, field.value) } catch { throw .usage(field.place, error.description) }
        }
        if let (name, password) = try request.credential() {
            do { try settings.http.authorize(by: .basic(user: name, password: password)) } catch {
                throw .usage("--user", error.description)
            }
        }
        guard let proxy else {
            guard request.noproxy == nil else {
                throw .usage("--noproxy", "it needs --proxy: probes do not use the proxies of the environment")
            }
            return settings
        }
        do { try settings.http.setProxy(proxy, except: request.proxyExceptions) } catch {
            throw .usage("--proxy", error.description)
        }
        return settings
    }
}
