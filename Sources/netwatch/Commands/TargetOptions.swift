import ArgumentParser
import Console
import FoundationEssentials
import Reachability

/// The targets, the deadline of one probe, the packets of probes, and what follows a connection.
///
/// One group, although there are parts: in a debug build, ArgumentParser checks the options of a group five times as often as those of the group
/// that contains it.
struct TargetOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "HOST:PORT, or a target of another kind, as netwatch --help lists them; IPv6 addresses in brackets.",
            valueName: "target"))
    var arguments: [String] = []

    @Option(
        name: .customLong("targets"), parsing: .unconditional,
        help: ArgumentHelp(
            "Also the targets in this file, one a line; '#' begins a comment, '-' is standard input.", valueName: "file"))
    var file: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The deadline of one probe, including name resolution (default: 3s).", valueName: "duration"))
    var probeTimeout: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Send the packets of probes from this address of this machine.", valueName: "address"))
    var sourceAddress: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Give the packets of probes this mark, such as 7 or 0x7 (SO_MARK); needs CAP_NET_ADMIN or CAP_NET_RAW.",
            valueName: "mark"))
    var mark: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Resolve the names of targets by this name server alone: ADDRESS or ADDRESS:PORT.", valueName: "server"))
    var resolver: String?

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

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("A regular expression that the first 64 KiB of the body must not match.", valueName: "expression"))
    var expectNotBody: String?

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A field of the response, and a regular expression for its value. Repeatable.", valueName: "name: expression"))
    var expectHeader: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A field with no value that matches. Repeatable.", valueName: "name: expression"))
    var expectNotHeader: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A value of the body as JSON: '/status equals ok', or differs, above, below, matches, exists. Repeatable.",
            valueName: "pointer comparison value"))
    var expectJson: [String] = []

    @Option(
        parsing: .unconditional, help: ArgumentHelp("The bytes of the body: 100-2000, 100- or -2000.", valueName: "range"))
    var expectSize: String?

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

    /// The targets of the command line.
    var targets: [String] { TargetArguments.split(arguments) }

    /// The targets of the command line, then those of the file.
    ///
    /// - Throws: ``Failure`` with code 64 for a malformed target, or an address of a family that the options exclude. In the file the
    ///   code is 65.
    func endpoints(_ network: NetworkOptions) throws -> [Endpoint] {
        let families = try network.families()
        var endpoints: [Endpoint] = []
        for text in targets {
            let endpoint: Endpoint
            do { endpoint = try Endpoint(text) } catch { throw Failure.usage("target '\(text)'", error.description) }
            // Only the proxy's address is connected to.
            let isBehindProxy = proxy != nil && endpoint.scheme.usesHTTP
            if !isBehindProxy, let problem = endpoint.exclusion(by: families) { throw Failure.usage("target '\(text)'", problem) }
            endpoints.append(endpoint)
        }
        if let file { endpoints += try TargetFile.read(file, families: families) }
        if proxy != nil, !endpoints.isEmpty, !endpoints.contains(where: \.scheme.usesHTTP) {
            throw Failure.usage("--proxy", "no target is http:// or https://; the others are connected to without a proxy")
        }
        var settings = try withPackets(ProbeSettings(families: families))
        if let proxy { try? settings.http.setProxy(proxy, except: request.proxyExceptions) }
        for assignment in assignments { try settings.set(assignment) }
        return try endpoints.map { endpoint in
            if let problem = endpoint.exclusion(bySourceOf: settings) {
                throw Failure.usage("target '\(endpoint.text)'", problem)
            }
            let endpoint = endpoint.scheme.kind.replacement(of: endpoint, settings) ?? endpoint
            if let lack = endpoint.scheme.kind.lack(in: settings) { throw Failure.usage("target '\(endpoint.text)'", lack) }
            return endpoint
        }
    }

    /// Returns the settings with the options for packets, and for what follows a connection.
    func applied(to settings: ProbeSettings) throws(Failure) -> ProbeSettings {
        try withLevels(withPackets(settings))
    }

    /// The texts of the targets of the command line and of the file. For a service, a target may be an identifier or a name of its configuration.
    var names: [String] {
        get throws {
            let names = try targets + (file.map { try TargetFile.read($0, families: [.v4, .v6]).map(\.text) } ?? [])
            guard names.allSatisfy({ !$0.isEmpty }) else { throw Failure.usage("target ''", "is empty") }
            return names
        }
    }

    func timeout() throws(Failure) -> Duration {
        try TimeSpan.option("--probe-timeout", probeTimeout) ?? ProbeSettings().timeout
    }
}

