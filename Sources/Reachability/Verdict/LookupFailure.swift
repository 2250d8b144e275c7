/// A lookup that found no address in DNS. Its cause is a pure function of the exchanges with the name servers.
struct LookupFailure {
    let answer: LookupAnswer
    let name: String
    /// The name server that alone was asked; `nil` for those of the system.
    var resolver: NameServerAddress?
    let elapsed: Int64
    let localState: LocalState

    private var evidence: [String: Cause.Evidence] { CauseOfLookup.evidence(name, elapsed, .dns) }

    /// The cause.
    var cause: Cause {
        switch answer.families.map(\.result).negative {
        case .nameNotFound: return negative(.nameNotFound, "there is no name \(name)", "NXDOMAIN")
        case .noData: return noAddress
        default: break
        }
        let failed = answer.families.filter { $0.result == .failed || $0.result == .unanswered }.flatMap(\.exchanges)
        var furthest: NameServerExchange?
        for exchange in failed where rank(exchange) > furthest.map(rank) ?? -1 { furthest = exchange }
        if isWithoutResolver(furthest) { return noResolver(furthest) }
        guard let furthest else {
            guard let resolver else { return silence(evidence, nil) }
            return silence(evidence.merging(["resolver": .text("\(resolver)")]) { own, _ in own }, resolver)
        }
        return cause(of: furthest)
    }

    /// Returns whether resolv.conf names no server, and none answers at the address that is asked instead. An answer from there, and a limit
    /// of this process, are facts of their own.
    private func isWithoutResolver(_ furthest: NameServerExchange?) -> Bool {
        guard resolver == nil, !localState.hasResolver else { return false }
        guard let furthest else { return true }
        return switch furthest.outcome {
        case .answered, .invalid: false
        case .silent: true
        case .failed: furthest.call != "socket"
        }
    }

    private func noResolver(_ exchange: NameServerExchange?) -> Cause {
        // Without a path, no name server can be asked.
        if localState.path.status == .unsatisfied, let cause = localState.path.cause { return cause }
        var evidence = evidence
        evidence["answered_by"] = nil
        if let exchange {
            evidence["resolver"] = .text("\(exchange.server)")
            if exchange.outcome == .failed { evidence["errno"] = .text(SystemErrorNumber.name(of: exchange.errno)) }
        }
        return Cause(.dns, .noResolver, detail: CauseOfLookup.noResolver(for: name), evidence: evidence)
    }

    /// The cause of a name without an address. A loop of aliases is named, because the answer's code does not show it.
    private var noAddress: Cause {
        guard let loop = answer.families.flatMap(\.exchanges).lazy.compactMap(\.aliasLoop).first, let first = loop.first,
            let last = loop.last
        else { return negative(.noAddressForFamily, "\(name) has no address of the families that are tried", "NOERROR") }
        let detail =
            first == last
            ? "\(name) has no address: \(first) is an alias (CNAME) of itself"
            : "\(name) has no address: its aliases (CNAME) form a loop, from \(first) to \(last) and back"
        return negative(.noAddressForFamily, detail, "NOERROR", loop)
    }

    /// Returns the cause of an authority's answer.
    private func negative(_ code: Cause.Code, _ detail: String, _ rcode: String, _ aliasLoop: [String]? = nil) -> Cause {
        var evidence = evidence
        evidence["rcode"] = .text(rcode)
        if let aliasLoop { evidence["alias_loop"] = .text(aliasLoop.joined(separator: " ")) }
        let exchanges = answer.families.flatMap(\.exchanges).filter(\.isNegative)
        if let exchange = exchanges.first { evidence["resolver"] = .text("\(exchange.server)") }
        var detail = detail
        // Somebody on the way may have made up an answer that names no authority.
        if exchanges.contains(where: { $0.isAuthoritative == false }), !exchanges.contains(where: { $0.isAuthoritative == true })
        {
            evidence["authoritative"] = .flag(false)
            detail += ", says an answer that names no authority"
        }
        return Cause(.dns, code, detail: detail, evidence: evidence)
    }

