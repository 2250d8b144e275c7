internal import Reachability

/// The kinds of networks that a request may use, from its options and the session's configuration.
struct NetworkAllowance: Hashable, Sendable {
    var cellular: Bool
    var expensive: Bool
    var constrained: Bool

    init(_ options: TransferRequest.Options, _ configuration: SessionConfiguration) {
        cellular = options.allowsCellularAccess ?? configuration.allowsCellularAccess
        expensive = options.allowsExpensiveAccess ?? configuration.allowsExpensiveAccess
        constrained = options.allowsConstrainedAccess ?? configuration.allowsConstrainedAccess
    }

    var allowsEverything: Bool { cellular && expensive && constrained }

    /// The reason why no available interface may be used, in one word, before the server's address is known.
    ///
    /// `nil` if an interface may be used, or if none is available. `name` is the interface that the session is bound to.
    func refusal(of path: NetworkPath, boundTo name: String?) -> String? {
        guard !allowsEverything, path.status == .satisfied else { return nil }
        if let name, let interface = path.interfaces.first(where: { $0.hasName(name) }) {
            return refusal(of: interface, on: path)
        }
        guard let refusal = refusal(of: path) else { return nil }
        // Another interface may lead to this host; that shows when its address is known.
        let others = path.interfaces.filter {
            $0.level == .routable && $0.type != .loopback && (!$0.isVirtual || $0.type == .tunnel)
        }
        return others.contains { self.refusal(of: $0, on: path) == nil } ? nil : refusal
    }

    /// The reason why a connection from the address `local`, which the kernel's route has chosen, may not be used, in one word.
    func refusal(of path: NetworkPath, from local: IPAddress) -> String? {
        let local = local.unmapped
        guard !allowsEverything, !local.isLoopback else { return nil }
        guard let interface = path.interfaces.first(where: { $0.addresses.contains { $0.address == local } }) else {
            return path.status == .satisfied ? refusal(of: path) : nil
        }
        return refusal(of: interface, on: path)
    }

    // A tunnel's packets use the path's interface, even if the tunnel leads to some networks only.
    private func refusal(of interface: NetworkInterface, on path: NetworkPath) -> String? {
        let isOfPath = [path.interfaceV4, path.interfaceV6].contains { $0?.index == interface.index }
        if isOfPath || interface.type == .tunnel, let refusal = refusal(of: path) { return refusal }
        if !cellular, interface.type == .cellular { return "cellular" }
        return !expensive && interface.isExpensive ? "expensive" : nil
    }

    private func refusal(of path: NetworkPath) -> String? {
        if !cellular, path.usesInterfaceType(.cellular) { return "cellular" }
        if !expensive, path.isExpensive { return "expensive" }
        return !constrained && path.isConstrained ? "constrained" : nil
    }
}
