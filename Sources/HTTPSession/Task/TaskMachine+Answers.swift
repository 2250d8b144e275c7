internal import FoundationEssentials
internal import HTTPTypes

/// The questions to the user's handlers, and how the task proceeds after their answers.
extension TaskMachine {
    mutating func ask(_ handlerQuestion: HandlerQuestion) {
        question += 1
        isHandlerAsked = true
        advance(.handlerAsked)
        issue(.askHandler(question: question, handlerQuestion))
    }

    /// Withdraws the open question: its answer is no longer used.
    mutating func withdrawQuestion() {
        guard isHandlerAsked else { return }
        isHandlerAsked = false
        question += 1
        effects.append(.withdrawQuestion)
        if attempt.phase == .adapting { effects.append(.reportNotSent) }
    }

    mutating func handlerAnswered(_ number: Int, _ answer: HandlerAnswer) {
        guard isHandlerAsked, number == question else { return }
        question += 1
        isHandlerAsked = false
        advance(.handlerAnswered)
        switch answer {
        case .response(let disposition):
            guard let head = attempt.head else { return }
            if case .buffered(let data) = attempt.body {
                deliver(head, disposition, data)
            } else {
                deliver(head, disposition, Data())
            }
        case .redirect(.follow):
            if case .redirect(let proposed) = attempt.next { follow(proposed) }
        case .redirect(.modify): break
        case .redirect(.refuse): endWithCurrentResponse()
        case .modified(let request, .success(let segments)):
            // An upload keeps sending its current range, whatever the request's URL.
            if upload == nil { issue(.sendSegments(segments)) }
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
        guard redirectCount < maximum else {
            return end(with: HTTPSessionError(.tooManyRedirects, "more than \(maximum) redirects"))
        }
        guard let head = attempt.head, rules.handlers.contains(.redirect) else { return follow(proposed) }
        ask(.redirect(head, proposed: proposed))
    }

    private mutating func follow(_ next: TransferRequest) {
        redirectCount += 1
        if origin.scheme == "https", Origin(next.url)?.scheme != "https" { hasDowngraded = true }
        metrics.redirectCount += 1
        if let head = attempt.head { issue(.report(.redirected(head))) }
        proceedToAddress(of: next)
    }

    // MARK: Challenges (RFC 9110 section 11)

    /// The challenges for which a credential or a handler exists.
    mutating func answerableChallenges(_ head: ResponseHead) -> [AuthenticationChallenge] {
        guard head.statusCode == 401 || head.statusCode == 407 else { return [] }
        let challenger = head.statusCode == 407 ? rules.session.proxies.httpProxy(for: origin) ?? origin : origin
        var challenges = AuthenticationChallenge.all(in: head, from: challenger)
        if head.statusCode == 401, let credential = attempt.preemptiveCredential {
            for challenge in challenges where challenge.scheme == .basic { logins.noteSent(credential, for: challenge) }
        }
        challenges.removeAll { DigestChallenge($0)?.protection == .authWithBody && !hasBodyInMemory }
        let renewed = Set(challenges.filter { logins.renewNonce($0) }.map(\.protectionSpace))
        for space in Set(challenges.map(\.protectionSpace)).subtracting(renewed) { logins.refuse(space) }
        for index in challenges.indices {
            challenges[index].previousFailureCount = logins.failureCount(challenges[index].protectionSpace)
        }
        let hasAnswer = rules.handlers.contains(.challenge) || challenges.contains { knownCredential(for: $0) != nil }
        return hasAnswer ? challenges : []
    }

    /// Whether the body's hash can be computed, which `auth-int` requires (RFC 7616 section 3.4.3).
    private var hasBodyInMemory: Bool {
        switch request.body {
        case .none, .data: upload == nil
        case .file, .multipart, .stream: false
        }
    }

    private func knownCredential(for challenge: AuthenticationChallenge) -> Credential? {
        if let renewed = logins.renewedCredential(for: challenge) { return renewed }
        var candidates: [Credential] = []
        if !challenge.protectionSpace.isProxy, let own = request.url.credential { candidates.append(own) }
        if let stored = rules.session.credentials[challenge.protectionSpace] { candidates.append(stored) }
        return candidates.first { logins.mayTry($0, for: challenge) }
    }

    mutating func answerChallenges(_ challenges: [AuthenticationChallenge]) {
        for challenge in challenges {
            guard let credential = knownCredential(for: challenge) else { continue }
            issue(.report(.challenged(challenge)))
            return answer(challenge, with: credential)
        }
        askAbout(challenges)
    }

    private mutating func askAbout(_ challenges: [AuthenticationChallenge]) {
        guard let challenge = challenges.first, rules.handlers.contains(.challenge) else { return endWithCurrentResponse() }
        attempt.next = .challenges(challenges)
        issue(.report(.challenged(challenge)))
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
            // A refused credential will be refused again. A handler that ignores the failure count would cause requests without
            // end.
            guard !logins.wasRefused(credential, for: challenge) else { return endWithCurrentResponse() }
            answer(challenge, with: credential)
        case .cancel: end(with: HTTPSessionError(.authenticationFailed, "authentication was canceled by its handler"))
        case .rejectProtectionSpace where challenges.count > 1: askAbout(Array(challenges.dropFirst()))
        case .rejectProtectionSpace, .performDefaultHandling: endWithCurrentResponse()
        }
    }

