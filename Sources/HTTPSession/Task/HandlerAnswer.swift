/// A question to one of the user's handlers.
enum HandlerQuestion: Sendable {
    /// Asks how to send the request. `isShown`: to the interceptors; otherwise only the approval to send it is asked for.
    case adaptation(TransferRequest, isShown: Bool)
    case response(ResponseHead)
    case redirect(ResponseHead, proposed: TransferRequest)
    case challenge(AuthenticationChallenge)
    /// Asks how to proceed after a response or an error.
    case interception(FailedAttempt)
    case serverTrust(ServerTrustChallenge)
    case clientCertificate(ClientCertificateChallenge)
}

/// The answer of one of the user's handlers.
enum HandlerAnswer: Sendable {
    case response(TransferHandlers.ResponseDisposition)
    case redirect(TransferHandlers.RedirectDisposition)
    /// A replacement request, and the segments of its body.
    case modified(TransferRequest, Result<[BodySegment], HTTPSessionError>)
    case challenge(TransferHandlers.ChallengeDisposition)
    case adapted(Result<TransferRequest, HTTPSessionError>)
    /// An error thrown by an interceptor's `adapt`.
    case adaptationFailed(HTTPSessionError)
    /// An interceptor's decision, and the error that it was asked about; `nil` if it was asked about the response.
    case intercepted(InterceptorDecision, HTTPSessionError?)
    case serverTrust(ServerTrustChallenge, ServerTrustDisposition)
    case clientCertificate(ClientCertificateChallenge, ClientCertificateDisposition)
}
