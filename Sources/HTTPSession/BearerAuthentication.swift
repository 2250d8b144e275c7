internal import EventLoop
internal import HTTPTypes

/// Bearer tokens (RFC 6750) for every request of a session, refreshed when the server calls one expired: once, however many requests
/// wait for it.
///
/// ```swift
/// let tokens = BearerAuthentication { expired in try await logIn() }
/// let session = try HTTPSessionManager(handlers: TransferHandlers(interceptors: [tokens]))
/// ```
public final class BearerAuthentication: RequestInterceptor {
    private struct State: Sendable {
        var token: String?
        var refreshing: Task<String, any Error>?
    }

    private let state: Locked<State>
    private let refresh: @Sendable (String?) async throws -> String

    /// `refresh` gets a token in the place of one that is refused or missing; it must not use a session that these tokens belong to.
    public init(token: String? = nil, refresh: @escaping @Sendable (_ expired: String?) async throws -> String) {
        state = Locked(State(token: token))
        self.refresh = refresh
    }

    /// The token in use.
    public var token: String? { state.withLock { $0.token } }

    /// Puts the token into the request.
    public func adapt(_ request: TransferRequest) async throws -> TransferRequest {
        let token: String
        do { token = try await currentToken(insteadOf: nil) } catch {
            throw HTTPSessionError(.authenticationFailed, "there is no token: \(error)", underlying: error)
        }
        var request = request
        request.headerFields[.authorization] = "Bearer \(token)"
        return request
    }

    /// Once more with another token, where this one was refused with 401. A new one that is refused too is the server's last word.
    public func retry(after attempt: FailedAttempt) async -> InterceptorDecision {
        guard attempt.response?.statusCode == 401, attempt.retryCount < 2,
            let sent = attempt.request.headerFields[.authorization], sent.hasPrefix("Bearer ")
        else { return .proceed }
        guard (try? await currentToken(insteadOf: String(sent.dropFirst("Bearer ".count)))) != nil else { return .proceed }
        return .retry()
    }

    /// The token, or the one that is being fetched; `refused` is none any more.
    private func currentToken(insteadOf refused: String?) async throws -> String {
        let step = state.withLock { state -> Result<String, Waiting> in
            if let refreshing = state.refreshing { return .failure(Waiting(task: refreshing)) }
            if let token = state.token, token != refused { return .success(token) }
            // A task of its own: whoever waits for it may be cancelled, and others wait too.
            let task = Task { [self, expired = state.token] in
                do {
                    let token = try await refresh(expired)
                    self.state.withLock { ($0.token, $0.refreshing) = (token, nil) }
                    return token
                } catch {
                    self.state.withLock { $0.refreshing = nil }
                    throw error
                }
            }
            state.refreshing = task
            return .failure(Waiting(task: task))
        }
        switch step {
        case .success(let token): return token
        case .failure(let waiting): return try await waiting.task.value
        }
    }

    private struct Waiting: Error {
        let task: Task<String, any Error>
    }
}