extension TargetOptions {
    /// Returns the settings with the options for packets.
    ///
    /// - Throws: ``Failure`` with code 64 for a value that is not valid.
    private func withPackets(_ settings: ProbeSettings) throws(Failure) -> ProbeSettings {
        var settings = settings
        if let sourceAddress {
            guard let address = RouteSelector.source(parsing: sourceAddress) else {
                throw .usage("--source-address '\(sourceAddress)'", "not the address of a host; write one such as 192.0.2.2")
            }
            settings.sourceAddress = address
        }
        if let mark {
            guard let number = RouteSelector.mark(parsing: mark) else {
                throw .usage("--mark '\(mark)'", "must be a number from 0 to 0xffffffff")
            }
            settings.mark = number
        }
        if let resolver {
            guard let server = NameServerAddress(resolver) else {
                throw .usage(
                    "--resolver '\(resolver)'",
                    "not the address of a name server; write one such as 192.0.2.53 or 192.0.2.53:5353")
            }
            settings.resolver = server
        }
        return settings
    }

    /// Returns the settings with the options for what follows a connection.
    ///
    /// - Throws: ``Failure`` with code 64 for a value that is not valid, 65 for a file whose contents are not valid, 66 for one that
    ///   does not exist, and 77 for one that this user may not read.
    private func withLevels(_ settings: ProbeSettings) throws(Failure) -> ProbeSettings {
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
        try expect(&settings.http)
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

    private func expect(_ http: inout HTTPProbeSettings) throws(Failure) {
        if let expectNotBody {
            do { try http.expectBody(expectNotBody, mustMatch: false) } catch {
                throw .usage("--expect-not-body", error.description)
            }
        }
        try expect(expectHeader, "--expect-header", mustMatch: true, &http)
        try expect(expectNotHeader, "--expect-not-header", mustMatch: false, &http)
        for rule in expectJson {
            let option = "--expect-json \(rule)"
            let words = rule.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard words.count > 1, let comparison = Self.comparison(words[1], words.count > 2 ? String(words[2]) : nil) else {
                throw .usage(option, "write POINTER equals|differs|above|below|matches VALUE, or POINTER exists [true|false]")
            }
            do { try http.expectJSON(String(words[0]), comparison) } catch { throw .usage(option, error.description) }
        }
        if let expectSize { http.bodySizes = try Self.sizes(expectSize) }
    }

    private func expect(
        _ rules: [String], _ option: String, mustMatch: Bool, _ http: inout HTTPProbeSettings
    ) throws(Failure) {
        for rule in rules {
            guard let colon = rule.firstIndex(of: ":") else { throw .usage("\(option) \(rule)", "write NAME: EXPRESSION") }
            let pattern = rule[rule.index(after: colon)...].drop { $0 == " " }
            do { try http.expectField(String(rule[..<colon]), String(pattern), mustMatch: mustMatch) } catch {
                throw .usage("\(option) \(rule)", error.description)
            }
        }
    }

    private static func comparison(_ word: Substring, _ value: String?) -> HTTPProbeSettings.JSONComparison? {
        switch (word, value) {
        case ("equals", let value?): .equals(value)
        case ("differs", let value?): .differs(from: value)
        case ("above", let value?): Double(value).map { .above($0) }
        case ("below", let value?): Double(value).map { .below($0) }
        case ("matches", let value?): .matches(value)
        case ("exists", nil), ("exists", "true"): .exists(true)
        case ("exists", "false"): .exists(false)
        default: nil
        }
    }

    private static func sizes(_ text: String) throws(Failure) -> ClosedRange<Int> {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, text != "-" else { throw .usage("--expect-size \(text)", "write MIN-MAX, MIN- or -MAX") }
        let (least, most) = (ends[0].isEmpty ? 0 : Int(ends[0]), ends[1].isEmpty ? Int.max : Int(ends[1]))
        guard let least, let most, least <= most else { throw .usage("--expect-size \(text)", "write MIN-MAX, MIN- or -MAX") }
        return least...most
    }
}

extension Endpoint {
    /// Returns why the endpoint can never be probed with these families; `nil` if it can. A name may have addresses of any family.
    func exclusion(by families: Set<IPAddress.Family>) -> String? {
        if scheme.kind.isReported { return "reports to a service, which --connect names" }
        guard case .address(let address, _) = host, !families.contains(address.family) else { return nil }
        return address.family == .v4 ? "is an IPv4 address, which -6 excludes" : "is an IPv6 address, which -4 excludes"
    }
}
