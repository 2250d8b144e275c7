/// The state of this host on which the verdicts of targets depend, as the path machine knows it. Many values refer to it at a time.
package final class LocalState: Sendable {
    /// The classified interfaces, by index.
    package let interfaces: [UInt32: NetworkInterface]
    /// The path of the network namespace.
    package let path: NetworkPath
    /// Returns whether an address belongs to this machine.
    package let isOwn: @Sendable (IPAddress) -> Bool
    /// The index of the loopback interface; `nil` if there is none.
    let loopback: UInt32?
    /// Whether a name server is configured.
    package let hasResolver: Bool
    /// Returns why an interface has no source address of a family; `nil` if it has one.
    let addressFault: @Sendable (UInt32, IPAddress.Family) -> AddressFault?
    /// Returns why an address cannot be the source of packets; `nil` if an interface has it, and it is usable.
    let sourceFault: @Sendable (IPAddress) -> AddressFault?

    init(
        interfaces: [UInt32: NetworkInterface], path: NetworkPath, isOwn: @escaping @Sendable (IPAddress) -> Bool,
        hasResolver: Bool, addressFault: @escaping @Sendable (UInt32, IPAddress.Family) -> AddressFault? = { _, _ in nil },
        sourceFault: @escaping @Sendable (IPAddress) -> AddressFault? = { _ in nil }
    ) {
        self.interfaces = interfaces
        loopback = interfaces.values.first { $0.type == .loopback }?.index
        self.path = path
        self.isOwn = isOwn
        self.hasResolver = hasResolver
        self.addressFault = addressFault
        self.sourceFault = sourceFault
    }
}
