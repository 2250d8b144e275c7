public import Foundation

extension HTTPSessionError: LocalizedError {
    /// The reason: one line for a person, without a full stop.
    public var errorDescription: String? { reason }

    /// The cause on the way to the server, if the session's path monitor has found it.
    public var failureReason: String? { cause.map { "\($0)" } }
}

extension HTTPSessionError: CustomNSError {
    /// The domain of URLSession's errors, whose code ``urlErrorCode`` is.
    public static var errorDomain: String { NSURLErrorDomain }

    /// The raw value of ``urlErrorCode``.
    public var errorCode: Int { urlErrorCode.rawValue }

    /// The reason, the URL without secrets, and the error below this one.
    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: reason]
        if let cause { info[NSLocalizedFailureReasonErrorKey] = "\(cause)" }
        if let url = context.url.flatMap({ URL(string: $0) }) { info[NSURLErrorFailingURLErrorKey] = url }
        if let underlying { info[NSUnderlyingErrorKey] = underlying }
        return info
    }
}
