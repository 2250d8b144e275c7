public import FoundationEssentials
public import Reachability

/// The error of a session or of a task.
///
/// The `code` is for programs, the `reason` for people, and ``metricLabel`` for counters. The error contains no secrets: credentials, query strings
/// and field values are left out (``HTTPSessionError/Context``).
public struct HTTPSessionError: Error, Sendable, CustomStringConvertible {
    /// The kind of an error, from a bounded set. Later versions may add codes.
    public struct Code: RawRepresentable, Hashable, Sendable, CaseIterable, CustomStringConvertible {
        /// The code's name in logs, records and metrics, such as `timed-out` or `pin-mismatch`.
        public let rawValue: String

        /// The code's name in logs, records and metrics.
        public var description: String { rawValue }

        /// Creates a code with the given name. Unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The codes of this version.
        public static let allCases: [Code] = [
            .cancelled, .invalidRequest, .invalidConfiguration, .sessionInvalidated, .insecureConnectionRefused,
            .networkNotAllowed, .handlerTimedOut, .interceptorFailed, .misuse, .timedOut, .notConnected, .cannotFindHost,
            .cannotConnectToHost, .connectionLost, .proxyFailed, .secureConnectionFailed, .certificateExpired,
            .certificateNotYetValid, .certificateHasUnknownRoot, .certificateRevoked, .certificateUntrusted, .pinMismatch,
            .clientCertificateRequired, .clientCertificateRejected, .badServerResponse, .unacceptableStatus,
            .unacceptableContentType, .authenticationFailed, .tooManyRedirects, .redirectRefused, .responseTooLarge,
            .cannotDecodeContent, .cannotEncodeRequest, .cannotReadFile, .fileChanged, .cannotWriteFile, .cannotMoveFile,
            .digestMismatch, .cannotResume, .transferFailed,
        ]
    }

    /// The request and the response to which an error belongs. A field that is not known is `nil`.
    public struct Context: Hashable, Sendable {
        /// The scheme, host, port and path of the URL, without user, password, query and fragment.
        public var url: String?
        /// The request's method.
        public var method: String?
        /// The status code of the response before the error.
        public var statusCode: Int?
        /// The code of libcurl (CURLcode, libcurl-errors(3)).
        public var curlCode: Int32?
        /// The errno(3) of the failed system call.
        public var systemError: Int32?
        /// The first 64 KiB of the body of an unacceptable response.
        public var responseBody: Data?
        /// The time that an unacceptable response asks to wait (`Retry-After`, RFC 9110 section 10.2.3), from 0 to 292 years; `nil` if it asks for none.
        public var retryAfter: Duration?

        /// Creates a context with the given fields.
        public init(
            url: String? = nil, method: String? = nil, statusCode: Int? = nil, curlCode: Int32? = nil,
            systemError: Int32? = nil, responseBody: Data? = nil, retryAfter: Duration? = nil
        ) {
            self.url = url
            self.method = method
            self.statusCode = statusCode
            self.curlCode = curlCode
            self.systemError = systemError
            self.responseBody = responseBody
            self.retryAfter = retryAfter
        }
    }

    /// The kind of the error.
    public var code: Code { details.value.code }
    /// The reason: one line for people, without a full stop.
    public var reason: String { details.value.reason }
    /// The request and the response to which the error belongs.
    public var context: Context {
        get { details.value.context }
        _modify { yield &details.value.context }
    }
    /// The data from which ``HTTPSessionManager/downloadTask(withResumeData:for:to:handlers:startsImmediately:)`` resumes; `nil` if nothing was kept
    /// (``SessionConfiguration/resumeDirectory``).
    public internal(set) var resumeData: Data? {
        get { details.value.resumeData }
        set { details.value.resumeData = newValue }
    }
    /// The underlying error: that of a handler or a serializer, or the content-type error of a response whose status is also wrong.
    public var underlying: (any Error)? { details.value.underlying }
    /// The cause of the failure, as a `ServerMonitor` of the server reports it: its TLS handshake or its response, or the missing link or route that
    /// the session's path monitor has found. `nil` if the cause is not known.
    public package(set) var cause: Cause? {
        get { details.value.cause }
        set { details.value.cause = newValue }
    }

    // The details are behind one reference: many values have room for an error, and few contain one.
    private var details: CopyOnWrite<Details>

    private struct Details: Sendable {
        let code: Code
        let reason: String
        var context: Context
        var resumeData: Data?
        let underlying: (any Error)?
        var cause: Cause?
    }

    /// Creates an error with a reason of one line, without a full stop and without secrets.
    public init(_ code: Code, _ reason: String, context: Context = Context(), underlying: (any Error)? = nil) {
        details = CopyOnWrite(Details(code: code, reason: reason, context: context, underlying: underlying))
    }

    /// The code's name: a value from a bounded set, for the dimension of a metric.
    public var metricLabel: String { code.rawValue }

    /// One line with the code's name, the reason and the URL.
    public var description: String {
        let location = context.url.map { " (\(context.method.map { "\($0) " } ?? "")\($0))" } ?? ""
        return "\(code.rawValue): \(reason)\(location)"
    }
}

extension HTTPSessionError: LocalizedError {
    /// The reason: one line for a person, without a full stop.
    public var errorDescription: String? { reason }

    /// The ``cause``, if it is known.
    public var failureReason: String? { cause.map { "\($0)" } }
}
