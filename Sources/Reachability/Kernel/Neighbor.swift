internal import CLibnl
internal import CLinux

/// An entry of the neighbor table (ARP, neighbor discovery), from rtnetlink's RTM_NEWNEIGH message.
package struct Neighbor: Hashable, Sendable {
    /// The identity of a neighbor.
    package struct Key: Hashable, Sendable {
        /// The index of the interface.
        package let interface: UInt32
        /// The neighbor's address.
        package let address: IPAddress

        /// Creates a key.
        package init(interface: UInt32, address: IPAddress) {
            self.interface = interface
            self.address = address
        }
    }

    /// The state `NUD_*` of a neighbor (RFC 4861 section 7.3.2, with the kernel's additions).
    package struct State: OptionSet, Hashable, Sendable {
        /// The kernel's bits.
        package let rawValue: UInt16
        /// A state from the kernel's bits.
        package init(rawValue: UInt16) { self.rawValue = rawValue }
        /// The kernel has sent a request and received no answer yet.
        package static let incomplete = State(rawValue: 0x01)
        /// The neighbor answered recently.
        package static let reachable = State(rawValue: 0x02)
        /// The neighbor answered at some earlier time.
        package static let stale = State(rawValue: 0x04)
        /// The entry was stale and is used again; the kernel will soon send a request.
        package static let delay = State(rawValue: 0x08)
        /// The kernel is sending requests again.
        package static let probe = State(rawValue: 0x10)
        /// The neighbor did not answer.
        package static let failed = State(rawValue: 0x20)
        /// The link has no address resolution (`NUD_NOARP`), for example a tunnel.
        package static let noResolution = State(rawValue: 0x40)
        /// The entry was set by an administrator.
        package static let permanent = State(rawValue: 0x80)

        /// The name of the state in the output of ip-neighbor(8).
        var name: String {
            let names: [(State, String)] = [
                (.failed, "FAILED"), (.incomplete, "INCOMPLETE"), (.probe, "PROBE"), (.delay, "DELAY"), (.stale, "STALE"),
                (.reachable, "REACHABLE"), (.permanent, "PERMANENT"), (.noResolution, "NOARP"),
            ]
            return names.first { contains($0.0) }?.1 ?? "0x" + String(rawValue, radix: 16)
        }
    }

    /// The identity of the neighbor.
    package var key: Key
    /// The state of address resolution.
    package var state: State
    /// The hardware address; empty if it is not known.
    package var hardwareAddress: [UInt8]
    /// The time since the neighbor last proved that it is alive (`ndm_confirmed` of `struct nda_cacheinfo`), in nanoseconds; `nil`
    /// if the kernel did not say.
    package var confirmedNanosecondsAgo: Int64?

    /// Creates a neighbor.
    package init(
        interface: UInt32, address: IPAddress, state: State, hardwareAddress: [UInt8] = [],
        confirmedNanosecondsAgo: Int64? = nil
    ) {
        key = Key(interface: interface, address: address)
        self.state = state
        self.hardwareAddress = hardwareAddress
        self.confirmedNanosecondsAgo = confirmedNanosecondsAgo
    }
}

/// The result of a query for a neighbor (RTM_GETNEIGH).
package enum NeighborAnswer: Hashable, Sendable {
    /// The query was not sent, or the kernel did not answer.
    case unknown
    /// The table has no entry: no packet was sent to the neighbor recently.
    case absent
    /// The state of the neighbor's entry, the time since the neighbor proved that it is alive, in nanoseconds, and its link-layer address,
    /// which is empty if it is not known.
    case state(Neighbor.State, confirmedAgo: Int64? = nil, linkAddress: [UInt8] = [])

    /// Whether the kernel asked for the neighbor and received no answer.
    var isSilent: Bool {
        if case .state(let state, _, _) = self { return !state.isDisjoint(with: [.failed, .incomplete]) }
        return false
    }

    /// The name of the state in the output of ip-neighbor(8); `nil` if the kernel did not answer.
    var stateName: String? {
        switch self {
        case .unknown: nil
        case .absent: "NONE"
        case .state(let state, _, _): state.name
        }
    }

    /// The link-layer address; empty if it is not known.
    var linkAddress: [UInt8] {
        if case .state(_, _, let address) = self { return address }
        return []
    }

    /// The time since the neighbor proved that it is alive, in nanoseconds; `nil` if it is not known.
    var confirmedAgo: Int64? {
        if case .state(_, let confirmed, _) = self { return confirmed }
        return nil
    }

    /// Whether the link has no address resolution.
    var needsNoResolution: Bool {
        if case .state(let state, _, _) = self { return state.contains(.noResolution) }
        return false
    }

    /// Whether the kernel checks at present whether the neighbor is still alive.
    package var isBeingChecked: Bool {
        if case .state(let state, _, _) = self { return !state.isDisjoint(with: [.delay, .probe]) }
        return false
    }

    /// Whether the neighbor answered recently.
    var isReachable: Bool {
        if case .state(let state, _, _) = self { return state.contains(.reachable) }
        return false
    }

    /// Returns whether the neighbor proved within the last nanoseconds that it is alive.
    func isConfirmed(within nanoseconds: Int64) -> Bool {
        guard case .state(let state, let confirmed?, _) = self, !isSilent else { return false }
        return !state.contains(.noResolution) && confirmed <= nanoseconds
    }
}

