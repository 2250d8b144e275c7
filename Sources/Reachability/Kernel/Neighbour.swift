/// A neighbour table's entry (ARP, neighbour discovery) as rtnetlink's RTM_NEWNEIGH message tells it.
public struct Neighbour: Hashable, Sendable {
    /// What identifies a neighbour.
    public struct Key: Hashable, Sendable {
        /// The interface's index.
        public let interface: UInt32
        /// The neighbour's address.
        public let address: IPAddress

        /// A key.
        public init(interface: UInt32, address: IPAddress) {
            self.interface = interface
            self.address = address
        }
    }

    /// `NUD_*` (RFC 4861, 7.3.2, with the kernel's additions).
    public struct State: OptionSet, Hashable, Sendable {
        /// The kernel's bits.
        public let rawValue: UInt16
        /// A state from the kernel's bits.
        public init(rawValue: UInt16) { self.rawValue = rawValue }
        /// Asked for, not answered yet.
        public static let incomplete = State(rawValue: 0x01)
        /// Answered lately.
        public static let reachable = State(rawValue: 0x02)
        /// Answered once.
        public static let stale = State(rawValue: 0x04)
        /// In use after being stale; about to be asked.
        public static let delay = State(rawValue: 0x08)
        /// Being asked again.
        public static let probe = State(rawValue: 0x10)
        /// Did not answer.
        public static let failed = State(rawValue: 0x20)
    }

    /// Interface and address.
    public var key: Key
    /// The state of resolution.
    public var state: State
    /// The hardware address; empty when not known.
    public var hardwareAddress: [UInt8]

    /// A neighbour.
    public init(interface: UInt32, address: IPAddress, state: State, hardwareAddress: [UInt8] = []) {
        key = Key(interface: interface, address: address)
        self.state = state
        self.hardwareAddress = hardwareAddress
    }
}

/// What was found of a neighbour when it was asked for (RTM_GETNEIGH).
package enum NeighbourAnswer: Hashable, Sendable {
    /// Nobody could say: it was not asked, or there was no answer.
    case unknown
    /// There is no entry: nobody has looked for it lately.
    case absent
    /// The state of its entry.
    case state(Neighbour.State)

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
