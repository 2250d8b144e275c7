import EventLoop

/// The records of a server, and the tests that wait for more of them.
package final class ServerLog<State: Sendable>: Sendable {
    private struct Waiter: Sendable {
        let isMet: @Sendable (State) -> Bool
        let continuation: CheckedContinuation<State, any Error>
    }

    private struct Contents: Sendable {
        var state: State
        var waiters: [Int: Waiter] = [:]
        var nextWaiter = 0
    }

    private let contents: Locked<Contents>

    package init(_ state: State) {
        contents = Locked(Contents(state: state))
    }

    package var state: State { contents.withLock { $0.state } }

    /// Changes the state and resumes those who waited for it.
    package func change<Result>(_ change: (inout State) -> Result) -> Result {
        let (result, met, state) = contents.withLock { contents in
            let result = change(&contents.state)
            let met = contents.waiters.filter { $0.value.isMet(contents.state) }
            for key in met.keys { contents.waiters[key] = nil }
            return (result, met.values.map(\.continuation), contents.state)
        }
        if !met.isEmpty {
            HomeThread.run { for continuation in met { continuation.resume(returning: state) } }
        }
        return result
    }

    /// Waits until the state meets a condition. It may have changed again when this returns, so the state that met the condition is returned.
    /// - Throws: ``TestServerError`` if that takes too long; `CancellationError`.
    package func wait(
        for what: String, within limit: Duration, until isMet: @escaping @Sendable (State) -> Bool
    ) async throws -> State {
        try await withThrowingTaskGroup(of: State.self) { group in
            group.addTask { try await self.met(isMet) }
            group.addTask {
                try await Task.sleep(for: limit)
                throw TestServerError("no \(what) within \(limit)")
            }
            defer { group.cancelAll() }
            guard let state = try await group.next() else { throw CancellationError() }
            return state
        }
    }

    private func met(_ isMet: @escaping @Sendable (State) -> Bool) async throws -> State {
        let key = contents.withLock { contents in
            defer { contents.nextWaiter += 1 }
            return contents.nextWaiter
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<State, any Error>? = contents.withLock { contents in
                    if isMet(contents.state) { return .success(contents.state) }
                    // A cancellation from here on finds the waiter.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    contents.waiters[key] = Waiter(isMet: isMet, continuation: continuation)
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let waiter = contents.withLock { $0.waiters.removeValue(forKey: key) }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }
}
