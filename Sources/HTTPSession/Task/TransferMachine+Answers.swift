internal import FoundationEssentials
internal import HTTPTypes

/// What the user's handlers are asked, and what follows from their answers.
extension TransferMachine {
    mutating func ask(_ what: HandlerQuestion) {
        question += 1
        isAsked = true
        live(.handlerAsked)
        order(.ask(question: question, what))
    }

    /// Nobody waits for the handler's word any more.
    mutating func withdrawQuestion() {
        guard isAsked else { return }
        isAsked = false
        question += 1
        effects.append(.withdraw)
        if attempt.phase == .adapting { effects.append(.stay) }
    }

    mutating func answered(_ number: Int, _ answer: HandlerAnswer) {
        guard isAsked, number == question else { return }
        question += 1
        isAsked = false
        live(.handlerAnswered)
        switch answer {
        case .response(let disposition):
            guard let head = attempt.head else { return }
            if case .held(let data) = attempt.body { settle(head, disposition, data) } else { settle(head, disposition, Data()) }
        case .redirect(.follow):
            if case .redirect(let proposed) = attempt.next { follow(proposed) }
        case .redirect(.modify): break
        case .redirect(.refuse): settleForResponse()
        case .modified(let request, .success(let segments)):
            // An upload sends the part that is its turn, wherever to.
            if upload == nil { order(.sendSegments(segments)) }
            follow(request)
        case .modified(_, .failure(let error)): end(with: error)
        case .adapted(let result): adapted(result)
        case .adaptationFailed(let error): adaptationFailed(error)
        case .intercepted(let decision, let error): intercepted(decision, error)
        case .serverTrust(let challenge, let disposition): apply(disposition, to: challenge)
        case .clientCertificate(let challenge, let disposition): apply(disposition, to: challenge)
        case .challenge(let disposition): apply(disposition)
        }
    }

    // MARK: Redirects

    mutating func redirect(to proposed: TransferRequest) {
        let maximum = rules.session.configuration.maximumRedirects
        guard redirects < maximum else {
            return end(with: HTTPSessionError(.tooManyRedirects, "more than \(maximum) redirects"))
        }
        guard let head = attempt.head, rules.handlers.contains(.redirect) else { return follow(proposed) }
        ask(.redirect(head, proposed: proposed))
    }

    private mutating func follow(_ next: TransferRequest) {
        redirects += 1
        metrics.redirectCount += 1
        if let head = attempt.head { order(.tell(.redirected(head))) }
        turn(to: next)
    }

    // MARK: Challenges (RFC 9110 section 11)

    /// The challenges that somebody may have an answer to.
    mutating func answerableChallenges(_ head: ResponseHead) -> [AuthenticationChallenge] {
        guard head.statusCode == 401 || head.statusCode == 407 else { return [] }
        let asker = head.statusCode == 407 ? rules.session.proxies.httpProxy(for: origin) ?? origin : origin
        var challenges = AuthenticationChallenge.all(in: head, from: asker)
        if head.statusCode == 401, let credential = attempt.unaskedCredential {
            for challenge in challenges where challenge.scheme == .basic { logins.noteSent(credential, for: challenge) }
        }
        for space in Set(challenges.map(\.protectionSpace)) { logins.refuse(space) }
        for index in challenges.indices {
            challenges[index].previousFailureCount = logins.failureCount(challenges[index].protectionSpace)
        }
        let hasAnswer = rules.handlers.contains(.challenge) || challenges.contains { knownCredential(for: $0) != nil }
        return hasAnswer ? challenges : []
    }

    private func knownCredential(for challenge: AuthenticationChallenge) -> Credential? {
        var candidates: [Credential] = []
        if !challenge.protectionSpace.isProxy, let own = request.url.credential { candidates.append(own) }
        if let kept = rules.session.credentials[challenge.protectionSpace] { candidates.append(kept) }
        return candidates.first { logins.mayTry($0, for: challenge) }
    }

    mutating func meet(_ challenges: [AuthenticationChallenge]) {
        for challenge in challenges {
            guard let credential = knownCredential(for: challenge) else { continue }
            order(.tell(.challenged(challenge)))
            return answer(challenge, with: credential)
        }
        askAbout(challenges)
    }

    private mutating func askAbout(_ challenges: [AuthenticationChallenge]) {
        guard let challenge = challenges.first, rules.handlers.contains(.challenge) else { return settleForResponse() }
        attempt.next = .challenges(challenges)
        order(.tell(.challenged(challenge)))
        ask(.challenge(challenge))
    }

