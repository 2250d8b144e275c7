/// Changes requests on their way out, and says what follows after one that failed: tokens that expire, addresses that are signed anew.
///
/// Asked off the session's thread, one question a task at a time, within ``SessionConfiguration/handlerTimeout``. Where a program has
/// several, ``TransferHandlers/interceptors`` has their order. The idea is Alamofire's.
public protocol RequestInterceptor: Sendable {
    /// The request as it is to be sent; asked before every attempt at the origin that the task was made for, with what the task asks for.
    /// Redirects to other origins are not shown to it, so that what it adds stays behind. It may change fields, options and the
    /// address within its origin; the body stays the task's.
    ///
    /// An error that it throws is ``HTTPSessionError/Code/interceptorFailed``, or the error itself if it is an ``HTTPSessionError``. The
    /// interceptors decide by ``retry(after:)`` whether the request is adapted once more; otherwise that error ends the task.
    func adapt(_ request: TransferRequest) async throws -> TransferRequest

    /// Decides what follows after an attempt that failed, or was answered with 400 or above, and that the retry policy does not repeat.
    ///
    /// It is also asked when a response does not pass its validation or its serializer (``TransferTask/data()``,
    /// ``TransferTask/serialized(by:)``, ``TransferTask/respond(with:on:group:progress:success:failure:)``): a retry is then a new task of the
    /// same session for the same request, and the value is made of its response. The first task keeps its own response; canceling it cancels
    /// the new one. Downloads, streams, resumable uploads and the tasks of durable sessions are not repeated for that reason.
    ///
    /// Asked at most ten times a task.
    func retry(after attempt: FailedAttempt) async -> InterceptorDecision
}

extension RequestInterceptor {
    /// The request as it is.
    public func adapt(_ request: TransferRequest) async throws -> TransferRequest { request }
    /// Leaves it at that.
    public func retry(after attempt: FailedAttempt) async -> InterceptorDecision { .proceed }
}

/// What a ``RequestInterceptor`` is told of an attempt.
public struct FailedAttempt: Sendable {
    /// As it was sent.
    public let request: TransferRequest
    /// The head of the response that has a status of 400 or above, or that was not accepted; `nil` if no response came.
    public let response: ResponseHead?
    /// The error that ended the attempt, or that validation or the serializer threw; `nil` for a response of 400 or above.
    public let error: HTTPSessionError?
    /// How often interceptors have had the task try again.
    public let retryCount: Int
}

/// What follows after an attempt that failed.
@nonexhaustive public enum InterceptorDecision: Sendable {
    /// The response or the error stands.
    case proceed
    /// The same once more, adapted anew, after so long.
    case retry(after: Duration = .zero)
    /// This request instead, with the task's own body: a download keeps what it has, where it may be put together with what comes.
    case retryWith(TransferRequest)
    /// The task ends with this error, and no later interceptor is asked. What is no ``HTTPSessionError`` is what
    /// ``HTTPSessionError/Code/interceptorFailed`` underlies.
    case fail(any Error)
}
