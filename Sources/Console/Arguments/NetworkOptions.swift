package import ArgumentParser
import FoundationEssentials
package import Reachability

/// Options that say which part of the network is looked at.
package struct NetworkOptions: ParsableArguments {
    @Option(help: ArgumentHelp("In this network namespace: a name that 'ip netns' knows, or a path.", valueName: "name"))
    package var netns: String?

    @Option(help: ArgumentHelp("Use this interface only; an alternative name serves too.", valueName: "if"))
    package var interface: String?

    @Flag(name: .customShort("4"), help: "IPv4 only.")
    package var onlyIPv4 = false

    @Flag(name: .customShort("6"), help: "IPv6 only.")
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
            // The kernel's own rule for names (dev_valid_name), in the length that an alternative name may have (ALTIFNAMSIZ).
            let isValid =
                (1...127).contains(interface.utf8.count) && interface != "." && interface != ".."
                && !interface.utf8.contains { $0 == 0x2f || $0 == 0x3a || $0 == 0x20 || (9...13).contains($0) }
            guard isValid else { throw .usage("--interface '\(interface)'", "not the name of an interface: 1 to 127 characters") }
            configuration.selection = .named(interface)
        }
        return configuration
    }
}
