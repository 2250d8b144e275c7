internal import FoundationEssentials
internal import Pacing

/// What the task's interceptors make of its requests and failures.
extension TransferMachine {
    /// Shows them the request, if it goes to the origin that it was made for, and has it noted that it leaves.
    ///
    /// - Returns: whether they are asked.
    mutating func adapts() -> Bool {
        guard attempt.adapted == nil else { return false }
        let isShown = rules.handlers.contains(.interceptors) && origin == Origin(start.url)
        guard isShown || rules.handlers.contains(.sendApproval) else { return false }
        attempt.phase = .adapting
        ask(.adaptation(request, isShown: isShown))
        return true
    }

    /// An interceptor's `adapt` has thrown: the interceptors decide whether the request is adapted once more.
    mutating func adaptationFailed(_ error: HTTPSessionError) {
        attempt.phase = .preparing
        effects.append(.stay)
        if isIntercepted { askInterceptors(about: error) } else { end(with: error) }
    }

    mutating func adapted(_ result: Result<TransferRequest, HTTPSessionError>) {
        attempt.phase = .preparing
        do throws(HTTPSessionError) {
            let adapted = try result.get()
            guard try rules.session.check(adapted) == origin else {
                throw HTTPSessionError(.interceptorFailed, "an interceptor changed the origin: it may do so only in a retry")
            }
            // One that is suspended meanwhile asks again when it goes on.
            if rules.handlers.contains(.sendApproval), !isRunning { return effects.append(.stay) }
            attempt.adapted = adapted
        } catch {
            effects.append(.stay)
            return end(with: error)
        }
        beginIfReady()
    }

    /// Whether they are asked what follows after a response or an error.
    var isIntercepted: Bool {
        rules.handlers.contains(.interceptors) && interceptions < TransferHandlers.maximumInterceptions
    }

    mutating func askInterceptors(about error: HTTPSessionError?) {
        ask(
            .interception(
                FailedAttempt(
                    request: attempt.adapted ?? request, response: error == nil ? attempt.head : nil, error: error,
                    retryCount: interceptions)))
    }

    mutating func intercepted(_ decision: InterceptorDecision, _ error: HTTPSessionError?) {
        switch decision {
        case .proceed:
            if let error { end(with: error) } else { settleForResponse() }
        case .fail(let reason): end(with: HTTPSessionError.interceptorFailure(reason))
        case .retry(let delay):
            noteInterception(error)
            let delay = max(0, delay.saturatingNanoseconds)
            metrics.timeBackingOff += .nanoseconds(delay)
            goOn(with: nextAttempt(), delay: delay)
        case .retryWith where upload != nil:
            noteInterception(error)
            // An upload's places are its server's.
            goOn(with: nextAttempt())
        case .retryWith(var next):
            noteInterception(error)
            // What has been read of it is the task's.
            order(.release(next))
            next.body = request.body
            order(.release(start))
            start = next
            redirects = 0
            turn(to: next)
        }
    }

    private mutating func noteInterception(_ error: HTTPSessionError?) {
        interceptions += 1
        metrics.retryCount += 1
        order(.tell(.willRetry(error ?? unacceptable(attempt.heldBody))))
    }
}