    /// How far the question got: to this machine's limits, to its routes and filter, out of it, to somebody who refused it, or to
    /// a server that answered.
    private func rank(_ exchange: NameServerExchange) -> Int {
        switch exchange.outcome {
        case .answered, .invalid: return 4
        case .silent: return 2
        case .failed:
            if exchange.call == "socket" { return 0 }
            if exchange.reporter != nil, !isOwn(exchange) { return 3 }
            return exchange.call == "receive" || exchange.errno == SystemErrorNumber.connectionRefused.rawValue ? 3 : 1
        }
    }

    private func cause(of exchange: NameServerExchange) -> Cause {
        var evidence = evidence
        let server = exchange.server
        evidence["resolver"] = .text("\(server)")
        if exchange.isOverTCP { evidence["protocol"] = .text("tcp") }
        switch exchange.outcome {
        case .silent: return silence(evidence, server)
        case .invalid:
            let detail = "the name server \(server) sends messages that do not answer the question for \(name)"
            return Cause(.dns, .serverFailure, detail: detail, evidence: evidence)
        case .answered:
            let rcode = ResponseCode(number: exchange.rcode ?? 0)
            evidence["rcode"] = .text(rcode.name)
            if exchange.isReferral == true {
                evidence["referral"] = .flag(true)
                let detail = "the name server \(server) refers to other servers instead of resolving \(name)"
                return Cause(.dns, .serverFailure, detail: detail, evidence: evidence)
            }
            if rcode.number == 5 {
                let detail = "the name server \(server) refuses to resolve \(name)"
                return Cause(.dns, .resolverRefused, detail: detail, evidence: evidence)
            }
            let detail = "the name server \(server) could not resolve \(name): \(rcode.name)"
            return Cause(.dns, .serverFailure, detail: detail, evidence: evidence)
        case .failed: break
        }
        evidence["errno"] = .text(SystemErrorNumber.name(of: exchange.errno))
        if let call = exchange.call { evidence["call"] = .text(call) }
        if let reporter = exchange.reporter {
            evidence["icmp_type"] = .number(Int(reporter.type))
            evidence["icmp_code"] = .number(Int(reporter.code))
            if let offender = reporter.offender { evidence["hop"] = .text("\(offender)") }
            if let cause = reported(by: reporter, exchange, evidence) { return cause }
        }
        return causeOfErrno(exchange, evidence)
    }

    /// Returns the cause that an ICMP message reports; `nil` if its errno says more.
    private func reported(
        by reporter: ProbeResult.Reporter, _ exchange: NameServerExchange, _ evidence: [String: Cause.Evidence]
    ) -> Cause? {
        let server = exchange.server
        guard reporter.origin != 1, let code = reporter.code(server.address.family) else { return nil }
        // A server on this machine reports its closed port from the address that was asked.
        if code == .portFiltered, reporter.offender == server.address { return closedPort(server, evidence) }
        if isOwn(exchange) {
            // The kernel reports its failed neighbor discovery from an own address. A rejecting filter also refuses the call.
            if code == .hostUnreachable, exchange.errno != SystemErrorNumber.notPermitted.rawValue {
                return silence(evidence, server)
            }
            let detail = "this machine's packet filter rejects packets to the name server \(server)"
            return Cause(.firewall, .localReject, detail: detail, evidence: evidence)
        }
        let hop = reporter.offender.map { "\($0)" } ?? "a router"
        let detail =
            switch code {
            case .netUnreachable: "\(hop) has no route to the network of the name server \(server)"
            case .adminProhibited: "\(hop) prohibits packets to the name server \(server)"
            case .portFiltered: "\(hop) filters \(Self.port(of: server))"
            default: "\(hop) cannot reach the name server \(server)"
            }
        return Cause(.network, code, detail: detail, evidence: evidence)
    }

