/// Determines the cause of a failed lookup from its evidence.
///
/// | evidence | cause |
/// |---|---|
/// | NXDOMAIN | name-not-found |
/// | no record in any family | no-address-for-family |
/// | SERVFAIL, FORMERR, NOTIMP, or messages that do not answer the question | server-failure |
/// | REFUSED, or the port is closed | resolver-refused |
/// | the kernel or a router refuses the packets | the cause of that refusal |
/// | nothing | resolver-silent |
/// | no name server is configured, and 127.0.0.1 does not answer | no-resolver |
///
/// If several name servers were asked, the exchange that got furthest counts.
enum CauseOfLookup {
    /// The shortest time after which getaddrinfo's failure counts as silence: resolv.conf(5) counts timeouts in whole seconds.
    static let silenceNanoseconds: Int64 = 1_000_000_000

    /// Returns the cause of an answer without addresses. `answer` is `nil` if the deadline passed without one.
    /// `resolver` is the name server that alone was asked; `nil` for those of the system.
    static func cause(
        _ answer: LookupAnswer?, name: String, by resolver: NameServerAddress? = nil, elapsed: Int64, in localState: LocalState
    ) -> Cause {
        if let answer, answer.answeredBy == .dns {
            return LookupFailure(answer: answer, name: name, resolver: resolver, elapsed: elapsed, localState: localState).cause
        }
        // The deadline passed before anything was known.
        if let resolver {
            let lookup = LookupAnswer(id: 0, code: NameCode.tryAgain, v4: FamilyLookup(.unanswered))
            return LookupFailure(answer: lookup, name: name, resolver: resolver, elapsed: elapsed, localState: localState).cause
        }
        return causeOfCode(answer, name: name, elapsed: elapsed, in: localState)
    }

    /// Returns a cause that names the source address to whose family the addresses of a target are limited. Other causes stay as they are.
    static func naming(_ source: IPAddress?, in cause: Cause) -> Cause {
        guard let source, cause.code == .noAddressForFamily else { return cause }
        return Cause(
            cause.layer, cause.code,
            detail: "\(cause.detail); its source address \(source) allows IPv\(source.family.rawValue) alone",
            evidence: cause.evidence.merging(["source_address": .text("\(source)")]) { own, _ in own })
    }

    /// Returns the cause of an answer whose only addresses are 0.0.0.0 and ::.
    static func unusable(_ answer: LookupAnswer, name: String) -> Cause {
        let address = answer.addresses.first.map { "\($0)" } ?? ""
        var evidence = Self.evidence(name, answer.elapsedNanoseconds, answer.answeredBy)
        evidence["address"] = .text(address)
        if let server = answer.server { evidence["resolver"] = .text("\(server)") }
        let detail = "\(name) resolves to \(address), to which no connection is possible"
        return Cause(.dns, .unusableAddress, detail: detail, evidence: evidence)
    }

    /// Returns the cause of a target that is 0.0.0.0 or ::, without a lookup.
    static func unusable(_ address: IPAddress) -> Cause {
        let detail =
            "\(address) is the unspecified address, to which no connection is possible; \(address.loopback) is this machine"
        return Cause(.dns, .unusableAddress, detail: detail, evidence: ["address": .text("\(address)")])
    }

    /// Returns the evidence that every lookup has.
    static func evidence(_ name: String, _ elapsed: Int64, _ source: LookupAnswer.Source?) -> [String: Cause.Evidence] {
        var evidence: [String: Cause.Evidence] = ["name": .text(name), "elapsed_ms": .number(Int(elapsed / 1_000_000))]
        if let source { evidence["answered_by"] = .text(source.rawValue) }
        return evidence
    }

    /// Returns the sentence of ``Cause/Code/noResolver``.
    static func noResolver(for name: String) -> String {
        "no name server is configured to resolve \(name), and \(ResolverConfiguration.Nameserver.implicit) does not answer"
    }

    /// Returns the cause of a code of getaddrinfo, which distinguishes little: a name server that refuses, fails, or is silent
    /// ends as EAI_AGAIN.
    private static func causeOfCode(
        _ answer: LookupAnswer?, name: String, elapsed: Int64, in localState: LocalState
    ) -> Cause {
        let resolver = answer.flatMap { ResolverCode(rawValue: $0.code) }
        // Answers without a source are those of getaddrinfo in earlier recordings.
        let source = answer.map { $0.answeredBy ?? .nss }
        var evidence = evidence(name, elapsed, source)
        if let answer, source == .nss { evidence["getaddrinfo"] = .text(resolver?.name ?? "EAI \(answer.code)") }
        if let answer, answer.errno != 0 { evidence["errno"] = .text(SystemErrorNumber.name(of: answer.errno)) }
        func dns(_ code: Cause.Code, _ detail: String) -> Cause { Cause(.dns, code, detail: detail, evidence: evidence) }

        switch resolver {
        case .noData, .family, .noAddressForFamily:
            return dns(.noAddressForFamily, "\(name) has no address of the families that are tried")
        case .system where answer?.errno == SystemErrorNumber.tooManyFiles.rawValue,
            .system where answer?.errno == SystemErrorNumber.tooManyFilesInSystem.rawValue, .outOfMemory:
            return Cause(.local, .fileLimit, detail: "no descriptor or memory left to resolve \(name)", evidence: evidence)
        // Without a name server getaddrinfo ends with EAI_AGAIN, so this is an answer.
        case .nameNotFound:
            return dns(.nameNotFound, "there is no name \(name)")
        default: break
        }
        // Without a path, no name server can be asked. If one answered nevertheless, for example on the link, its answer counts.
        let isUnanswered = answer == nil || resolver == .tryAgain || resolver == .system
        if isUnanswered, localState.path.status == .unsatisfied, let cause = localState.path.cause { return cause }
        guard localState.hasResolver, source != .notAsked else {
            evidence["answered_by"] = nil
            evidence["getaddrinfo"] = nil
            return dns(.noResolver, noResolver(for: name))
        }
        if let answer, answer.code == 0 {
            return dns(.noAddressForFamily, "\(name) has no address of the families that are tried")
        }
        if answer == nil || (resolver == .tryAgain && elapsed >= silenceNanoseconds) {
            return dns(.resolverSilent, "no name server answered for \(name) in time")
        }
        return dns(.serverFailure, "the name server could not resolve \(name)")
    }
}
