internal import FoundationEssentials

/// The answers to Digest challenges, which the session makes itself. libcurl 7.88 answers only the first challenge, misreads spaces around `=`, and has
/// neither SHA-512-256 nor `auth-int` with a body.
extension TaskDriver {
    /// Adds the answers to the plan of an attempt.
    func answerDigests(in plan: inout TransferPlan) {
        if let login = machine.logins.takeDigest(isProxy: false) {
            let value = answer(login, method: plan.method, target: plan.target)
            if let value {
                let line = "Authorization: \(value)"
                if login.challenge.isLatin1 { plan.latin1Lines.append(line) } else { plan.headerLines.append(line) }
            }
        }
        guard plan.usesProxy, let login = machine.logins.takeDigest(isProxy: true) else { return }
        let isTunnel = plan.isSecure || plan.expectsUpgrade
        let value = answer(
            login, method: isTunnel ? "CONNECT" : plan.method, target: isTunnel ? machine.origin.authority : plan.target)
        guard let value else { return }
        let lines = ["Proxy-Authorization: \(value)"]
        (plan.proxyHeaderLines, plan.proxyLatin1Lines) = login.challenge.isLatin1 ? ([], lines) : (lines, [])
        // Otherwise libcurl would answer with the user of the URL as well.
        plan.proxy = plan.proxy.map(TaskDriver.withoutUser)
    }

    private func answer(_ login: TaskLogins.DigestLogin, method: String, target: String) -> String? {
        let algorithm = login.challenge.algorithm
        var subject = DigestChallenge.Subject(
            method: method, target: target, count: login.count,
            clientNonce: (0..<2).map { _ in String(UInt64.random(in: 0 ... .max), radix: 16) }.joined())
        if login.challenge.protection == .authWithBody { subject.bodyHash = bodyHash(algorithm) }
        return login.challenge.answer(user: login.user, password: login.password, to: subject) {
            algorithm.hash($0, isLatin1: login.challenge.isLatin1)
        }
    }

    /// The hash of the request's body, if it is in memory.
    private func bodyHash(_ algorithm: DigestChallenge.Algorithm) -> String? {
        switch machine.request.body {
        case .none: algorithm.hash("")
        case .data(let data): data.withUnsafeBytes { algorithm.hash($0) }
        case .file, .multipart, .stream: nil
        }
    }

    private static func withoutUser(_ proxy: String) -> String {
        guard let at = proxy.lastIndex(of: "@") else { return proxy }
        let start = proxy.firstRange(of: "://")?.upperBound ?? proxy.startIndex
        return start <= at ? String(proxy[..<start] + proxy[proxy.index(after: at)...]) : proxy
    }
}
