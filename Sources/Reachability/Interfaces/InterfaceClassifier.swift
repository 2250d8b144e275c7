/// What an interface is, and what says so.
package struct Classification: Hashable, Sendable {
    /// What carries its packets.
    package var type: InterfaceType
    /// Whether it is made by software rather than hardware.
    package var isVirtual: Bool
    /// Whether its traffic is likely to cost money by volume.
    package var isExpensive: Bool
    /// The facts that decided, strongest first, for a person who asks why.
    package var evidence: [String]

    package init(type: InterfaceType, isVirtual: Bool, isExpensive: Bool = false, evidence: [String]) {
        self.type = type
        self.isVirtual = isVirtual
        self.isExpensive = isExpensive
        self.evidence = evidence
    }
}

/// Tells an interface's type from evidence, never from its name.
///
/// In this order: the kind that the device's module gives (``LinkKind``); for hardware the loopback flag, the wireless stack,
/// `DEVTYPE`, the driver and the bus, and last the ARPHRD type. Stacked devices have the medium of what they rest on.
///
/// Expensive are mobile networks; a phone's tether over USB or Bluetooth, which is a mobile network one cable further; and what
/// rests on either. The device side of a USB cable (gadget) is not: behind it is a computer.
///
/// PPP is a tunnel unless `DEVTYPE` says `wwan`: the kernel does not tell on which serial line a ppp device sits, and a dialled
/// modem must not be guessed from a name.
package enum InterfaceClassifier {
    /// The kernel nests devices no deeper (`MAX_NEST_DEV` of include/linux/netdevice.h).
    private static let deepestNesting = 8

    /// Classifies `link`.
    ///
    /// - Parameters:
    ///   - link: The device.
    ///   - evidence: What was read of it; may be `nil` where ``needsEvidence(_:)`` is false.
    ///   - links: All devices of its namespace by index.
    ///   - evidenceOf: What was read of the others.
    package static func classify(
        _ link: Link, evidence: InterfaceEvidence?, among links: [UInt32: Link], evidenceOf: (UInt32) -> InterfaceEvidence?
    ) -> Classification {
        classify(link, evidence: evidence, among: links, evidenceOf: evidenceOf, above: [])
    }

    /// Whether anything read outside the link message could change what `link` is. False for every kind that decides by itself,
    /// so that containers which come and go cost no system call.
    package static func needsEvidence(_ link: Link) -> Bool {
        switch LinkKind(link) {
        case .decided, .pair, .tun, .overPorts, .overLower: false
        case .pointToPoint, .unknown: true
        case nil: !link.flags.contains(.loopback)
        }
    }

    private static func classify(
        _ link: Link, evidence: InterfaceEvidence?, among links: [UInt32: Link], evidenceOf: (UInt32) -> InterfaceEvidence?,
        above: [UInt32]
    ) -> Classification {
        guard let kind = LinkKind(link) else {
            return HardwareFacts(link: link, evidence: evidence ?? InterfaceEvidence()).classification
        }
        let says = "kind \(link.kind ?? "")"
        /// What `IFLA_LINK` names, classified; nothing at the end of a cycle, which only a stale set of links can hold.
        func lower() -> Classification? {
            guard !link.lowerIsElsewhere, link.lower != 0, let lower = links[link.lower] else { return nil }
            return below(lower)
        }
        func below(_ other: Link) -> Classification? {
            let path = above + [link.index]
            guard !path.contains(other.index), path.count < deepestNesting else { return nil }
            return classify(other, evidence: evidenceOf(other.index), among: links, evidenceOf: evidenceOf, above: path)
        }

        switch kind {
        case .decided(let type, let isVirtual):
            var result = Classification(type: type, isVirtual: isVirtual, isExpensive: type == .cellular, evidence: [says])
            if type == .tunnel, let carrier = lower(), carrier.isExpensive {
                result.isExpensive = true
                result.evidence.append("bound to \(links[link.lower]?.name ?? ""), which is expensive")
            }
            return result
        case .pair:
            return Classification(type: .wired, isVirtual: true, evidence: [says])
        case .tun:
            return link.isTap
                ? Classification(type: .virtual, isVirtual: true, evidence: [says, "IFLA_TUN_TYPE tap"])
                : Classification(type: .tunnel, isVirtual: true, evidence: [says])
        case .pointToPoint:
            return pointToPoint(evidence, says: says)
        case .unknown:
            return unknown(link, evidence: evidence, says: says)
        case .overLower:
            let missing = link.lowerIsElsewhere ? "the device below is in another namespace" : "no device below is known"
            guard let lower = lower() else {
                return Classification(type: .virtual, isVirtual: true, evidence: [says, missing])
            }
            return stacked([(links[link.lower]?.name ?? "", lower)], says: [says], otherwise: .virtual)
        case .overPorts:
            let ports = links.values.filter { $0.master == link.index && LinkKind($0) != .pair }
                .sorted { $0.index < $1.index }
                .compactMap { port in below(port).map { (link: port, is: $0) } }
                .filter { hasMedium($0.is.type) }
            let active = ports.filter(\.link.hasCarrier)
            let chosen = active.isEmpty ? ports : active
            return stacked(
                chosen.map { ($0.link.name, $0.is) },
                says: [says] + (chosen.isEmpty ? ["no port has a medium"] : []),
                otherwise: link.kind == "bridge" ? .bridge : .virtual
            )
        }
    }

    /// A device that rests on others: their medium where they agree, `otherwise` where not.
    private static func stacked(
        _ media: [(name: String, is: Classification)], says: [String], otherwise: InterfaceType
    ) -> Classification {
        let types = Set(media.lazy.map(\.is.type).filter(hasMedium))
        return Classification(
            type: types.count == 1 ? types.first ?? otherwise : otherwise,
            isVirtual: true,
            isExpensive: media.contains { $0.is.isExpensive },
            evidence: says + media.map { "over \($0.name), which is \($0.is.type.rawValue)" }
        )
    }

    /// `virtual` and `bridge` say that there is none. A port without a medium (a virtual machine's tap beside the network card)
    /// lends none, as a veth port does not.
    private static func hasMedium(_ type: InterfaceType) -> Bool { type != .virtual && type != .bridge }

    static func pointToPoint(_ evidence: InterfaceEvidence?, says: String) -> Classification {
        evidence?.deviceType == "wwan"
            ? Classification(type: .cellular, isVirtual: false, isExpensive: true, evidence: ["DEVTYPE wwan (sysfs)", says])
            : Classification(type: .tunnel, isVirtual: true, evidence: [says, "the line below is unknown"])
    }

    /// A kind of the future, made by software: what the wireless and mobile stacks say of it goes first.
    private static func unknown(_ link: Link, evidence: InterfaceEvidence?, says: String) -> Classification {
        let facts = HardwareFacts(link: link, evidence: evidence ?? InterfaceEvidence())
        guard var result = facts.byDeviceType else {
            return Classification(type: .virtual, isVirtual: true, evidence: ["\(says), of which nothing is known"])
        }
        result.isVirtual = true
        result.evidence.append(says)
        return result
    }
}
