/// The handlers that decide while a task runs, like the methods of URLSession's delegates.
///
/// Handlers never run on the session's thread. They run one at a time for each task, and must return within ``SessionConfiguration/handlerTimeout``.
/// If the transfer ends in the meantime, the handler's Swift task is canceled and its answer is ignored. If a handler is `nil`, the documented
/// default applies.
///
/// A task releases its handlers when it has finished, and a session when it has ended. A data or upload task with interceptors keeps its handlers until
/// the task is released or the session has ended, because a serializer may ask the interceptors.
///
/// A task may have handlers of its own. Each that is set replaces the session's handler of the same name for this task, and the session's others remain:
/// <doc:HTTPSession#Handlers-and-options-of-a-task>.
public struct TransferHandlers: Sendable {
    /// The decision about a response, made when its head has arrived.
    @nonexhaustive public enum ResponseDisposition: Hashable, Sendable {
        /// The body is received.
        case allow
        /// The task fails with ``HTTPSessionError/Code/cancelled``.
        case cancel
        /// A data task becomes a download to this destination.
        case becomeDownload(DownloadDestination)
    }

    /// The decision about a redirect.
    @nonexhaustive public enum RedirectDisposition: Sendable {
        /// The proposed request is sent.
        case follow
        /// This request is sent instead of the proposed one, unchanged.
        case modify(TransferRequest)
        /// The redirect is not followed: the 3xx response is the response of the task.
        case refuse
    }

    /// The decision about a challenge.
    @nonexhaustive public enum ChallengeDisposition: Sendable {
        /// This credential is sent, unless the same protection space has refused it for this task and scheme. In that case the 401 or 407 is the
        /// response.
        case useCredential(Credential)
        /// The session acts as if there were no handler.
        case performDefaultHandling
        /// The task fails with ``HTTPSessionError/Code/authenticationFailed``.
        case cancel
        /// This scheme is not used: the handler is asked about the next challenge of the same response.
        case rejectProtectionSpace
    }

    /// A redirect that may be followed.
    public struct Redirect: Sendable {
        /// The 3xx response.
        public let response: ResponseHead
        /// The next request, by RFC 9110 section 15.4 and the rules of this session.
        public let proposed: TransferRequest

        /// Creates a redirect, for tests of handlers.
        public init(response: ResponseHead, proposed: TransferRequest) {
            self.response = response
            self.proposed = proposed
        }
    }

    /// The handler that is called when the head of a response has arrived, before its body; by default the body is received.
    public var response: (@Sendable (ResponseHead) async -> ResponseDisposition)?
    /// The handler of redirects; by default they are followed.
    public var redirect: (@Sendable (Redirect) async -> RedirectDisposition)?
    /// The handler of challenges (401 and 407) for which neither the URL nor the credential store has a credential that was not refused; by default
    /// the 401 or 407 is the response.
    public var challenge: (@Sendable (AuthenticationChallenge) async -> ChallengeDisposition)?

    /// The handler of every server's certificates, with the decision of the session's policy; by default that decision applies.
    ///
    /// The session closes the connection while the handler decides, and makes it again after the answer. The answer is stored for one hour for the
    /// same policy, host and certificates. An answer of the session's handler applies to all tasks without a `serverTrust` of their own. An answer
    /// of a task's own handler applies to that task alone, as do the connections that it allows.
    public var serverTrust: (@Sendable (ServerTrustChallenge) async -> ServerTrustDisposition)?

    /// The handler that chooses a client certificate if ``SessionConfiguration/clientIdentity`` is `nil`; by default none is sent.
    ///
    /// The handler is called after the server's own certificate was trusted and before a client certificate is sent. The session aborts the
    /// handshake while the handler decides, and repeats it after the answer. The answer is stored for one hour for the host and port, or until the
    /// server refuses the certificate. An answer of the session's handler applies to all tasks without a `clientCertificate` of their own. An
    /// answer of a task's own handler applies to that task alone.
    public var clientCertificate: (@Sendable (ClientCertificateChallenge) async -> ClientCertificateDisposition)?

    /// The interceptors of every request and every failure, in this order. Each adapts the result of the one before it. After a failure, the first
    /// decision other than ``InterceptorDecision/proceed`` counts.
    ///
    /// A task's interceptors are added to those of its session: they adapt a request after the session's, and decide about a failure before them.
    public var interceptors: [any RequestInterceptor]
    /// The number of ``interceptors`` that are a task's own, after those of its session.
    private var ownInterceptors = 0
    /// The interceptors in the order in which they decide about a failure.
    var deciders: [any RequestInterceptor] { interceptors.suffix(ownInterceptors) + interceptors.dropLast(ownInterceptors) }

    /// The handler that is called on the session's delivery queue when a download or an upload continues after `offset` bytes. `total` is `nil` if
    /// it is not known. The handler corresponds to URLSession's `didResumeAtOffset:expectedTotalBytes:`, and is also called when a task continues
    /// after an outage. It is not called if no bytes could be used again.
    public var didContinue: (@Sendable (_ offset: Int64, _ total: Int64?) -> Void)?

    /// Whether there is no handler and no interceptor.
    var isEmpty: Bool {
        response == nil && redirect == nil && challenge == nil && serverTrust == nil && clientCertificate == nil
            && interceptors.isEmpty && didContinue == nil
    }

    /// Creates handlers. If one is `nil`, its documented default applies.
    public init(
        response: (@Sendable (ResponseHead) async -> ResponseDisposition)? = nil,
        redirect: (@Sendable (Redirect) async -> RedirectDisposition)? = nil,
        challenge: (@Sendable (AuthenticationChallenge) async -> ChallengeDisposition)? = nil,
        serverTrust: (@Sendable (ServerTrustChallenge) async -> ServerTrustDisposition)? = nil,
        clientCertificate: (@Sendable (ClientCertificateChallenge) async -> ClientCertificateDisposition)? = nil,
        interceptors: [any RequestInterceptor] = [],
        didContinue: (@Sendable (_ offset: Int64, _ total: Int64?) -> Void)? = nil
    ) {
        self.response = response
        self.redirect = redirect
        self.challenge = challenge
        self.serverTrust = serverTrust
        self.clientCertificate = clientCertificate
        self.interceptors = interceptors
        self.didContinue = didContinue
    }

    /// The handlers of a task with these handlers in a session with `session`: each that the task has, otherwise the session's.
    func added(to session: TransferHandlers) -> TransferHandlers {
        var merged = TransferHandlers(
            response: response ?? session.response, redirect: redirect ?? session.redirect,
            challenge: challenge ?? session.challenge,
            serverTrust: serverTrust ?? session.serverTrust, clientCertificate: clientCertificate ?? session.clientCertificate,
            interceptors: session.interceptors + interceptors, didContinue: didContinue ?? session.didContinue)
        merged.ownInterceptors = interceptors.count
        return merged
    }
}
