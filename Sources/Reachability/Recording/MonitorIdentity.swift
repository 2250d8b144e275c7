/// The origin of a monitor's records.
package struct MonitorIdentity: Hashable, Sendable {
    /// The boot id (`/proc/sys/kernel/random/boot_id`).
    package var bootID: String
    /// The namespace as the user wrote it; `nil` for the process's own namespace.
    package var namespaceName: String?
    /// The inode of the namespace's file.
    package var namespaceInode: UInt64

    package init(bootID: String, namespaceName: String?, namespaceInode: UInt64) {
        self.bootID = bootID
        self.namespaceName = namespaceName
        self.namespaceInode = namespaceInode
    }
}
