internal import Foundation

/// The user's handlers: they are asked, and what follows from their answers.
extension TaskRun {
    /// Asks a handler of the user's, off this thread.
    func ask(_ body: @escaping @Sendable () async -> HandlerAnswer) {
        question += 1
        handle(.handlerAsked)
        let (id, number, core) = (task.id, question, task.core)
        asking = UserTask { core.post(.answered(id, question: number, await body())) }
    }

    /// Nobody waits for the handler's word any more.
    func withdrawQuestion() {
        guard let asking else { return }
        // What hears of it is the user's.
        task.core.deliver { asking.cancel() }
        self.asking = nil
        question += 1
        if exchange.isAdapting { noteStay() }
    }

    func answered(_ number: Int, _ answer: HandlerAnswer) {
        // What of it is not taken over is let go of where the user's objects may end.
        loop.letGo(answer)
        guard number == question else { return }
        question += 1
        asking = nil
        handle(.handlerAnswered)
        apply(answer)
    }

    func apply(_ answer: HandlerAnswer) {
        switch answer {
        case .response(let disposition):
            guard let head = exchange.head else { return }
            if case .held(let data) = exchange.body { settle(head, disposition, data) } else { settle(head, disposition, Data()) }
        case .redirect(.follow):
            if case .redirect(let proposed) = exchange.next { follow(proposed) }
        case .redirect(.modify): break
        case .modified(let request, .success(let segments)):
            // An upload sends the part that is its turn, wherever to.
            if upload == nil { replaceBody(segments) }
            follow(request)
        case .modified(_, .failure(let error)): end(with: error)
        case .adapted(let result): adapted(result)
        case .adaptationFailed(let error): adaptationFailed(error)
        case .intercepted(let decision, let error): intercepted(decision, error)
        case .redirect(.refuse):
            settleForResponse()
        case .serverTrust(let challenge, let disposition): apply(disposition, to: challenge)
        case .clientCertificate(let challenge, let disposition): apply(disposition, to: challenge)
        case .challenge(let disposition):
            guard case .challenges(let challenges) = exchange.next, let challenge = challenges.first else { return }
            switch disposition {
            case .useCredential(let credential):
                guard credential.schemes.contains(challenge.scheme) else {
                    return end(
                        with: HTTPSessionError(
                            .authenticationFailed, "the credential does not fit the scheme '\(challenge.scheme.rawValue)'"))
                }
                // What has been refused will be again: a handler that never looks would ask the server for ever.
                guard !logins.wasRefused(credential, for: challenge) else { return settleForResponse() }
                self.answer(challenge, with: credential)
            case .cancel: end(with: HTTPSessionError(.authenticationFailed, "authentication was cancelled by its handler"))
            case .rejectProtectionSpace where challenges.count > 1: askAbout(Array(challenges.dropFirst()))
            case .rejectProtectionSpace, .performDefaultHandling:
                settleForResponse()
            }
        }
    }
}
