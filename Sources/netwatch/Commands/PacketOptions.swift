import ArgumentParser
import Console
import Reachability

/// The options for the packets of probes: where they come from, and who resolves the names of targets.
struct PacketOptions: ParsableArguments {
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

    /// Returns the settings with the options applied.
    ///
    /// - Throws: ``Failure`` with code 64 for a value that is not valid.
    func applied(to settings: ProbeSettings) throws(Failure) -> ProbeSettings {
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
}
