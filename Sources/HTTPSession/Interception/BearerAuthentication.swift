internal import ByteComparison
internal import EventLoop
internal import FoundationEssentials
internal import HTTPTypes

/// An interceptor that adds a bearer token (RFC 6750) to every request, and fetches another one when it expires.
///
/// A token is replaced if the server refuses it with 401, or shortly before its ``BearerToken/expiry``. If several requests wait for a token, it
/// is fetched once.
///
/// ```swift
/// let tokens = BearerAuthentication(renewal: TokenRenewal(ahead: .seconds(30))) { _ in
///     let login = try await logIn()
///     return BearerToken(login.token, expiry: login.expiry)
/// }
/// let session = try HTTPSessionManager(handlers: TransferHandlers(interceptors: [tokens]))
/// ```
///
/// Renewal before expiry, and the limit on the number of fetches, work as in Alamofire's `AuthenticationInterceptor`.
public final class BearerAuthentication: RequestInterceptor {
    private struct State: Sendable {
        var life: TokenLife
        var fetching: Task<BearerToken, any Error>?
        /// Whether the token that is being replaced is still valid.
        var isAhead = false
    }

    private let state: Locked<State>
    private let fetch: @Sendable (BearerToken?) async throws -> BearerToken

    /// Creates an interceptor for tokens with an expiry.
    ///
    /// - Parameters:
    ///   - token: The first token; `nil` to fetch it for the first request.
    ///   - renewal: The rule for fetching tokens.
    ///   - fetch: The closure that fetches a token and replaces `expired`, which is refused, missing or about to expire. It must not use a session
    ///     with this interceptor, because its request would wait for itself. Requests wait for the closure only if no valid token exists.
    ///     They fail with ``HTTPSessionError/Code/authenticationFailed`` if the closure throws an error, which is then the underlying error.
    public convenience init(
        token: BearerToken? = nil, renewal: TokenRenewal = TokenRenewal(),
        fetch: @escaping @Sendable (_ expired: BearerToken?) async throws -> BearerToken
    ) {
        self.init(token: token, renewal: renewal, since: Date(), fetch: fetch)
    }

    /// `since` is the time at which `token` was received.
    init(
        token: BearerToken?, renewal: TokenRenewal, since: Date,
        fetch: @escaping @Sendable (BearerToken?) async throws -> BearerToken
    ) {
        state = Locked(State(life: TokenLife(token, renewal, at: since)))
        self.fetch = fetch
    }

    /// Creates an interceptor for tokens without an expiry, which are replaced after a 401.
    ///
    /// - Parameters:
    ///   - token: The first token; `nil` to fetch it for the first request.
    ///   - refresh: The closure that fetches a token, as in ``init(token:renewal:fetch:)``. Its errors have the same effect.
    public convenience init(token: String? = nil, refresh: @escaping @Sendable (_ expired: String?) async throws -> String) {
        self.init(token: token.map { BearerToken($0) }, fetch: { BearerToken(try await refresh($0?.value)) })
    }

    /// The current token; `nil` before the first one is fetched.
    public var token: String? { state.withLock { $0.life.token?.value } }

    /// Adds the token to the request as its `Authorization` field.
    ///
    /// - Throws: ``HTTPSessionError/Code/authenticationFailed`` if no token can be fetched and none is valid.
    public func adapt(_ request: TransferRequest) async throws -> TransferRequest {
        let token: BearerToken
        do { token = try await currentToken(insteadOf: nil) } catch {
            // A token that was refused for another request may be accepted for this one.
            guard let last = state.withLock({ $0.life.usable(insteadOf: nil, at: Date()) }) else {
                throw HTTPSessionError(.authenticationFailed, "no token could be fetched: \(error)", underlying: error)
            }
            token = last
        }
        var request = request
        request.headerFields[.authorization] = "Bearer \(token.value)"
        return request
    }

    /// Retries a request whose token was refused with 401, with another token, at most twice.
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

    /// Returns the current token, or waits for the one that is being fetched. A token equal to `refused` is not used again.
    private func currentToken(insteadOf refused: String?) async throws -> BearerToken {
        let step = state.withLock { state -> Step in
            let usable = state.life.usable(insteadOf: refused, at: Date())
            if refused.isExactly(state.life.token?.value) { state.isAhead = false }
            if let fetching = state.fetching {
                if let usable, state.isAhead { return .use(usable) }
                return .wait(fetching)
            }
            if let usable, !state.life.isDue(at: Date()) { return .use(usable) }
            guard state.life.mayFetch(now: MonotonicClock.now(), isAhead: usable != nil) else {
                return usable.map { .use($0) } ?? .refuse
            }
            // An unstructured task, because a caller that waits for it may be canceled while others wait too.
            let task = Task { [self, expired = state.life.token] in
                do {
                    let token = try await fetch(expired)
                    self.state.withLock { state in
                        state.life.store(token, at: Date())
                        state.fetching = nil
                    }
                    return token
                } catch {
                    self.state.withLock { $0.fetching = nil }
                    throw error
                }
            }
            (state.fetching, state.isAhead) = (task, usable != nil)
            // A token that is replaced before its expiry is used meanwhile.
            return usable.map { .use($0) } ?? .wait(task)
        }
        switch step {
        case .use(let token): return token
        case .wait(let task): return try await task.value
        case .refuse: throw HTTPSessionError(.authenticationFailed, "too many tokens have been fetched in a short time")
        }
    }
}
