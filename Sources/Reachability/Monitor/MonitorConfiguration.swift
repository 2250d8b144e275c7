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

/// Where a monitor's records come from.
package struct MonitorIdentity: Hashable, Sendable {
    /// `/proc/sys/kernel/random/boot_id`.
    package var bootID: String
    /// The namespace as the user wrote it; `nil` for the process's own.
    package var namespaceName: String?
    /// The inode of the namespace's file.
    package var namespaceInode: UInt64

    package init(bootID: String, namespaceName: String?, namespaceInode: UInt64) {
        self.bootID = bootID
        self.namespaceName = namespaceName
        self.namespaceInode = namespaceInode
    }
}
