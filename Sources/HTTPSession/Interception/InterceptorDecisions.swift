internal import EventLoop

extension TransferHandlers {
    /// The largest number of retries that interceptors may request for a task.
    static let maximumInterceptions = 10

    /// The decision of the first interceptor that does not return `proceed`.
    func retryDecision(after attempt: FailedAttempt) async -> InterceptorDecision {
        for interceptor in deciders {
            let decision = await interceptor.retry(after: attempt)
            guard case .proceed = decision else { return decision }
        }
        return .proceed
    }

    /// Returns the decision; `nil` if it takes longer than `limit` nanoseconds, or if the caller's task is canceled meanwhile.
    ///
    /// In these cases the interceptor's task is canceled. An interceptor that ignores the cancellation does not delay the caller.
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

/// The result of a race between an interceptor's decision, its time limit and a cancellation: the first one counts.
private final class DecisionRace: Sendable {
    private enum State: Sendable {
        case open
        case awaited(CheckedContinuation<InterceptorDecision?, Never>)
        case ended(InterceptorDecision?)
    }

    private let state = Locked(State.open)

    /// The first result. It may be awaited once.
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

    /// Ends the race. Results after the first are ignored.
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
    /// The error of a task whose interceptor has thrown `error`.
    static func interceptorFailure(_ error: any Error) -> HTTPSessionError {
        (error as? HTTPSessionError)
            ?? HTTPSessionError(.interceptorFailed, "an interceptor failed: \(error)", underlying: error)
    }
}
