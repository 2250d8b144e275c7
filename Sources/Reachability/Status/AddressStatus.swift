/// Which addresses of a name are probed.
public enum ProbedAddresses: String, Hashable, Sendable, CaseIterable {
    /// Each probe ends with the first address that answers, and after it one of the others is tried, in turn.
    case any
    /// After each successful probe all the others are tried, and ``ServerUpdate/addresses`` has the result of each.
    case each
}

/// One address of a server all of whose addresses are probed (``ProbedAddresses/each``).
public struct AddressStatus: Hashable, Sendable {
    /// The address.
    public let address: IPAddress
    package let statusName: StatusName
    /// Why the address does not answer; `nil` if it does, if it was not tried yet, and if this machine has no route to it.
    public let cause: Cause?
    /// The time at which the status began.
    package let since: Moment

    package init(_ address: IPAddress, _ statusName: StatusName, cause: Cause? = nil, since: Moment) {
        (self.address, self.statusName, self.cause, self.since) = (address, statusName, cause, since)
    }

    /// Whether the address answers; `nil` if it was not tried yet, or if this machine has no route to it. An address that redirects to another
    /// connection answers: only a probe follows the redirect.
    public var answers: Bool? {
        switch statusName {
        case .up, .degraded: true
        case .down: false
        case .unknown, .unreachable: nil
        }
    }

    /// Whether two values have the same status and the same kind of cause.
    func isSame(as other: AddressStatus) -> Bool {
        address == other.address && statusName == other.statusName
            && (cause?.isSameFailure(as: other.cause) ?? (other.cause == nil))
    }
}
