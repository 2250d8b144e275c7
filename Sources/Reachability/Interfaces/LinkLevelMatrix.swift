/// How far a link is up: systemd's matrix (networkctl(1), "operational state"; `link_update_operstate` of networkd), so that
/// both tools say the same word of the same link.
///
/// | carrier state →<br>address state ↓ | off | no-carrier | dormant | degraded-carrier | carrier | enslaved |
/// |---|---|---|---|---|---|---|
/// | off | off | no-carrier | dormant | degraded-carrier | carrier | enslaved |
/// | degraded | off | no-carrier | dormant | degraded | degraded | enslaved |
/// | routable | off | no-carrier | dormant | routable | routable | routable |
///
/// Carrier state: `off` without `IFF_UP`; `dormant` by `IF_OPER_DORMANT`; with carrier (``Link/hasCarrier``) `carrier`, or
/// `enslaved` for a port of another device, or `degraded-carrier` where a port of its own has none; else `no-carrier`.
///
/// Address state, from the widest scope of the addresses that count: `routable` when wider than site, `degraded` for site and
/// link, `off` for host scope (127.0.0.1, so that lo is `carrier`) or none. An address counts unless duplicate detection
/// still runs or has failed. Deprecated ones count. So do optimistic ones, against networkd: the kernel sends from them, and a
/// satisfied path needs a link of level `degraded` or better.
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

    /// The level of `link`.
    ///
    /// - Parameters:
    ///   - link: The device.
    ///   - addresses: Its addresses.
    ///   - ports: The devices whose master it is, and those ports' own ports: a bond that has lost one leg degrades its bridge.
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