    private mutating func answer(_ challenge: AuthenticationChallenge, with credential: Credential) {
        // libcurl copies a token, and for Digest a user's name, into the request unchanged: a line break would begin another
        // field.
        guard !credential.user.hasControlCharacter, !credential.secret.hasControlCharacter else {
            let reason = "the credential has a line break, NUL or another control character"
            return end(with: HTTPSessionError(.authenticationFailed, reason))
        }
        guard logins.answerCount < TaskLogins.maximumAnswers else { return endWithCurrentResponse() }
        logins.use(credential, for: challenge)
        proceed(with: request)
    }

    mutating func acceptLogins(_ head: ResponseHead) {
        for (space, credential) in logins.takeConfirmed() where credential.persistence == .forSession {
            // The credential was refused without another challenge.
            if head.statusCode == 407 || (head.statusCode == 401 && !space.isProxy) { continue }
            issue(.storeCredential(credential, space))
        }
    }

    // MARK: Handshakes that wait for a handler's answer (the attempt is then repeated)

    /// - Returns: whether a handler is asked or the task has ended.
    mutating func askAboutServerIfNeeded(_ failure: TransferFailure) -> Bool {
        if let challenge = failure.challenge, rules.handlers.contains(.serverTrust) {
            guard mayAskAboutServer("the server has shown other certificates", challenge.policyError) else { return true }
            issue(.report(.serverTrustChallenged(challenge)))
            ask(.serverTrust(challenge))
            return true
        }
        if let authorities = failure.authorities, rules.handlers.contains(.clientCertificate), mayBeSentAgain {
            let challenge = ClientCertificateChallenge(host: origin.host, port: origin.port, authorities: authorities)
            guard mayAskAboutServer("the server has asked for a certificate", nil) else { return true }
            issue(.report(.clientCertificateChallenged(challenge)))
            ask(.clientCertificate(challenge))
            return true
        }
        return false
    }

    /// Whether the request may be sent again. A TLS 1.2 server may renegotiate and ask for a certificate after it has the
    /// request.
    private var mayBeSentAgain: Bool { !attempt.isConnected || (upload == nil && mayRepeat) }

    /// The limit of consecutive questions. Each server of a farm may have its own certificate. Without a limit, a server with a
    /// new certificate for every connection would cause questions without end.
    private static let maximumHandshakeQuestions = 10

    private mutating func mayAskAboutServer(_ subject: String, _ underlying: HTTPSessionError?) -> Bool {
        handshakeQuestions += 1
        guard handshakeQuestions > TaskMachine.maximumHandshakeQuestions else { return true }
        let reason = "\(subject) \(TaskMachine.maximumHandshakeQuestions) times while its handler was asked"
        end(with: HTTPSessionError(.certificateUntrusted, reason, underlying: underlying))
        return false
    }

    private mutating func apply(_ disposition: ServerTrustDisposition, to challenge: ServerTrustChallenge) {
        issue(.recordTrust(disposition, challenge))
        guard disposition == .accept || (disposition == .performDefaultHandling && challenge.policyError == nil) else {
            return end(
                with: challenge.policyError
                    ?? HTTPSessionError(.certificateUntrusted, "the server was rejected by the session's handler"))
        }
        proceed(with: request)
    }

    private mutating func apply(_ disposition: ClientCertificateDisposition, to challenge: ClientCertificateChallenge) {
        switch disposition {
        case .use(let identity): issue(.recordIdentity(identity))
        case .performDefaultHandling: issue(.recordIdentity(nil))
        case .cancel:
            return end(
                with: HTTPSessionError(
                    .clientCertificateRequired, "\(challenge.host) asks for a client certificate, and its handler has none"))
        }
        proceed(with: request)
    }

    /// Forgets a client certificate that the server rejected, so that the next task's handler is asked again.
    mutating func noteRejectedIdentity(_ error: HTTPSessionError) {
        if error.code == .clientCertificateRejected || error.code == .clientCertificateRequired {
            issue(.forgetIdentity(origin))
        }
    }
}
