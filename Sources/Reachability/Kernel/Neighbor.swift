/// A neighbor table's entry (ARP, neighbor discovery) as rtnetlink's RTM_NEWNEIGH message tells it.
package struct Neighbor: Hashable, Sendable {
    /// What identifies a neighbor.
    package struct Key: Hashable, Sendable {
        /// The interface's index.
        package let interface: UInt32
        /// The neighbor's address.
        package let address: IPAddress

        /// A key.
        package init(interface: UInt32, address: IPAddress) {
            self.interface = interface
            self.address = address
        }
    }

    /// `NUD_*` (RFC 4861, 7.3.2, with the kernel's additions).
    package struct State: OptionSet, Hashable, Sendable {
        /// The kernel's bits.
        package let rawValue: UInt16
        /// A state from the kernel's bits.
        package init(rawValue: UInt16) { self.rawValue = rawValue }
        /// Asked for, not answered yet.
        package static let incomplete = State(rawValue: 0x01)
        /// Answered lately.
        package static let reachable = State(rawValue: 0x02)
        /// Answered once.
        package static let stale = State(rawValue: 0x04)
        /// In use after being stale; about to be asked.
        package static let delay = State(rawValue: 0x08)
        /// Being asked again.
        package static let probe = State(rawValue: 0x10)
        /// Did not answer.
        package static let failed = State(rawValue: 0x20)
    }

    /// Interface and address.
    package var key: Key
    /// The state of resolution.
    package var state: State
    /// The hardware address; empty when not known.
    package var hardwareAddress: [UInt8]

    /// A neighbor.
    package init(interface: UInt32, address: IPAddress, state: State, hardwareAddress: [UInt8] = []) {
        key = Key(interface: interface, address: address)
        self.state = state
        self.hardwareAddress = hardwareAddress
    }
}

/// What was found of a neighbor when it was asked for (RTM_GETNEIGH).
package enum NeighborAnswer: Hashable, Sendable {
    /// Nobody could say: it was not asked, or there was no answer.
    case unknown
    /// There is no entry: nobody has looked for it lately.
    case absent
    /// The state of its entry.
    case state(Neighbor.State)

    /// Whether it was looked for, and has not answered.
    var isSilent: Bool {
        if case .state(let state) = self { return !state.isDisjoint(with: [.failed, .incomplete]) }
        return false
    }

    /// Whether it answered lately.
    var isReachable: Bool {
        if case .state(let state) = self { return state.contains(.reachable) }
        return false
    }
}
