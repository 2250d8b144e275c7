/// The state of an interface over which no packet can be sent to other networks.
package struct InterfaceFault: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// The interface is switched off.
        case off
        case noCarrier
        case dormant
        case address(AddressFault)

        var layer: Cause.Layer {
            switch self {
            case .off, .noCarrier, .dormant: .link
            case .address: .address
            }
        }

        var code: Cause.Code {
            switch self {
            case .off: .interfaceDown
            case .noCarrier: .noCarrier
            case .dormant: .dormant
            case .address(let fault): fault.code
            }
        }
    }

    package let kind: Kind
    /// The name of the interface.
    package let interface: String
    package let level: LinkLevel
    /// The family whose addresses are missing; `nil` for both.
    package let family: IPAddress.Family?
    /// The name of the operational state, and the flags `IFF_*`; `nil` if the link is not known.
    package let link: LinkState?

    package struct LinkState: Hashable, Sendable {
        package let operationalState: String
        package let flags: UInt32

        package init(operationalState: String, flags: UInt32) {
            (self.operationalState, self.flags) = (operationalState, flags)
        }
    }

    package init(_ kind: Kind, interface: String, family: IPAddress.Family? = nil, level: LinkLevel, link: LinkState?) {
        (self.kind, self.interface, self.family, self.level, self.link) = (kind, interface, family, level, link)
    }

    /// One sentence for a person, without a final period.
    package var detail: String {
        switch kind {
        case .off: "interface \(interface) is switched off"
        case .noCarrier: "interface \(interface) has no carrier"
        case .dormant: "interface \(interface) has carrier but waits for authentication"
        case .address(let fault): fault.detail(of: interface, family)
        }
    }

    package var evidence: [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = ["interface": .text(interface), "level": .text(level.rawValue)]
        if let link {
            evidence["operstate"] = .text(link.operationalState)
            evidence["flags"] = .text("0x" + String(link.flags, radix: 16))
        }
        return evidence
    }
}

/// The reason why no address of an interface can be the source of packets to other networks.
package enum AddressFault: Hashable, Sendable {
    /// There is no address.
    case missing
    /// Duplicate address detection still runs (RFC 4862 section 5.4).
    case tentative
    /// Another host has the address.
    case duplicate

    var code: Cause.Code {
        switch self {
        case .missing: .noAddress
        case .tentative: .tentativeAddress
        case .duplicate: .duplicateAddress
        }
    }

    /// Returns one sentence for a person. - Parameter family: the family of the addresses; `nil` for both.
    func detail(of interface: String, _ family: IPAddress.Family?) -> String {
        let word = family.map { "IPv\($0.rawValue) " } ?? ""
        return switch self {
        case .missing: "interface \(interface) has no usable \(word)address"
        case .tentative: "the \(word)addresses of interface \(interface) are still being checked for duplicates"
        case .duplicate: "an \(word)address of interface \(interface) is in use by another host"
        }
    }
}
