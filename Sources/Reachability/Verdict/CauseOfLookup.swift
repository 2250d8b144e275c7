/// Determines the cause of a failed lookup. None of these causes is the target server's fault.
///
/// getaddrinfo distinguishes little: a name server that refuses, fails, or is silent ends as EAI_AGAIN. A lookup that takes
/// ``silenceNanoseconds`` or longer counts as silent.
enum CauseOfLookup {
    /// The shortest time after which a name server counts as silent: resolv.conf(5) counts timeouts in whole seconds.
    static let silenceNanoseconds: Int64 = 1_000_000_000

    /// Returns the cause of an answer without addresses. `answer` is `nil` if the deadline passed without one.
    static func cause(
        _ answer: LookupAnswer?, name: String, elapsed: Int64, in localState: TargetMachine.LocalState
    ) -> Cause {
        let resolver = answer.flatMap { ResolverCode(rawValue: $0.code) }
        var evidence: [String: Cause.Evidence] = ["name": .text(name), "elapsed_ms": .number(Int(elapsed / 1_000_000))]
        if let answer { evidence["resolver"] = .text(resolver?.name ?? "EAI \(answer.code)") }
        if let answer, answer.errno != 0 { evidence["errno"] = .text(SystemErrorNumber.name(of: answer.errno)) }
        func dns(_ code: Cause.Code, _ detail: String) -> Cause { Cause(.dns, code, detail: detail, evidence: evidence) }

        switch resolver {
        case .noData, .family, .noAddressForFamily:
            return dns(.noAddressForFamily, "\(name) has no address of the families that are tried")
        case .system where answer?.errno == SystemErrorNumber.tooManyFiles.rawValue,
            .system where answer?.errno == SystemErrorNumber.tooManyFilesInSystem.rawValue, .outOfMemory:
            return Cause(.local, .fileLimit, detail: "no descriptor or memory left to resolve \(name)", evidence: evidence)
        case .nameNotFound where localState.hasResolver:
            return dns(.nameNotFound, "there is no name \(name)")
        default: break
        }
        // Without a path, no name server can be asked. If one answered nevertheless, for example on the link, its answer counts.
        let isUnanswered = answer == nil || resolver == .tryAgain || resolver == .system
        if isUnanswered, localState.path.status == .unsatisfied, let cause = localState.path.cause { return cause }
        guard localState.hasResolver else { return dns(.noResolver, "no name server is configured to resolve \(name)") }
        if let answer, answer.code == 0 {
            return dns(.noAddressForFamily, "\(name) has no address of the families that are tried")
        }
        if answer == nil || (resolver == .tryAgain && elapsed >= silenceNanoseconds) {
            return dns(.resolverSilent, "no name server answered for \(name) in time")
        }
        return dns(.serverFailure, "the name server could not resolve \(name)")
    }
}
