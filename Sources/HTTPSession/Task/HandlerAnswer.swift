/// What a handler of the user's is asked.
enum HandlerQuestion: Sendable {
    /// How the request is to be sent. `isShown`: to the interceptors; otherwise it is only noted that the request leaves.
    case adaptation(TransferRequest, isShown: Bool)
    case response(ResponseHead)
    case redirect(ResponseHead, proposed: TransferRequest)
    case challenge(AuthenticationChallenge)
    /// What follows after a response, or after the error.
    case interception(FailedAttempt)
    case serverTrust(ServerTrustChallenge)
    case clientCertificate(ClientCertificateChallenge)
}

/// What a handler of the user's said.
enum HandlerAnswer: Sendable {
    case response(TransferHandlers.ResponseDisposition)
    case redirect(TransferHandlers.RedirectDisposition)
    /// Another request, and its body as it is read.
    case modified(TransferRequest, Result<[BodySegment], HTTPSessionError>)
    case challenge(TransferHandlers.ChallengeDisposition)
    case adapted(Result<TransferRequest, HTTPSessionError>)
    /// An interceptor's `adapt` has thrown.
    case adaptationFailed(HTTPSessionError)
    /// And the error that it was asked about; `nil`: the response.
    case intercepted(InterceptorDecision, HTTPSessionError?)
    case serverTrust(ServerTrustChallenge, ServerTrustDisposition)
    case clientCertificate(ClientCertificateChallenge, ClientCertificateDisposition)
}
