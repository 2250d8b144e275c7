internal import FoundationEssentials
internal import Pacing

/// How the task's interceptors change its requests and decide about its failures.
extension TaskMachine {
    /// Shows the request to the interceptors if it goes to the origin of the first request, and asks for the approval to send it.
    ///
    /// - Returns: whether an answer is awaited.
    mutating func requestAdaptationIfNeeded() -> Bool {
        guard attempt.adaptedRequest == nil else { return false }
        let isShown = rules.handlers.contains(.interceptors) && origin == Origin(initialRequest.url)
        guard isShown || rules.handlers.contains(.sendApproval) else { return false }
        attempt.phase = .adapting
        ask(.adaptation(request, isShown: isShown))
        return true
    }

    /// An interceptor's `adapt` has thrown: the interceptors decide whether the request is adapted again.
    mutating func adaptationFailed(_ error: HTTPSessionError) {
        attempt.phase = .preparing
        effects.append(.reportNotSent)
        if isIntercepted { askInterceptors(about: error) } else { end(with: error) }
    }

    mutating func adapted(_ result: Result<TransferRequest, HTTPSessionError>) {
        attempt.phase = .preparing
        do throws(HTTPSessionError) {
            let adapted = try result.get()
            guard try rules.session.check(adapted) == origin else {
                throw HTTPSessionError(.interceptorFailed, "an interceptor changed the origin: it may do so only in a retry")
            }
            // A task that was suspended meanwhile asks for the approval again when it is resumed.
            if rules.handlers.contains(.sendApproval), !isRunning { return effects.append(.reportNotSent) }
            attempt.adaptedRequest = adapted
        } catch {
            effects.append(.reportNotSent)
            return end(with: error)
        }
        startIfReady()
    }

    /// Whether the interceptors are asked about responses and errors.
    var isIntercepted: Bool {
        rules.handlers.contains(.interceptors) && interceptions < TransferHandlers.maximumInterceptions
    }

    mutating func askInterceptors(about error: HTTPSessionError?) {
        ask(
            .interception(
                FailedAttempt(
                    request: attempt.adaptedRequest ?? request, response: error == nil ? attempt.head : nil, error: error,
                    retryCount: interceptions)))
    }

    mutating func intercepted(_ decision: InterceptorDecision, _ error: HTTPSessionError?) {
        switch decision {
        case .proceed:
            if let error { end(with: error) } else { endWithCurrentResponse() }
        case .fail(let reason): end(with: HTTPSessionError.interceptorFailure(reason))
        case .retry(let delay):
            noteInterception(error)
            let delay = max(0, delay.saturatingNanoseconds)
            metrics.timeBackingOff += .nanoseconds(delay)
            proceed(with: nextAttempt(), delay: delay)
        case .retryWith where upload != nil:
            noteInterception(error)
            // The server chooses the URLs of an upload.
            proceed(with: nextAttempt())
        case .retryWith(var next):
            noteInterception(error)
            // The task's body has been read partly, so the interceptor's body is not used.
            issue(.releaseBody(of: next))
            next.body = request.body
            issue(.releaseBody(of: initialRequest))
            initialRequest = next
            redirectCount = 0
            proceedToAddress(of: next)
        }
    }

    private mutating func noteInterception(_ error: HTTPSessionError?) {
        interceptions += 1
        noteReceived()
        metrics.retryCount += 1
        issue(.report(.willRetry(error ?? unacceptable(attempt.bufferedBody))))
    }
}
