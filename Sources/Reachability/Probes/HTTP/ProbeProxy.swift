internal import ByteComparison

/// The HTTP proxy of probes: its host and port, its credentials, and the hosts that are connected to without it.
///
/// A request of http is sent to the proxy with its complete URL (RFC 9112 section 3.2.2). For https, the proxy opens a tunnel to the server (RFC 9110
/// section 9.3.6), and resolves the server's name.
struct ProbeProxy: Hashable, Sendable {
    let endpoint: Endpoint
    /// The value of the field Proxy-Authorization; empty without credentials.
    @ExactString private(set) var authorization: String
    /// The list of ``exceptions``, as it was given.
    @ExactString private(set) var exceptionList: String
    let exceptions: ProxyExceptions

    init(endpoint: Endpoint, authorization: String, exceptionList: String) {
        self.endpoint = endpoint
        self.authorization = authorization
        self.exceptionList = exceptionList
        exceptions = ProxyExceptions(exceptionList)
    }
}
