/// What one monitor watches.
package struct MonitorConfiguration: Hashable, Sendable {
    /// Which interfaces the path may use.
    package enum Selection: Hashable, Sendable {
        /// The kernel's choice.
        case any
        /// This one only, by name.
        case named(String)
        /// Those of this type only.
        case required(InterfaceType)
        /// Those of any other type.
        case prohibited(Set<InterfaceType>)
    }

    package var namespace: NetworkNamespace?
    package var selection: Selection
    package var families: Set<IPAddress.Family>

    package init(
        namespace: NetworkNamespace? = nil, selection: Selection = .any, families: Set<IPAddress.Family> = [.v4, .v6]
    ) {
        self.namespace = namespace
        self.selection = selection
        self.families = families
    }
}
