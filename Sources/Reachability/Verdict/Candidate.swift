/// An address of a target that may be probed, with its route query.
struct Candidate: Hashable, Sendable {
    var address: IPAddress
    var port: UInt16
    /// The index of the interface of a link-local address, if the user named it; otherwise 0.
    var zone: UInt32
    /// The index of the interface to which probes are bound; 0 for the kernel's choice.
    var boundTo: UInt32
    /// The source address and the mark of the packets; `nil` for packets without them.
    var selector: RouteSelector?

    /// The query for the candidate's route.
    var query: RouteQuery { RouteQuery(address, interface: boundTo != 0 ? boundTo : zone, port: port, selector: selector) }
}

/// The meaning of the kernel's answer for a candidate.
enum CandidateRoute: Hashable, Sendable {
    /// The kernel would send a packet over this route.
    case open(ChosenRoute)
    /// The kernel would certainly not send a packet. `interface` is the failing interface; `nil` if no single one is at fault.
    case blocked(Cause, interface: UInt32?)

    var route: ChosenRoute? {
        if case .open(let route) = self { return route }
        return nil
    }
}
