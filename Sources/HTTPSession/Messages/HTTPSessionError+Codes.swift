extension HTTPSessionError.Code {
    private init(_ name: String) { rawValue = name }

    // MARK: The caller

    /// The task was canceled.
    public static let cancelled = HTTPSessionError.Code("cancelled")
    /// The request has an invalid URL, method, field or option.
    public static let invalidRequest = HTTPSessionError.Code("invalid-request")
    /// The session's configuration cannot be used; the reason names the invalid part.
    public static let invalidConfiguration = HTTPSessionError.Code("invalid-configuration")
    /// The session has been invalidated.
    public static let sessionInvalidated = HTTPSessionError.Code("session-invalidated")
    /// The URL is http, and the session does not allow it (``SessionConfiguration/insecureHTTP``).
    public static let insecureConnectionRefused = HTTPSessionError.Code("insecure-connection-refused")
    /// The task may not use any of the present networks (``SessionConfiguration/allowsCellularAccess``).
    public static let networkNotAllowed = HTTPSessionError.Code("network-not-allowed")
    /// A handler did not answer within ``SessionConfiguration/handlerTimeout``.
    public static let handlerTimedOut = HTTPSessionError.Code("handler-timed-out")
    /// An interceptor threw an error, which is in ``underlying``.
    public static let interceptorFailed = HTTPSessionError.Code("interceptor-failed")
    /// The program called a method that the task's kind does not support.
    public static let misuse = HTTPSessionError.Code("misuse")

    // MARK: The network

    /// The timeout of the request or of the task has passed.
    public static let timedOut = HTTPSessionError.Code("timed-out")
    /// This machine has no path to the server; ``cause`` names the missing part.
    public static let notConnected = HTTPSessionError.Code("not-connected")
    /// The server's name has no address.
    public static let cannotFindHost = HTTPSessionError.Code("cannot-find-host")
    /// The server refused the connection or did not answer.
    public static let cannotConnectToHost = HTTPSessionError.Code("cannot-connect-to-host")
    /// The connection ended before the response was complete.
    public static let connectionLost = HTTPSessionError.Code("connection-lost")
    /// The proxy did not forward the request.
    public static let proxyFailed = HTTPSessionError.Code("proxy-failed")

    // MARK: TLS

    /// The TLS handshake failed for a reason other than a certificate.
    public static let secureConnectionFailed = HTTPSessionError.Code("secure-connection-failed")
    /// A certificate of the server's chain is no longer valid.
    public static let certificateExpired = HTTPSessionError.Code("certificate-expired")
    /// A certificate of the server's chain is not valid yet.
    public static let certificateNotYetValid = HTTPSessionError.Code("certificate-not-yet-valid")
    /// No trusted authority has signed the server's certificate.
    public static let certificateHasUnknownRoot = HTTPSessionError.Code("certificate-has-unknown-root")
    /// A certificate of the server's chain is revoked.
    public static let certificateRevoked = HTTPSessionError.Code("certificate-revoked")
    /// The server's certificate is not trusted for another reason, such as another host name.
    public static let certificateUntrusted = HTTPSessionError.Code("certificate-untrusted")
    /// No certificate or key of the server matches a pin.
    public static let pinMismatch = HTTPSessionError.Code("pin-mismatch")
    /// The server requires a client certificate, and none is configured.
    public static let clientCertificateRequired = HTTPSessionError.Code("client-certificate-required")
    /// The server does not accept the client certificate.
    public static let clientCertificateRejected = HTTPSessionError.Code("client-certificate-rejected")

    // MARK: HTTP

    /// The response is not valid HTTP, or violates the protocol of the upload.
    public static let badServerResponse = HTTPSessionError.Code("bad-server-response")
    /// The validation does not accept the response's status.
    public static let unacceptableStatus = HTTPSessionError.Code("unacceptable-status")
    /// The validation does not accept the response's media type.
    public static let unacceptableContentType = HTTPSessionError.Code("unacceptable-content-type")
    /// The server or the proxy does not accept the credentials.
    public static let authenticationFailed = HTTPSessionError.Code("authentication-failed")
    /// The server sent more redirects than the configuration allows.
    public static let tooManyRedirects = HTTPSessionError.Code("too-many-redirects")
    /// A redirect leads to a URL that the task does not follow.
    public static let redirectRefused = HTTPSessionError.Code("redirect-refused")
    /// The response exceeds the limit of the request or session.
    public static let responseTooLarge = HTTPSessionError.Code("response-too-large")
    /// The body cannot be decompressed or decoded.
    public static let cannotDecodeContent = HTTPSessionError.Code("cannot-decode-content")
    /// The parameters cannot be written in the serializer's format.
    public static let cannotEncodeRequest = HTTPSessionError.Code("cannot-encode-request")

    // MARK: Files

    /// A file of the request's body cannot be read.
    public static let cannotReadFile = HTTPSessionError.Code("cannot-read-file")
    /// A file of the request's body changed while it was being sent.
    public static let fileChanged = HTTPSessionError.Code("file-changed")
    /// The file of a download cannot be written.
    public static let cannotWriteFile = HTTPSessionError.Code("cannot-write-file")
    /// The complete file of a download cannot be moved to its destination.
    public static let cannotMoveFile = HTTPSessionError.Code("cannot-move-file")
    /// The file or the upload does not have the expected digest.
    public static let digestMismatch = HTTPSessionError.Code("digest-mismatch")
    /// The resume data belongs to no known download.
    public static let cannotResume = HTTPSessionError.Code("cannot-resume")

    // MARK: Others

    /// libcurl failed in a way that no other code describes (``Context/curlCode``).
    public static let transferFailed = HTTPSessionError.Code("transfer-failed")
}
