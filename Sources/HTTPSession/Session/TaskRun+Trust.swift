internal import Foundation

/// Handshakes that wait for a handler's word: the attempt is made again when it has come.
extension TaskRun {
    /// - Returns: whether somebody is asked, or the task has ended.
    func asksAboutServer() -> Bool {
        if case .undecided(let challenge) = exchange.trust?.verdict, let handler = task.handlers.serverTrust {
            guard mayAskAboutServer("the server has shown other certificates", challenge.policyError) else { return true }
            loop.outbox.announce(.serverTrustChallenged(task, challenge))
            ask { .serverTrust(challenge, await handler(challenge)) }
            return true
        }
        if let authorities = exchange.trust?.identityQuestion, let handler = task.handlers.clientCertificate, mayBeSentAgain {
            let challenge = ClientCertificateChallenge(host: origin.host, port: origin.port, authorities: authorities)
            guard mayAskAboutServer("the server has asked for a certificate", nil) else { return true }
            loop.outbox.announce(.clientCertificateChallenged(task, challenge))
            ask { .clientCertificate(challenge, await handler(challenge)) }
            return true
        }
        return false
    }

    /// A server may ask in the middle (TLS 1.2 knows a second handshake), when it has the request already.
    private var mayBeSentAgain: Bool { !exchange.isConnected || (upload == nil && failure(.connectionLost).isRepeatable) }

    private func mayAskAboutServer(_ what: String, _ underlying: HTTPSessionError?) -> Bool {
        serverQuestions += 1
        guard serverQuestions > TaskRun.maximumServerQuestions else { return true }
        let reason = "\(what) \(TaskRun.maximumServerQuestions) times while its handler was asked"
        end(with: HTTPSessionError(.certificateUntrusted, reason, underlying: underlying))
        return false
    }

    func apply(_ disposition: ServerTrustDisposition, to challenge: ServerTrustChallenge) {
        task.decisions?.record(disposition, of: challenge, at: .now)
        guard disposition == .accept || (disposition == .performDefaultHandling && challenge.policyError == nil) else {
            return end(
                with: challenge.policyError
                    ?? HTTPSessionError(.certificateUntrusted, "the server was rejected by the session's handler"))
        }
        goOn(with: request)
    }

    func apply(_ disposition: ClientCertificateDisposition, to challenge: ClientCertificateChallenge) {
        switch disposition {
        case .use(let identity): task.identities?.record(identity, for: origin, at: .now)
        case .performDefaultHandling: task.identities?.record(nil, for: origin, at: .now)
        case .cancel:
            return end(
                with: HTTPSessionError(
                    .clientCertificateRequired, "\(challenge.host) asks for a client certificate, and its handler has none"))
        }
        goOn(with: request)
    }

    /// What was shown is not wanted: whoever comes next is asked anew.
    func noteRejectedIdentity(_ error: HTTPSessionError) {
        if error.code == .clientCertificateRejected || error.code == .clientCertificateRequired {
            task.identities?.forget(origin)
        }
    }
}
