/// An interceptor adapts requests before they are sent, and decides what follows after a failure: for tokens that expire and URLs that are signed.
///
/// It runs off the session's thread, one call at a time for each task, within ``SessionConfiguration/handlerTimeout``. The order of several
/// interceptors is that of ``TransferHandlers/interceptors``. The idea is Alamofire's.
public protocol RequestInterceptor: Sendable {
    /// Returns the request to send. It is called before every attempt at the origin that the task was made for, with the request of the task.
    ///
    /// Redirects to other origins are not passed to it, so that added credentials stay with the origin. It may change header fields, options and
    /// the URL within its origin; the body remains that of the task.
    ///
    /// An error that it throws becomes ``HTTPSessionError/Code/interceptorFailed``, unless it is an ``HTTPSessionError``. ``retry(after:)`` decides
    /// whether the request is adapted again; otherwise the task fails with that error.
    func adapt(_ request: TransferRequest) async throws -> TransferRequest

    /// Decides what follows after an attempt that failed or received a status of 400 or above, and that the retry policy does not repeat.
    ///
    /// It is also called if a response does not pass its validation or its serializer (``TransferTask/data()``,
    /// ``TransferTask/serialized(by:)``, ``TransferTask/respond(with:on:group:progress:success:failure:)``). A retry is then a new task of the same
    /// session with the same request, and the value is made of its response. The first task keeps its own response; canceling it cancels the new
    /// one. Downloads, streams, resumable uploads and tasks of durable sessions are not repeated for that reason.
    ///
    /// It is called at most ten times for each task.
    func retry(after attempt: FailedAttempt) async -> InterceptorDecision
}

extension RequestInterceptor {
    /// Returns the request unchanged.
    public func adapt(_ request: TransferRequest) async throws -> TransferRequest { request }
    /// Accepts the response or the error.
    public func retry(after attempt: FailedAttempt) async -> InterceptorDecision { .proceed }
}

/// An attempt that failed, as a ``RequestInterceptor`` receives it.
public struct FailedAttempt: Sendable {
    /// The request as it was sent.
    public let request: TransferRequest
    /// The head of the response that has a status of 400 or above, or that was not accepted; `nil` if no response came.
    public let response: ResponseHead?
    /// The error that ended the attempt, or that validation or the serializer threw; `nil` for a response of 400 or above.
    public let error: HTTPSessionError?
    /// The number of retries that interceptors have requested for the task.
    public let retryCount: Int
}

/// The decision of an interceptor about a failed attempt.
@nonexhaustive public enum InterceptorDecision: Sendable {
    /// The response or the error is accepted.
    case proceed
    /// The request is adapted and sent again after this time.
    case retry(after: Duration = .zero)
    /// This request is sent instead, with the task's own body. A download keeps its bytes if the new response can be joined with them.
    case retryWith(TransferRequest)
    /// The task fails with this error, and no later interceptor is called. An error that is no ``HTTPSessionError`` becomes the underlying error of
    /// ``HTTPSessionError/Code/interceptorFailed``.
    case fail(any Error)
}