extension NeighborAnswer {
    /// Creates an answer from the kernel's reply to RTM_GETNEIGH. Kernels before 5.0 refuse the query (EOPNOTSUPP).
    init(_ messages: [NetlinkMessage]) {
        switch messages.first?.event {
        case .neighbor(let neighbor):
            self = .state(
                neighbor.state, confirmedAgo: neighbor.confirmedNanosecondsAgo, linkAddress: neighbor.hardwareAddress)
        case .done(errno: NeighborAnswer.noEntry): self = .absent
        default: self = .unknown
        }
    }

    /// The number of ENOENT.
    private static let noEntry: Int32 = 2
}

extension NetlinkDecoder {
    /// Decodes RTM_NEWNEIGH and RTM_DELNEIGH.
    static func neighbor(_ message: UnsafeMutablePointer<nlmsghdr>) -> NetlinkEvent {
        guard let header = fixedHeader(message, as: ndmsg.self) else { return .malformed }
        // Bridges' forwarding tables have family 7.
        guard header.ndm_family == UInt8(AF_INET) || header.ndm_family == UInt8(AF_INET6) else { return .ignored }
        // Replies are decoded by libnl-route, events by attribute. Each link that goes up or down sends events for its multicast
        // neighbors; libnl's objects for them took a tenth of the time until the user's callback.
        let isAnswer = message.pointee.nlmsg_seq != 0
        let found = isAnswer ? withObject(message, neighborFields) : neighborFields(message)
        guard let (destination, hardwareAddress) = found else { return .malformed }
        let decoded = Neighbor(
            interface: UInt32(bitPattern: header.ndm_ifindex), address: destination,
            state: Neighbor.State(rawValue: header.ndm_state), hardwareAddress: hardwareAddress,
            confirmedNanosecondsAgo: isAnswer ? confirmedNanosecondsAgo(message) : nil
        )
        return Int(message.pointee.nlmsg_type) == RTM_DELNEIGH ? .neighborRemoved(decoded.key) : .neighbor(decoded)
    }

    // NDA_CACHEINFO counts in hundredths of a second (USER_HZ). libnl-route does not pass this number on for every state.
    private static func confirmedNanosecondsAgo(_ message: UnsafeMutablePointer<nlmsghdr>) -> Int64? {
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<ndmsg>.size)
        where attribute.type == 3 && attribute.bytes.count >= 4 {  // NDA_CACHEINFO
            return Int64(attribute.bytes.loadUnaligned(as: UInt32.self)) * 10_000_000
        }
        return nil
    }

    private static func neighborFields(_ object: OpaquePointer) -> (IPAddress, [UInt8])? {
        address(rtnl_neigh_get_dst(object)).map { ($0, hardwareAddress(rtnl_neigh_get_lladdr(object))) }
    }

    private static func neighborFields(_ message: UnsafeMutablePointer<nlmsghdr>) -> (IPAddress, [UInt8])? {
        var (destination, hardwareAddress): (IPAddress?, [UInt8]) = (nil, [])
        for attribute in AttributeSequence(message, headerSize: MemoryLayout<ndmsg>.size) {
            switch attribute.type {
            case 1: destination = attribute.address  // NDA_DST
            case 2: hardwareAddress = [UInt8](attribute.bytes)  // NDA_LLADDR
            default: break
            }
        }
        return destination.map { ($0, hardwareAddress) }
    }
}