    private mutating func apply(_ disposition: TransferHandlers.ChallengeDisposition) {
        guard case .challenges(let challenges) = attempt.next, let challenge = challenges.first else { return }
        switch disposition {
        case .useCredential(let credential):
            guard credential.schemes.contains(challenge.scheme) else {
                let reason = "the credential does not fit the scheme '\(challenge.scheme.rawValue)'"
                return end(with: HTTPSessionError(.authenticationFailed, reason))
            }
            // What has been refused will be again: a handler that never looks would ask the server for ever.
            guard !logins.wasRefused(credential, for: challenge) else { return settleForResponse() }
            answer(challenge, with: credential)
        case .cancel: end(with: HTTPSessionError(.authenticationFailed, "authentication was cancelled by its handler"))
        case .rejectProtectionSpace where challenges.count > 1: askAbout(Array(challenges.dropFirst()))
        case .rejectProtectionSpace, .performDefaultHandling: settleForResponse()
        }
    }

    private mutating func answer(_ challenge: AuthenticationChallenge, with credential: Credential) {
        // libcurl puts a token, and for Digest a user's name, into the request as they are: a line break would begin another field.
        guard !credential.user.hasControlCharacter, !credential.secret.hasControlCharacter else {
            let reason = "the credential has a line break, NUL or another control character"
            return end(with: HTTPSessionError(.authenticationFailed, reason))
        }
        guard logins.answers < TaskLogins.maximumAnswers else { return settleForResponse() }
        logins.use(credential, for: challenge)
        goOn(with: request)
    }

    mutating func acceptLogins(_ head: ResponseHead) {
        for (space, credential) in logins.takeConfirmed() where credential.persistence == .forSession {
            // Refused without another challenge.
            if head.statusCode == 407 || (head.statusCode == 401 && !space.isProxy) { continue }
            order(.keepCredential(credential, space))
        }
    }

    // MARK: Handshakes that wait for a handler's word: the attempt is made again when it has come.

    /// - Returns: whether somebody is asked, or the task has ended.
    mutating func asksAboutServer(_ failure: TransferFailure) -> Bool {
        if let challenge = failure.challenge, rules.handlers.contains(.serverTrust) {
            guard mayAskAboutServer("the server has shown other certificates", challenge.policyError) else { return true }
            order(.tell(.serverTrustChallenged(challenge)))
            ask(.serverTrust(challenge))
            return true
        }
        if let authorities = failure.authorities, rules.handlers.contains(.clientCertificate), mayBeSentAgain {
            let challenge = ClientCertificateChallenge(host: origin.host, port: origin.port, authorities: authorities)
            guard mayAskAboutServer("the server has asked for a certificate", nil) else { return true }
            order(.tell(.clientCertificateChallenged(challenge)))
            ask(.clientCertificate(challenge))
            return true
        }
        return false
    }

    /// A server may ask in the middle (TLS 1.2 knows a second handshake), when it has the request already.
    private var mayBeSentAgain: Bool { !attempt.isConnected || (upload == nil && mayRepeat) }

    /// A farm of servers may have a certificate each; one that has a new one for every connection never ends.
    private static let maximumServerQuestions = 10

    private mutating func mayAskAboutServer(_ what: String, _ underlying: HTTPSessionError?) -> Bool {
        serverQuestions += 1
        guard serverQuestions > TransferMachine.maximumServerQuestions else { return true }
        let reason = "\(what) \(TransferMachine.maximumServerQuestions) times while its handler was asked"
        end(with: HTTPSessionError(.certificateUntrusted, reason, underlying: underlying))
        return false
    }

    private mutating func apply(_ disposition: ServerTrustDisposition, to challenge: ServerTrustChallenge) {
        order(.recordTrust(disposition, challenge))
        guard disposition == .accept || (disposition == .performDefaultHandling && challenge.policyError == nil) else {
            return end(
                with: challenge.policyError
                    ?? HTTPSessionError(.certificateUntrusted, "the server was rejected by the session's handler"))
        }
        goOn(with: request)
    }

    private mutating func apply(_ disposition: ClientCertificateDisposition, to challenge: ClientCertificateChallenge) {
        switch disposition {
        case .use(let identity): order(.recordIdentity(identity))
        case .performDefaultHandling: order(.recordIdentity(nil))
        case .cancel:
            return end(
                with: HTTPSessionError(
                    .clientCertificateRequired, "\(challenge.host) asks for a client certificate, and its handler has none"))
        }
        goOn(with: request)
    }

    /// What was shown is not wanted: whoever comes next is asked anew.
    mutating func noteRejectedIdentity(_ error: HTTPSessionError) {
        if error.code == .clientCertificateRejected || error.code == .clientCertificateRequired {
            order(.forgetIdentity(origin))
        }
    }
}
