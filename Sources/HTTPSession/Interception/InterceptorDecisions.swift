internal import EventLoop

extension TransferHandlers {
    /// How often interceptors may repeat a task.
    static let maximumInterceptions = 10

    /// The decision of the first interceptor that does not leave the failure at that.
    func retryDecision(after attempt: FailedAttempt) async -> InterceptorDecision {
        for interceptor in interceptors {
            let decision = await interceptor.retry(after: attempt)
            guard case .proceed = decision else { return decision }
        }
        return .proceed
    }

    /// The decision, if it comes within `limit` nanoseconds; `nil` if not, or if the caller's task is canceled meanwhile.
    ///
    /// The interceptor's task is canceled then, and an interceptor that ignores this delays nobody.
    func retryDecision(after attempt: FailedAttempt, within limit: Int64) async -> InterceptorDecision? {
        let race = DecisionRace()
        let asking = Task { race.end(with: await retryDecision(after: attempt)) }
        let waiting = Task {
            try await Task.sleep(for: .nanoseconds(limit))
            race.end(with: nil)
        }
        defer {
            asking.cancel()
            waiting.cancel()
        }
        return await withTaskCancellationHandler {
            await race.decision
        } onCancel: {
            race.end(with: nil)
        }
    }
}

/// The first of several answers to one question.
private final class DecisionRace: Sendable {
    private enum State: Sendable {
        case open
        case awaited(CheckedContinuation<InterceptorDecision?, Never>)
        case ended(InterceptorDecision?)
    }

    private let state = Locked(State.open)

    /// Awaited once.
    var decision: InterceptorDecision? {
        get async {
            await withCheckedContinuation { continuation in
                let former = state.withLock { state in
                    if case .open = state { state = .awaited(continuation) }
                    return state
                }
                if case .ended(let decision) = former { continuation.resume(returning: decision) }
            }
        }
    }

    /// Answers that come after the first are dropped.
    func end(with decision: InterceptorDecision?) {
        let former = state.withLock { state in
            let former = state
            if case .ended = state { return former }
            state = .ended(decision)
            return former
        }
        if case .awaited(let continuation) = former { continuation.resume(returning: decision) }
    }
}

extension HTTPSessionError {
    /// The error that a task ends with when an interceptor has thrown `error`.
    static func interceptorFailure(_ error: any Error) -> HTTPSessionError {
        (error as? HTTPSessionError)
            ?? HTTPSessionError(.interceptorFailed, "an interceptor failed: \(error)", underlying: error)
    }
}
