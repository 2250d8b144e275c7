/// The tables of the kernel that are dumped one by one.
package enum KernelTable: UInt8, Hashable, Sendable, CaseIterable {
    case links
    case addresses
    case nexthops
    case routesV4
    case routesV6
    case rulesV4
    case rulesV6

    static func routes(_ family: IPAddress.Family) -> KernelTable { family == .v4 ? .routesV4 : .routesV6 }
    /// The family of a routing table; `nil` for other tables.
    var routeFamily: IPAddress.Family? {
        switch self {
        case .routesV4: .v4
        case .routesV6: .v6
        default: nil
        }
    }

    static func rules(_ family: IPAddress.Family) -> KernelTable { family == .v4 ? .rulesV4 : .rulesV6 }
}
