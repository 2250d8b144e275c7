/// What a program decides while a task runs. Each is asked off the session's thread, one question a task at a time, and has
/// ``SessionConfiguration/handlerTimeout`` to answer. One whose transfer ends meanwhile is cancelled, as a Task is: what it answers
/// then is not heard. `nil` does what the comment says.
public struct TransferHandlers: Sendable {
    /// What becomes of a response whose head has come.
    @nonexhaustive public enum ResponseDisposition: Hashable, Sendable {
        case allow
        /// The task ends as ``HTTPSessionError/Code/cancelled``.
        case cancel
        /// A data task goes on as a download.
        case becomeDownload(DownloadDestination)
    }

    /// What becomes of a redirect.
    @nonexhaustive public enum RedirectDisposition: Sendable {
        case follow
        /// Another request instead of the proposed one. What it has is sent: nothing is dropped from it.
        case modify(TransferRequest)
        /// The redirect's own response is the answer.
        case refuse
    }

    /// What becomes of a challenge.
    @nonexhaustive public enum ChallengeDisposition: Sendable {
        /// One that this task has said to the same protection space by the same scheme, and that was refused, is not said again: the
        /// response is the answer.
        case useCredential(Credential)
        /// As without a handler.
        case performDefaultHandling
        /// The task ends as ``HTTPSessionError/Code/authenticationFailed``.
        case cancel
        /// Not by this scheme: the next challenge of the same response is asked about.
        case rejectProtectionSpace
    }

    /// A redirect about to be followed.
    public struct Redirect: Sendable {
        /// The 3xx response.
        public let response: ResponseHead
        /// The request that would be sent next, by RFC 9110 section 15.4 and this session's rules.
        public let proposed: TransferRequest
    }

    /// Asked when a final head has come, before its body. `nil`: allow.
    public var response: (@Sendable (ResponseHead) async -> ResponseDisposition)?
    /// Asked before a redirect is followed. `nil`: follow.
    public var redirect: (@Sendable (Redirect) async -> RedirectDisposition)?
    /// Asked at 401 and 407, when neither the URL nor the credential store has an answer that has not been refused yet. `nil`: the
    /// response is the answer.
    public var challenge: (@Sendable (AuthenticationChallenge) async -> ChallengeDisposition)?

    /// Asked about every server's certificates before they are believed, with what the session's policy says of them. The connection is
    /// refused meanwhile and made again after the answer, which is kept for the same policy, host and certificates for an hour: that of
    /// the session's handler for all tasks that have it, that of a task's own handler, and the connections that it allows, for that
    /// task alone. `nil`: the policy decides.
    public var serverTrust: (@Sendable (ServerTrustChallenge) async -> ServerTrustDisposition)?

    /// Asked when a server wants a certificate of this side's and ``SessionConfiguration/clientIdentity`` is `nil`: once its own has been
    /// believed, and before it is shown anything. The handshake is broken off meanwhile and made again after the answer, which is kept for its host and port
    /// for an hour, or until its server refuses the certificate: that of the session's handler for all tasks that have it, that of a
    /// task's own handler for that task alone. `nil`: none is shown.
    public var clientCertificate: (@Sendable (ClientCertificateChallenge) async -> ClientCertificateDisposition)?

    /// Asked about every request and every failure, in this order: each changes what the one before it has made, and the first that does
    /// not leave a failure at that decides what follows.
    public var interceptors: [any RequestInterceptor]

    /// Told, on the session's delivery queue, when a download goes on behind the bytes that are here, or an upload behind those that its server
    /// has: at which byte, and of how many in all where that is known. It is URLSession's `didResumeAtOffset:expectedTotalBytes:`, and is
    /// also called where the same task goes on after an outage. Where nothing could be used again, nothing is told.
    public var didResume: (@Sendable (_ offset: Int64, _ total: Int64?) -> Void)?

    /// Handlers for some of the questions.
    public init(
        response: (@Sendable (ResponseHead) async -> ResponseDisposition)? = nil,
        redirect: (@Sendable (Redirect) async -> RedirectDisposition)? = nil,
        challenge: (@Sendable (AuthenticationChallenge) async -> ChallengeDisposition)? = nil,
        serverTrust: (@Sendable (ServerTrustChallenge) async -> ServerTrustDisposition)? = nil,
        clientCertificate: (@Sendable (ClientCertificateChallenge) async -> ClientCertificateDisposition)? = nil,
        interceptors: [any RequestInterceptor] = [],
        didResume: (@Sendable (_ offset: Int64, _ total: Int64?) -> Void)? = nil
    ) {
        self.response = response
        self.redirect = redirect
        self.challenge = challenge
        self.serverTrust = serverTrust
        self.clientCertificate = clientCertificate
        self.interceptors = interceptors
        self.didResume = didResume
    }
}
