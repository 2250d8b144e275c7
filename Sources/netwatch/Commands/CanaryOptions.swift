import ArgumentParser
import Console
import Reachability

/// The canary: a URL whose answer is known, so that another answer shows a captive portal. Without the option, nothing is requested.
struct CanaryOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Also request this URL, which answers 204; another answer is that of a captive portal.", valueName: "url"))
    var canary: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The canary answers 200-299 with a body that contains this text.", valueName: "text"))
    var canaryBody: String?

    /// Validates the options.
    ///
    /// - Parameters:
    ///   - settings: the settings of targets. Their expectations do not apply to the canary.
    ///   - network: the options for address families.
    /// - Returns: the canary with the settings of its probes; `nil` without one.
    /// - Throws: ``Failure`` with code 64 for a malformed URL, an empty text, and an address of a family that the options exclude.
    func target(_ settings: ProbeSettings, _ network: NetworkOptions) throws(Failure) -> (Endpoint, ProbeSettings)? {
        guard let canary else {
            if canaryBody != nil { throw .usage("--canary-body", "needs --canary") }
            return nil
        }
        let name = "--canary '\(canary)'"
        let endpoint: Endpoint
        do { endpoint = try Endpoint(canary) } catch { throw .usage(name, error.description) }
        guard endpoint.scheme.usesHTTP else { throw .usage(name, "write a URL with http or https") }
        if let problem = endpoint.exclusion(by: try network.families()) { throw .usage(name, problem) }
        if let problem = endpoint.exclusion(bySourceOf: settings) { throw .usage(name, problem) }
        var settings = settings
        settings.http = HTTPProbeSettings()
        settings.tls.identity = nil
        settings.http.isCanary = true
        if let canaryBody {
            do { try settings.http.expectBody(containing: canaryBody) } catch { throw .usage("--canary-body", error.description) }
        }
        return (endpoint, settings)
    }
}
