internal import Foundation
internal import Pacing

/// What the task's interceptors make of its requests and failures.
extension TaskRun {
    /// Shows them the request, if it goes to the origin that it was made for, and has it noted that it leaves.
    ///
    /// - Returns: whether ``adapted(_:)`` follows.
    func adapts() -> Bool {
        guard exchange.adapted == nil else { return false }
        let isShown = !task.handlers.interceptors.isEmpty && origin == Origin(start.url)
        guard isShown || job.departure != nil else { return false }
        let interceptors = isShown ? task.handlers.interceptors : []
        exchange.isAdapting = true
        ask { [request, job] in
            var adapted = request
            do {
                for interceptor in interceptors { adapted = try await interceptor.adapt(adapted) }
            } catch {
                return .adaptationFailed(HTTPSessionError.interceptorFailure(error))
            }
            do {
                try await job.departure?.willLeave()
                return .adapted(.success(adapted))
            } catch {
                return .adapted(.failure(HTTPSessionError.interceptorFailure(error)))
            }
        }
        return true
    }

    /// An interceptor's `adapt` has thrown: the interceptors decide whether the request is adapted once more.
    func adaptationFailed(_ error: HTTPSessionError) {
        exchange.isAdapting = false
        noteStay()
        if isIntercepted { askInterceptors(about: error) } else { end(with: error) }
    }

    func adapted(_ result: Result<TransferRequest, HTTPSessionError>) {
        exchange.isAdapting = false
        do throws(HTTPSessionError) {
            let adapted = try result.get()
            guard try settings.check(adapted) == origin else {
                throw HTTPSessionError(.interceptorFailed, "an interceptor changed the origin: it may do so only in a retry")
            }
            // One that is suspended meanwhile asks again when it goes on.
            if job.departure != nil, !isRunning { return noteStay() }
            exchange.adapted = adapted
        } catch {
            noteStay()
            return end(with: error)
        }
        beginIfReady()
    }

    /// Whether they are asked what follows after a response or an error.
    var isIntercepted: Bool { !task.handlers.interceptors.isEmpty && interceptions < TransferHandlers.maximumInterceptions }

    func askInterceptors(about error: HTTPSessionError?) {
        let attempt = FailedAttempt(
            request: exchange.adapted ?? request, response: error == nil ? exchange.head : nil, error: error,
            retryCount: interceptions)
        ask { [handlers = task.handlers] in .intercepted(await handlers.retryDecision(after: attempt), error) }
    }

    func intercepted(_ decision: InterceptorDecision, _ error: HTTPSessionError?) {
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
            loop.letGo(next)
            next.body = request.body
            loop.letGo(start)
            start = next
            redirects = 0
            turn(to: next)
        }
    }

    private func noteInterception(_ error: HTTPSessionError?) {
        interceptions += 1
        metrics.retryCount += 1
        loop.outbox.announce(.willRetry(task, error ?? unacceptable(exchange.heldBody)))
    }
}
