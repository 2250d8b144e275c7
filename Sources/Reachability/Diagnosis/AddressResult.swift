/// The result of one address of a name that has several: a verdict from probes of its own.
package struct AddressResult: Hashable, Sendable {
    package var address: IPAddress
    /// The address's verdict; `nil` if there is none yet.
    package var update: ServerUpdate?

    package init(_ address: IPAddress, update: ServerUpdate? = nil) {
        self.address = address
        self.update = update
    }

    package var status: StatusName { update?.statusName ?? .unknown }

    /// Whether this machine has no route to the address, which is no fault of the target.
    package var isWithoutRoute: Bool { update?.cause?.layer.isCertain ?? false }

    fileprivate var isFailing: Bool { (status == .down || status == .unreachable) && !isWithoutRoute }
}

extension [AddressResult] {
    /// The cause for which a target that answers is degraded: that of an address that fails; `nil` if none does.
    var degradation: Cause? {
        let routed = filter { !$0.isWithoutRoute }
        let failing = routed.filter(\.isFailing)
        guard let cause = failing.first?.update?.cause else { return nil }
        return AddressSurvey.degradation(by: cause, failing.map(\.address), of: routed.map(\.address))
    }
}
