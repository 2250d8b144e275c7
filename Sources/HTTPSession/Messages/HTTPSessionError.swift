public import FoundationEssentials
public import Reachability

/// Why a transfer, or a task around it, did not give what was asked.
///
/// `code` is for programs, `reason` for people, ``metricLabel`` for counters. Nothing in it holds a secret: credentials, query
/// strings and header values are left out (``HTTPSessionError/Context``).
public struct HTTPSessionError: Error, Sendable, CustomStringConvertible {
    /// What went wrong, as one of a bounded set of names. Later versions may add codes.
    public struct Code: RawRepresentable, Hashable, Sendable, CaseIterable {
        /// The name in logs, records and metrics: `timed-out`, `pin-mismatch`, ….
        public let rawValue: String

        /// A code by its name; unknown names are allowed.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The codes that this version knows.
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

    /// Where it happened. A field that is not known is `nil`.
    public struct Context: Hashable, Sendable {
        /// Scheme, host, port and path: without user, password, query and fragment.
        public var url: String?
        /// The request's method.
        public var method: String?
        /// The status of the response that came before the error.
        public var statusCode: Int?
        /// libcurl's CURLcode (libcurl-errors(3)).
        public var curlCode: Int32?
        /// errno(3) of the system call that failed.
        public var systemError: Int32?
        /// The body that came with an unacceptable response, as far as it was kept (at most 64 KiB).
        public var responseBody: Data?

        /// A place of which only what is given is known.
        public init(
            url: String? = nil, method: String? = nil, statusCode: Int? = nil, curlCode: Int32? = nil,
            systemError: Int32? = nil, responseBody: Data? = nil
        ) {
            self.url = url
            self.method = method
            self.statusCode = statusCode
            self.curlCode = curlCode
            self.systemError = systemError
            self.responseBody = responseBody
        }
    }

    /// What went wrong.
    public var code: Code { details.value.code }
    /// One line for a person, without a full stop.
    public var reason: String { details.value.reason }
    /// Where it happened.
    public var context: Context {
        get { details.value.context }
        _modify { yield &details.value.context }
    }
    /// What ``HTTPSessionManager/download(resuming:of:to:handlers:startsImmediately:)`` goes on from; `nil` where nothing was kept
    /// (``SessionConfiguration/resumeDirectory``).
    public internal(set) var resumeData: Data? {
        get { details.value.resumeData }
        set { details.value.resumeData = newValue }
    }
    /// The error below this one: a handler's, a serializer's, or the content-type error beside a status error.
    public var underlying: (any Error)? { details.value.underlying }
    /// What is missing on the way to the server, where the session has a path monitor and that has found it.
    public package(set) var cause: Cause? {
        get { details.value.cause }
        set { details.value.cause = newValue }
    }

    // Behind one reference: there is place for an error wherever there may be one, and seldom is there one.
    private var details: CopyOnWrite<Details>

    private struct Details: Sendable {
        let code: Code
        let reason: String
        var context: Context
        var resumeData: Data?
        let underlying: (any Error)?
        var cause: Cause?
    }

    /// An error with its reason: one line, without a full stop and without secrets.
    public init(_ code: Code, _ reason: String, context: Context = Context(), underlying: (any Error)? = nil) {
        details = CopyOnWrite(Details(code: code, reason: reason, context: context, underlying: underlying))
    }

    /// A name from a bounded set, for a metric's dimension.
    public var metricLabel: String { code.rawValue }

    /// One line: the code's name, the reason, and where.
    public var description: String {
        let place = context.url.map { " (\(context.method.map { "\($0) " } ?? "")\($0))" } ?? ""
        return "\(code.rawValue): \(reason)\(place)"
    }
}

extension HTTPSessionError: LocalizedError {
    /// The reason: one line for a person, without a full stop.
    public var errorDescription: String? { reason }

    /// The cause on the way to the server, if the session's path monitor has found it.
    public var failureReason: String? { cause.map { "\($0)" } }
}
