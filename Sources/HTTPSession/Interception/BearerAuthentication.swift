internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes

/// Bearer tokens (RFC 6750) for every request of a session, fetched anew when the server calls one expired, or shortly before one says that
/// it is: once, however many requests wait for it.
///
/// ```swift
/// let tokens = BearerAuthentication(renewal: TokenRenewal(ahead: .seconds(30))) { _ in
///     let answer = try await logIn()
///     return BearerToken(answer.token, expiry: answer.expiry)
/// }
/// let session = try HTTPSessionManager(handlers: TransferHandlers(interceptors: [tokens]))
/// ```
///
/// The renewal ahead of time and the limit on excessive ones are ideas of Alamofire's.
public final class BearerAuthentication: RequestInterceptor {
    private struct State: Sendable {
        var life: TokenLife
        var fetching: Task<BearerToken, any Error>?
        /// Whether the token that it replaces is good yet.
        var isAhead = false
    }

    private let state: Locked<State>
    private let fetch: @Sendable (BearerToken?) async throws -> BearerToken

    /// `fetch` gets a token in the place of one that is refused, missing or about to expire; it must not use a session that these tokens
    /// belong to. Requests wait for it only where there is no token that is good yet.
    public convenience init(
        token: BearerToken? = nil, renewal: TokenRenewal = TokenRenewal(),
        fetch: @escaping @Sendable (_ expired: BearerToken?) async throws -> BearerToken
    ) {
        self.init(token: token, renewal: renewal, since: Date(), fetch: fetch)
    }

    /// `since`: from when on there has been `token`.
    init(
        token: BearerToken?, renewal: TokenRenewal, since: Date,
        fetch: @escaping @Sendable (BearerToken?) async throws -> BearerToken
    ) {
        state = Locked(State(life: TokenLife(token, renewal, at: since)))
        self.fetch = fetch
    }

    /// Tokens that do not say when they expire. `refresh` is as `fetch` of ``init(token:renewal:fetch:)``.
    public convenience init(token: String? = nil, refresh: @escaping @Sendable (_ expired: String?) async throws -> String) {
        self.init(token: token.map { BearerToken($0) }, fetch: { BearerToken(try await refresh($0?.value)) })
    }

    /// The token in use.
    public var token: String? { state.withLock { $0.life.token?.value } }

    /// Puts the token into the request.
    public func adapt(_ request: TransferRequest) async throws -> TransferRequest {
        let token: BearerToken
        do { token = try await currentToken(insteadOf: nil) } catch {
            // Whose server refused it for another request may take it for this one.
            guard let last = state.withLock({ $0.life.usable(insteadOf: nil, at: Date()) }) else {
                throw HTTPSessionError(.authenticationFailed, "there is no token: \(error)", underlying: error)
            }
            token = last
        }
        var request = request
        request.headerFields[.authorization] = "Bearer \(token.value)"
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

    private enum Step {
        case use(BearerToken)
        case wait(Task<BearerToken, any Error>)
        case refuse
    }

    /// The token, or the one that is being fetched; `refused` is none any more.
    private func currentToken(insteadOf refused: String?) async throws -> BearerToken {
        let step = state.withLock { state -> Step in
            let usable = state.life.usable(insteadOf: refused, at: Date())
            if refused == state.life.token?.value { state.isAhead = false }
            if let fetching = state.fetching {
                if let usable, state.isAhead { return .use(usable) }
                return .wait(fetching)
            }
            if let usable, !state.life.isDue(at: Date()) { return .use(usable) }
            guard state.life.mayFetch(now: MonotonicClock.now(), isAhead: usable != nil) else {
                return usable.map { .use($0) } ?? .refuse
            }
            // A task of its own: whoever waits for it may be cancelled, and others wait too.
            let task = Task { [self, expired = state.life.token] in
                do {
                    let token = try await fetch(expired)
                    self.state.withLock { state in
                        state.life.take(token, at: Date())
                        state.fetching = nil
                    }
                    return token
                } catch {
                    self.state.withLock { $0.fetching = nil }
                    throw error
                }
            }
            (state.fetching, state.isAhead) = (task, usable != nil)
            // What is only replaced in good time is used meanwhile.
            return usable.map { .use($0) } ?? .wait(task)
        }
        switch step {
        case .use(let token): return token
        case .wait(let task): return try await task.value
        case .refuse: throw HTTPSessionError(.authenticationFailed, "too many tokens have been fetched in a short time")
        }
    }
}
