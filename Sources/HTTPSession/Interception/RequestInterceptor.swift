/// A type that adapts requests before they are sent, and decides whether to retry after a failure. Examples are interceptors for tokens that expire
/// and for URLs that are signed.
///
/// It never runs on the session's thread, runs one call at a time for each task, and must return within ``SessionConfiguration/handlerTimeout``.
/// Several interceptors are called in the order that ``TransferHandlers/interceptors`` documents. The protocol follows Alamofire's `RequestInterceptor`.
public protocol RequestInterceptor: Sendable {
    /// Returns the request to send. The session calls this method, with the request of the task, before every attempt at the task's first origin.
    ///
    /// Redirects to other origins are not passed to it, so that added credentials are not sent to other origins. It may change header fields,
    /// options and the URL within its origin. It cannot change the body.
    ///
    /// An error that it throws becomes ``HTTPSessionError/Code/interceptorFailed``, unless it is an ``HTTPSessionError``. ``retry(after:)`` decides
    /// whether the request is adapted again; otherwise the task fails with that error.
    func adapt(_ request: TransferRequest) async throws -> TransferRequest

    /// Decides about an attempt that failed or received a status of 400 or above, if the retry policy does not retry it.
    ///
    /// The session also calls this method if validation or the serializer refuses a response (``TransferTask/data()``,
    /// ``TransferTask/serialized(by:)``, ``TransferTask/respond(with:on:group:progress:success:failure:)``). A retry is then a new task of the same
    /// session with the same request, and the serializer uses its response. The first task keeps its own response; canceling it cancels the new
    /// one. In this case, downloads, streams, resumable uploads and tasks of durable sessions are not retried.
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
    /// The head of the response that has a status of 400 or above, or that was not accepted; `nil` if no response arrived.
    public let response: ResponseHead?
    /// The error that ended the attempt, or that validation or the serializer threw; `nil` for a response with a status of 400 or above.
    public let error: HTTPSessionError?
    /// The number of retries that interceptors have requested for the task.
    public let retryCount: Int

    /// Creates a failed attempt, for tests of interceptors.
    public init(
        request: TransferRequest, response: ResponseHead? = nil, error: HTTPSessionError? = nil, retryCount: Int = 0
    ) {
        self.request = request
        self.response = response
        self.error = error
        self.retryCount = retryCount
    }
}

/// The decision of an interceptor about a failed attempt.
@nonexhaustive public enum InterceptorDecision: Sendable {
    /// The response or the error is accepted.
    case proceed
    /// The request is adapted and sent again after this time.
    case retry(after: Duration = .zero)
    /// This request is sent instead, with the task's own body. A download continues from its bytes if the new response can be joined with them.
    case retryWith(TransferRequest)
    /// The task fails with this error, and no later interceptor is called. An error of another type than ``HTTPSessionError`` becomes the
    /// underlying error of ``HTTPSessionError/Code/interceptorFailed``.
    case fail(any Error)
}
