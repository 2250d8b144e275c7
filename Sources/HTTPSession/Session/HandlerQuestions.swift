extension TransferHandlers {
    /// The answer of the user's handler. `sendApproval` is asked last, after the interceptors have adapted the request.
    func answer(to question: HandlerQuestion, sendApproval: SendApproval?) async -> HandlerAnswer {
        switch question {
        case .adaptation(let request, let isShown): await adapt(request, isShown: isShown, sendApproval)
        case .response(let head): .response(await response?(head) ?? .allow)
        case .redirect(let head, let proposed): await redirect(head, proposed)
        case .challenge(let challenge): .challenge(await self.challenge?(challenge) ?? .performDefaultHandling)
        case .interception(let attempt): .intercepted(await retryDecision(after: attempt), attempt.error)
        case .serverTrust(let challenge):
            .serverTrust(challenge, await serverTrust?(challenge) ?? .performDefaultHandling)
        case .clientCertificate(let challenge):
            .clientCertificate(challenge, await clientCertificate?(challenge) ?? .performDefaultHandling)
        }
    }

    private func adapt(_ request: TransferRequest, isShown: Bool, _ sendApproval: SendApproval?) async -> HandlerAnswer {
        var adapted = request
        do {
            if isShown { for interceptor in interceptors { adapted = try await interceptor.adapt(adapted) } }
        } catch {
            return .adaptationFailed(HTTPSessionError.interceptorFailure(error))
        }
        do {
            try await sendApproval?.approve()
            return .adapted(.success(adapted))
        } catch {
            return .adapted(.failure(HTTPSessionError.interceptorFailure(error)))
        }
    }

    private func redirect(_ head: ResponseHead, _ proposed: TransferRequest) async -> HandlerAnswer {
        let disposition = await redirect?(Redirect(response: head, proposed: proposed)) ?? .follow
        guard case .modify(let request) = disposition else { return .redirect(disposition) }
        // Measured here, off the session's thread, because the body may be a file.
        do throws(HTTPSessionError) { return .modified(request, .success(try request.body.segments())) } catch {
            return .modified(request, .failure(error))
        }
    }
}

/// The handler that approves each request before it is sent, for programs that record across processes whether a request may have been sent.
package struct SendApproval: Sendable {
    /// Called before every attempt, off the session's thread, within ``SessionConfiguration/handlerTimeout``. If it throws, the task fails.
    package var approve: @Sendable () async throws -> Void
    /// Called when the last approved attempt has ended, if neither it nor an earlier attempt has sent any of its request. Called on the session's
    /// thread, so it must not block.
    package var wasNotSent: @Sendable () -> Void

    package init(
        approve: @escaping @Sendable () async throws -> Void, wasNotSent: @escaping @Sendable () -> Void
    ) {
        self.approve = approve
        self.wasNotSent = wasNotSent
    }
}
