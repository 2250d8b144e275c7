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

    /// A classification, and the media that its packets may take in the end: none for a tap or a dummy, several for a bond of a
    /// cable and a modem.
    private struct Footing {
        var result: Classification
        var media: Set<InterfaceType>

        init(_ result: Classification) {
            self.result = result
            media = result.type == .virtual ? [] : [result.type]
        }

        init(_ result: Classification, media: Set<InterfaceType>) {
            self.result = result
            self.media = media
        }
    }

    /// Classifies `link`.
    ///
    /// - Parameters:
    ///   - link: The device.
    ///   - evidence: What was read of it; may be `nil` where ``needsEvidence(_:)`` is false.
    ///   - links: All devices of its namespace by index.
    ///   - evidenceOf: What was read of the others.
    /// - Returns: What it is, with at least one sentence of evidence.
    package static func classify(
        _ link: Link, evidence: InterfaceEvidence?, among links: [UInt32: Link], evidenceOf: (UInt32) -> InterfaceEvidence?
    ) -> Classification {
        footing(of: link, evidence: evidence, among: links, evidenceOf: evidenceOf, above: []).result
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

    /// Follows the devices below; `above` are those on the way from the first one.
    private static func footing(
        of link: Link, evidence: InterfaceEvidence?, among links: [UInt32: Link], evidenceOf: (UInt32) -> InterfaceEvidence?,
        above: [UInt32]
    ) -> Footing {
        guard let kind = LinkKind(link) else {
            return Footing(HardwareFacts(link: link, evidence: evidence ?? InterfaceEvidence()).classification)
        }
        let says = "kind \(link.kind ?? "")"
        /// `nil` at the end of a cycle, which only a stale set of links can hold.
        func below(_ other: Link) -> Footing? {
            let path = above + [link.index]
            guard !path.contains(other.index), path.count < deepestNesting else { return nil }
            return footing(of: other, evidence: evidenceOf(other.index), among: links, evidenceOf: evidenceOf, above: path)
        }
        let lower = link.lowerIsElsewhere || link.lower == 0 ? nil : links[link.lower]

        switch kind {
        case .decided(let type, let isVirtual):
            var result = Classification(type: type, isVirtual: isVirtual, isExpensive: type == .cellular, evidence: [says])
            if type == .tunnel, let lower, below(lower)?.result.isExpensive == true {
                result.isExpensive = true
                result.evidence.append("bound to \(lower.name), which is expensive")
            }
            return Footing(result)
        case .pair:
            return Footing(Classification(type: .wired, isVirtual: true, evidence: [says]))
        case .tun:
            return Footing(
                Classification(
                    type: link.isTap ? .virtual : .tunnel, isVirtual: true,
                    evidence: link.isTap ? [says, "IFLA_TUN_TYPE tap"] : [says]))
        case .pointToPoint:
            return Footing(pointToPoint(evidence, says: says))
        case .unknown:
            return Footing(unknown(link, evidence: evidence, says: says))
        case .overLower:
            guard let lower, let ground = below(lower) else {
                let why = link.lowerIsElsewhere ? "the device below is in another namespace" : "no device below is known"
                return Footing(Classification(type: .virtual, isVirtual: true, evidence: [says, why]))
            }
            return stacked([(lower.name, ground)], says: [says], otherwise: .virtual)
        case .overPorts:
            // A port without a medium (a virtual machine's tap beside the network card) lends none, as a veth does not.
            let ports = links.values.filter { $0.master == link.index && LinkKind($0) != .pair }
                .sorted { $0.index < $1.index }
                .compactMap { port in below(port).map { (link: port, footing: $0) } }
                .filter { !$0.footing.media.isEmpty }
            let active = ports.filter(\.link.hasCarrier)
            let chosen = active.isEmpty ? ports : active
            return stacked(
                chosen.map { ($0.link.name, $0.footing) },
                says: [says] + (chosen.isEmpty ? ["no port has a medium"] : []),
                otherwise: link.kind == "bridge" ? .bridge : .virtual
            )
        }
    }

    /// A device that rests on others: their medium where they agree, `otherwise` where not.
    private static func stacked(
        _ grounds: [(name: String, footing: Footing)], says: [String], otherwise: InterfaceType
    ) -> Footing {
        let media = grounds.reduce(into: Set()) { $0.formUnion($1.footing.media) }
        let result = Classification(
            type: media.count == 1 ? media.first ?? otherwise : otherwise,
            isVirtual: true,
            isExpensive: grounds.contains { $0.footing.result.isExpensive },
            evidence: says + grounds.map { "over \($0.name), which is \($0.footing.result.type.rawValue)" }
        )
        return Footing(result, media: media)
    }

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
