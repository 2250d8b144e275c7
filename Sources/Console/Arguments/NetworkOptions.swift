package import ArgumentParser
import FoundationEssentials
package import Reachability

/// The options that select a network namespace, an interface and address families.
package struct NetworkOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Use this network namespace: a name that 'ip netns' lists, or a path.", valueName: "name"))
    package var netns: String?

    @Option(help: ArgumentHelp("Use only this interface; alternative names are accepted.", valueName: "if"))
    package var interface: String?

    @Flag(name: .customShort("4"), help: "Use only IPv4.")
    package var onlyIPv4 = false

    @Flag(name: .customShort("6"), help: "Use only IPv6.")
    package var onlyIPv6 = false

    package init() {}

    package func families() throws(Failure) -> Set<IPAddress.Family> {
        switch (onlyIPv4, onlyIPv6) {
        case (true, true): throw .usage("-4 -6", "they exclude each other; leave both out for both families")
        case (true, false): return [.v4]
        case (false, true): return [.v6]
        case (false, false): return [.v4, .v6]
        }
    }

    package func configuration() throws(Failure) -> MonitorConfiguration {
        var configuration = MonitorConfiguration(families: try families())
        if let netns {
            guard !netns.isEmpty, netns != ".", netns != ".." else {
                throw .usage("--netns '\(netns)'", "neither the name nor the path of a network namespace")
            }
            configuration.namespace = NetworkNamespace(netns)
        }
        if let interface {
            // The kernel's rule for names (dev_valid_name), with the maximum length of an alternative name (ALTIFNAMSIZ).
            let isValid =
                (1...127).contains(interface.utf8.count) && interface != "." && interface != ".."
                && !interface.utf8.contains { $0 == 0x2f || $0 == 0x3a || $0 == 0x20 || (9...13).contains($0) }
            guard isValid else { throw .usage("--interface '\(interface)'", "not the name of an interface: 1 to 127 characters") }
            configuration.selection = .named(interface)
        }
        return configuration
    }
}
