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
