/// The classification of an interface, with the facts that determined it.
package struct Classification: Hashable, Sendable {
    /// The medium of the interface.
    package var type: InterfaceType
    /// Whether the interface is made by software rather than hardware.
    package var isVirtual: Bool
    /// Whether the interface's traffic is likely to cost money by volume.
    package var isExpensive: Bool
    /// The facts that determined the classification, strongest first, for a person who asks for the reason.
    package var evidence: [String]

    package init(type: InterfaceType, isVirtual: Bool, isExpensive: Bool = false, evidence: [String]) {
        self.type = type
        self.isVirtual = isVirtual
        self.isExpensive = isExpensive
        self.evidence = evidence
    }
}

/// Determines an interface's type from evidence, never from its name.
///
/// The first fact in this order decides: the kind that the device's module sets (``LinkKind``); for hardware the loopback flag,
/// the wireless stack, `DEVTYPE`, the driver, and the bus; last the ARPHRD type. Stacked devices have the medium of their lower
/// devices.
///
/// Mobile networks are expensive. So is a phone's tethering over USB or Bluetooth, which uses a mobile network, and so is a
/// device stacked on either. The device side of a USB cable (gadget) is not expensive, because the other side is a computer.
///
/// PPP is a tunnel unless `DEVTYPE` is `wwan`. The kernel does not report the serial line of a ppp device, and a name does not
/// prove a modem.
package enum InterfaceClassifier {
    /// The kernel's maximum depth of stacked devices (`MAX_NEST_DEV` of include/linux/netdevice.h).
    private static let deepestNesting = 8

    /// A classification with all media that the device's packets may use. A tap or a dummy has none; a bond of an Ethernet card
    /// and a modem has several.
    private struct ClassifiedDevice {
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
    ///   - evidence: The evidence about the device. May be `nil` if ``needsEvidence(_:)`` is false.
    ///   - links: All devices of the namespace, by index.
    ///   - evidenceOf: Returns the evidence about another device, by index.
    /// - Returns: The classification, with at least one fact as evidence.
    package static func classify(
        _ link: Link, evidence: InterfaceEvidence?, among links: [UInt32: Link], evidenceOf: (UInt32) -> InterfaceEvidence?
    ) -> Classification {
        classifiedDevice(of: link, evidence: evidence, among: links, evidenceOf: evidenceOf, above: []).result
    }

    /// Returns whether facts outside the link message can change the classification. False for every kind that decides alone, so
    /// that short-lived containers cost no system call.
    package static func needsEvidence(_ link: Link) -> Bool {
        switch LinkKind(link) {
        case .decided, .pair, .tun, .overPorts, .overLower: false
        case .pointToPoint, .unknown: true
        case nil: !link.flags.contains(.loopback)
        }
    }

    /// Classifies `link` by following its lower devices. `above` are the devices from the first one down to `link`.
    private static func classifiedDevice(
        of link: Link, evidence: InterfaceEvidence?, among links: [UInt32: Link], evidenceOf: (UInt32) -> InterfaceEvidence?,
        above: [UInt32]
    ) -> ClassifiedDevice {
        guard let kind = LinkKind(link) else {
            return ClassifiedDevice(HardwareFacts(link: link, evidence: evidence ?? InterfaceEvidence()).classification)
        }
        let fact = "kind \(link.kind ?? "")"
        /// Returns `nil` at the end of a cycle, which only a stale set of links can contain.
        func below(_ other: Link) -> ClassifiedDevice? {
            let path = above + [link.index]
            guard !path.contains(other.index), path.count < deepestNesting else { return nil }
            return classifiedDevice(
                of: other, evidence: evidenceOf(other.index), among: links, evidenceOf: evidenceOf, above: path)
        }
        let lower = link.lowerIsElsewhere || link.lower == 0 ? nil : links[link.lower]

        switch kind {
        case .decided(let type, let isVirtual):
            var result = Classification(type: type, isVirtual: isVirtual, isExpensive: type == .cellular, evidence: [fact])
            if type == .tunnel, let lower, below(lower)?.result.isExpensive == true {
                result.isExpensive = true
                result.evidence.append("bound to \(lower.name), which is expensive")
            }
            return ClassifiedDevice(result)
        case .pair:
            return ClassifiedDevice(Classification(type: .wired, isVirtual: true, evidence: [fact]))
        case .tun:
            return ClassifiedDevice(
                Classification(
                    type: link.isTap ? .virtual : .tunnel, isVirtual: true,
                    evidence: link.isTap ? [fact, "IFLA_TUN_TYPE tap"] : [fact]))
        case .pointToPoint:
            return ClassifiedDevice(pointToPoint(evidence, fact: fact))
        case .unknown:
            return ClassifiedDevice(unknown(link, evidence: evidence, fact: fact))
        case .overLower:
            guard let lower, let lowerDevice = below(lower) else {
                let reason = link.lowerIsElsewhere ? "the device below is in another namespace" : "no device below is known"
                return ClassifiedDevice(Classification(type: .virtual, isVirtual: true, evidence: [fact, reason]))
            }
            return stacked([(lower.name, lowerDevice)], facts: [fact], otherwise: .virtual)
        case .overPorts:
            // A port without a medium does not count, like a veth. An example is a virtual machine's tap beside the network card.
            let ports = links.values.filter { $0.master == link.index && LinkKind($0) != .pair }
                .sorted { $0.index < $1.index }
                .compactMap { port in below(port).map { (link: port, device: $0) } }
                .filter { !$0.device.media.isEmpty }
            let active = ports.filter(\.link.hasCarrier)
            let chosen = active.isEmpty ? ports : active
            return stacked(
                chosen.map { ($0.link.name, $0.device) },
                facts: [fact] + (chosen.isEmpty ? ["no port has a medium"] : []),
                otherwise: link.kind == "bridge" ? .bridge : .virtual
            )
        }
    }

    /// Returns the common medium of the lower devices, or `otherwise` if they have different media.
    private static func stacked(
        _ lowerDevices: [(name: String, device: ClassifiedDevice)], facts: [String], otherwise: InterfaceType
    ) -> ClassifiedDevice {
        let media = lowerDevices.reduce(into: Set()) { $0.formUnion($1.device.media) }
        let result = Classification(
            type: media.count == 1 ? media.first ?? otherwise : otherwise,
            isVirtual: true,
            isExpensive: lowerDevices.contains { $0.device.result.isExpensive },
            evidence: facts + lowerDevices.map { "over \($0.name), which is \($0.device.result.type.rawValue)" }
        )
        return ClassifiedDevice(result, media: media)
    }

    static func pointToPoint(_ evidence: InterfaceEvidence?, fact: String) -> Classification {
        evidence?.deviceType == "wwan"
            ? Classification(type: .cellular, isVirtual: false, isExpensive: true, evidence: ["DEVTYPE wwan (sysfs)", fact])
            : Classification(type: .tunnel, isVirtual: true, evidence: [fact, "the line below is unknown"])
    }

    /// Classifies a software device of an unknown, newer kind. Facts of the wireless and mobile stacks come first.
    private static func unknown(_ link: Link, evidence: InterfaceEvidence?, fact: String) -> Classification {
        let facts = HardwareFacts(link: link, evidence: evidence ?? InterfaceEvidence())
        guard var result = facts.byDeviceType else {
            return Classification(type: .virtual, isVirtual: true, evidence: ["\(fact), which this version does not know"])
        }
        result.isVirtual = true
        result.evidence.append(fact)
        return result
    }
}