    private func causeOfErrno(_ exchange: NameServerExchange, _ evidence: [String: Cause.Evidence]) -> Cause {
        let server = exchange.server
        func local(_ layer: Cause.Layer, _ code: Cause.Code, _ detail: String) -> Cause {
            // Without a path, the path's cause is the reason for the missing route.
            if layer != .firewall, layer != .local, localState.path.status == .unsatisfied, let cause = localState.path.cause {
                return cause
            }
            return Cause(layer, code, detail: detail, evidence: evidence)
        }
        switch SystemErrorNumber(rawValue: exchange.errno) {
        case .connectionRefused: return closedPort(server, evidence)
        case .connectionReset, .connectionAborted, .brokenPipe:
            let detail = "the name server \(server) closed the connection without an answer for \(name)"
            return Cause(.dns, .serverFailure, detail: detail, evidence: evidence)
        case .notPermitted:
            var evidence = evidence
            if let scope = exchange.scope { evidence["scope"] = .text(scope.rawValue) }
            let what = exchange.scope == .address ? "the name server \(server)" : Self.port(of: server)
            let detail = "this machine's packet filter drops packets to \(what)"
            return Cause(.firewall, .localDrop, detail: detail, evidence: evidence)
        case .networkUnreachable, .familyNotSupported, .addressNotAvailable:
            return local(.route, .noRoute, "there is no route to the name server \(server)")
        case .hostUnreachable where exchange.call == "receive":
            return silence(evidence, server)
        case .hostUnreachable, .hostDown:
            return local(.route, .routeUnreachable, "an 'unreachable' route refuses the name server \(server)")
        case .accessDenied:
            return local(.route, .routeProhibited, "a 'prohibit' route or rule refuses the name server \(server)")
        case .invalid:
            return local(.route, .routeBlackhole, "a 'blackhole' route drops packets to the name server \(server)")
        case .networkDown:
            return local(.link, .interfaceDown, "the interface that leads to the name server \(server) is switched off")
        case .tooManyFiles, .tooManyFilesInSystem, .outOfMemory, .noBufferSpace:
            return local(.local, .fileLimit, "no descriptor or memory left to resolve \(name)")
        default:
            let number = SystemErrorNumber.name(of: exchange.errno)
            return local(.local, .sourceUnavailable, "no socket can be used towards the name server \(server): \(number)")
        }
    }

    private func closedPort(_ server: ResolverConfiguration.Nameserver, _ evidence: [String: Cause.Evidence]) -> Cause {
        let detail = "\(Self.port(of: server)) is closed"
        return Cause(.dns, .resolverRefused, detail: detail, evidence: evidence)
    }

    private static func port(of server: ResolverConfiguration.Nameserver) -> String {
        "port \(server.port) of the name server \(NameServerAddress(server.address, zone: server.zone))"
    }

    /// Returns the cause of a lookup without any answer. Without a path, no answer was possible.
    private func silence(_ evidence: [String: Cause.Evidence], _ server: ResolverConfiguration.Nameserver?) -> Cause {
        if localState.path.status == .unsatisfied, let cause = localState.path.cause { return cause }
        let who = server.map { "the name server \($0) does not answer" } ?? "no name server answered"
        return Cause(.dns, .resolverSilent, detail: "\(who) for \(name)", evidence: evidence)
    }

    private func isOwn(_ exchange: NameServerExchange) -> Bool {
        guard let reporter = exchange.reporter else { return false }
        guard reporter.origin != 1 else { return true }
        return reporter.offender.map { $0 != exchange.server.address && ($0.isLoopback || localState.isOwn($0)) } ?? true
    }
}

/// A response code of DNS (RFC 1035 section 4.1.1, RFC 2136 section 2.2).
struct ResponseCode: Hashable, Sendable {
    let number: UInt8

    /// The name in the registry of IANA, or the number.
    var name: String {
        let names = [
            "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET", "NXRRSET", "NOTAUTH",
            "NOTZONE",
        ]
        return Int(number) < names.count ? names[Int(number)] : "RCODE\(number)"
    }
}

/// A lookup that no name server answered.
struct SilentLookup: Hashable, Sendable {
    /// The cause, unless the way to the name servers is at fault.
    let cause: Cause
    /// The silent name servers, in the order in which they were asked.
    let servers: [ResolverConfiguration.Nameserver]

    /// Creates the examination of a lookup; `nil` if its cause is another one, or no name server is known.
    init?(_ cause: Cause, _ answer: LookupAnswer?) {
        guard cause.layer == .dns, cause.code == .resolverSilent, let answer else { return nil }
        var servers: [ResolverConfiguration.Nameserver] = []
        for exchange in answer.families.flatMap(\.exchanges) where !servers.contains(exchange.server) {
            // This machine itself reports EHOSTUNREACH of a server whose next hop does not answer.
            let isSilent = exchange.outcome == .silent || exchange.errno == SystemErrorNumber.hostUnreachable.rawValue
            if isSilent { servers.append(exchange.server) }
        }
        guard !servers.isEmpty else { return nil }
        (self.cause, self.servers) = (cause, servers)
    }
}
