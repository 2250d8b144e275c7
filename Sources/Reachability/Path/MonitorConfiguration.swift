/// The configuration of one monitor.
package struct MonitorConfiguration: Hashable, Sendable {
    /// The interfaces that the path may use.
    package enum Selection: Hashable, Sendable {
        /// Any interface: the kernel's choice.
        case any
        /// Only the interface with this name.
        case named(String)
        /// Only interfaces of this type.
        case required(InterfaceType)
        /// Only interfaces of other types.
        case prohibited(Set<InterfaceType>)
    }

    package var namespace: NetworkNamespace?
    package var selection: Selection
    package var families: Set<IPAddress.Family>
    /// Whether incidents have all their servers (``Incident/members``), and are also published if a further server belongs to one while
    /// the number of servers that it affects at the same time does not grow. Recordings do not have this setting.
    package var publishesMembers = false
    /// Incidents of an earlier process, which continue. Recordings do not have this setting.
    package var openIncidents: [OpenIncident] = []
    /// What an earlier process remembers of jobs that report in. Recordings do not have this setting.
    package var heartbeats = HeartbeatMemories()

    package init(
        namespace: NetworkNamespace? = nil, selection: Selection = .any, families: Set<IPAddress.Family> = [.v4, .v6]
    ) {
        self.namespace = namespace
        self.selection = selection
        self.families = families
    }
}
