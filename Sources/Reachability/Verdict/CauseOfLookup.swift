/// What a lookup that failed says. Nothing of it accuses the server.
///
/// getaddrinfo tells little: a name server that refuses, one that fails and one that is silent all end as EAI_AGAIN. What takes
/// as long as ``silenceNanoseconds`` is taken for silence.
enum CauseOfLookup {
    /// resolv.conf(5) counts time-outs in whole seconds: no silent name server is given up earlier.
    static let silenceNanoseconds: Int64 = 1_000_000_000

    /// The cause of an answer without addresses; of no answer in time when `answer` is `nil`.
    static func cause(
        _ answer: LookupAnswer?, name: String, elapsed: Int64, in surroundings: TargetMachine.Surroundings
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
        case .nameNotFound where surroundings.hasResolver:
            return dns(.nameNotFound, "there is no name \(name)")
        default: break
        }
        // No name server can be asked without a path. One that answered, such as one on the link, was asked nevertheless.
        let isUnanswered = answer == nil || resolver == .tryAgain || resolver == .system
        if isUnanswered, surroundings.path.status == .unsatisfied, let cause = surroundings.path.cause { return cause }
        guard surroundings.hasResolver else { return dns(.noResolver, "no name server is configured to resolve \(name)") }
        if let answer, answer.code == 0 {
            return dns(.noAddressForFamily, "\(name) has no address of the families that are tried")
        }
        if answer == nil || (resolver == .tryAgain && elapsed >= silenceNanoseconds) {
            return dns(.resolverSilent, "no name server answered for \(name) in time")
        }
        return dns(.serverFailure, "the name server could not resolve \(name)")
    }
}
