// What a path machine keeps between events, beside the snapshot.

extension PathMachine {
    /// What is left to be done at the turn's end.
    struct Work: Sendable {
        /// The kernel has to be asked anew.
        var ask = false
        /// An evaluation is under way: questions may be out.
        var evaluate = false
        /// Routes or rules that refuse a network came or went.
        var filters = false
        /// More than the answers changed.
        var structure = false
        /// Interfaces of which the link, an address or the evidence changed.
        var interfaces: Set<UInt32> = []
        /// Events since the turn began.
        var events = 0
    }

    /// What of a link decides where its evidence is read; a change of flags is no reason to read it again.
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

    /// Tables that must be dumped before what was lost is made good.
    struct Resync: Sendable {
        /// Each once, in the order in which they came.
        var reasons: [ResyncReason] = []
        var tables: CaseSet<KernelTable> = []
        /// The table whose dump ran already when the loss happened: its end proves nothing.
        var underway: KernelTable?
    }
}
