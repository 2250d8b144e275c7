// The state of a path machine between events, except for the snapshot.

extension PathMachine {
    /// The work to do at the end of a turn.
    struct Work: Sendable {
        /// The kernel must be queried again.
        var ask = false
        /// An evaluation is running; queries may be pending.
        var evaluate = false
        /// Routes or rules that refuse a network were added or removed.
        var filters = false
        /// More than the kernel's answers changed.
        var structure = false
        /// The interfaces whose link, addresses or evidence changed.
        var interfaces: Set<UInt32> = []
        /// The number of events in this turn.
        var events = 0
    }

    /// The properties of a link on which its evidence depends. A change of flags is no reason to read the evidence again.
    struct EvidenceSubject: Hashable, Sendable {
        let name: String
        let kind: String?
        let hardwareType: UInt16
        let hardwareAddress: [UInt8]

        init(_ link: Link) {
            name = link.name
            kind = link.kind
            hardwareType = link.hardwareType
            hardwareAddress = link.hardwareAddress
        }
    }

    /// The tables that must be dumped to repair a loss of events.
    struct Resync: Sendable {
        /// The reasons in order of arrival, each once.
        var reasons: [ResyncReason] = []
        var tables: CaseSet<KernelTable> = []
        /// The table whose dump was already running when events were lost. The end of that dump does not repair the loss.
        var runningDump: KernelTable?
    }
}
