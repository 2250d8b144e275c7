/// The operational level of a link, by systemd's matrix (networkctl(1), "operational state"; `link_update_operstate` of
/// networkd). Both tools report the same level for the same link.
///
/// | carrier state →<br>address state ↓ | off | no-carrier | dormant | degraded-carrier | carrier | enslaved |
/// |---|---|---|---|---|---|---|
/// | off | off | no-carrier | dormant | degraded-carrier | carrier | enslaved |
/// | degraded | off | no-carrier | dormant | degraded | degraded | enslaved |
/// | routable | off | no-carrier | dormant | routable | routable | routable |
///
/// Carrier state: `off` without `IFF_UP`; `dormant` by `IF_OPER_DORMANT`. With carrier (``Link/hasCarrier``) the state is
/// `carrier`, `enslaved` for a port of another device, or `degraded-carrier` if one of the link's own ports has no carrier.
/// Otherwise the state is `no-carrier`.
///
/// Address state, by the widest scope of the usable addresses: `routable` for a scope wider than site, `degraded` for site and
/// link, `off` for host scope (127.0.0.1, so that lo is `carrier`) or no address. An address is not usable while duplicate
/// address detection runs, or after it failed. Deprecated addresses count.
///
/// Optimistic addresses count too, unlike in networkd: the kernel sends from them, and a satisfied path needs a link of level
/// `degraded` or better.
package enum LinkLevelMatrix {
    private enum Carrier: Int, Comparable {
        case off, noCarrier, dormant, degradedCarrier, carrier, enslaved

        static func < (left: Carrier, right: Carrier) -> Bool { left.rawValue < right.rawValue }
    }

    private enum Reach {
        case off, degraded, routable
    }

    /// `RT_SCOPE_SITE` of linux/rtnetlink.h.
    private static let siteScope: UInt8 = 200
    /// `RT_SCOPE_HOST`.
    private static let hostScope: UInt8 = 254

    /// Returns the level of `link`.
    ///
    /// - Parameters:
    ///   - link: The device.
    ///   - addresses: The addresses of the device.
    ///   - ports: The ports of the device, and the ports of those ports: a bond with a failed port degrades its bridge.
    /// - Returns: The cell of the matrix.
    package static func level(of link: Link, addresses: [Address], ports: [Link]) -> LinkLevel {
        var carrier = carrier(of: link)
        if carrier >= .carrier, ports.contains(where: { Self.carrier(of: $0) < .carrier }) { carrier = .degradedCarrier }
        switch (carrier, reach(of: addresses)) {
        case (.off, _): return .off
        case (.noCarrier, _): return .noCarrier
        case (.dormant, _): return .dormant
        case (.degradedCarrier, .off): return .degradedCarrier
        case (.carrier, .off): return .carrier
        case (.degradedCarrier, .degraded), (.carrier, .degraded): return .degraded
        case (.enslaved, .off), (.enslaved, .degraded): return .enslaved
        case (.degradedCarrier, .routable), (.carrier, .routable), (.enslaved, .routable): return .routable
        }
    }

    private static func carrier(of link: Link) -> Carrier {
        guard link.flags.contains(.up) else { return .off }
        if link.operationalState == .dormant { return .dormant }
        guard link.hasCarrier else { return .noCarrier }
        return link.master == 0 ? .carrier : .enslaved
    }

    private static func reach(of addresses: [Address]) -> Reach {
        guard let widest = addresses.lazy.filter(\.isUsable).map(\.scope).min(), widest < hostScope else { return .off }
        return widest < siteScope ? .routable : .degraded
    }
}
