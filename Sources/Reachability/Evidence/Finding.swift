/// The result of a failed probe: its cause, and whether the server is at fault.
struct Finding: Hashable, Sendable {
    let cause: Cause
    /// Whether it is proven that the route to the server works, so that the server is `down`. Otherwise it is `unreachable`.
    let accusesServer: Bool

    /// Whether the cause needs no count: this machine alone determines it.
    let isCertain: Bool
    /// Whether the next probe examines the failure in another way: with more time, with other segments, or because one message of a router is no
    /// proof. Such a failure alone decides nothing, even if one failure suffices otherwise.
    var isProvisional = false

    init(_ cause: Cause, accusesServer: Bool, isCertain: Bool? = nil) {
        self.cause = cause
        self.accusesServer = accusesServer
        self.isCertain = isCertain ?? cause.isDeterminedHere
    }

    /// Returns the finding with another form of its cause.
    func with(_ cause: Cause, accusesServer: Bool) -> Finding {
        var finding = Finding(cause, accusesServer: accusesServer, isCertain: isCertain)
        finding.isProvisional = isProvisional
        return finding
    }

    /// Creates the finding of a cause that needs no further proof.
    init(_ cause: Cause) { self.init(cause, accusesServer: cause.accusesServer) }
}

extension Cause.Layer {
    /// Whether this machine alone determines a fault in this layer, without sending a packet: link, address, route.
    var isCertain: Bool { self == .link || self == .address || self == .route }
}

extension Cause {
    /// Whether this machine alone determines the fault, so that no second probe can show more: its links, addresses and routes, EPERM and
    /// rejections of its packet filter, its own limits and files.
    var isDeterminedHere: Bool {
        switch layer {
        case .firewall:
            code == .localReject
                || evidence["errno"] == .text(SystemErrorNumber.name(of: SystemErrorNumber.notPermitted.rawValue))
        case .local: true
        default: layer.isCertain
        }
    }

    /// Whether the evidence shows a fault of the server's name: an authority answered that the name has no usable address. A name
    /// server that fails, or that names no authority, accuses nobody but itself.
    var accusesServer: Bool {
        guard layer == .dns, evidence["authoritative"] != .flag(false),
            [.nameNotFound, .noAddressForFamily, .unusableAddress].contains(code)
        else { return false }
        let isAnswered = [LookupAnswer.Source.dns, .nss].contains { evidence["answered_by"] == .text($0.rawValue) }
        return isAnswered
    }
}

extension Cause {
    /// Returns a cause that names the redirects of a host, if there are any. A cause that names them stays as it is.
    package func behind(_ locations: [String], of host: String) -> Cause {
        guard let last = locations.last, evidence["redirects"] == nil else { return self }
        return Cause(
            layer, code, detail: "\(host) redirects to \(last): \(detail)",
            evidence: evidence.merging(["redirects": .list(locations)]) { own, _ in own })
    }
}
