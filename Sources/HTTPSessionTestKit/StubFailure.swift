public import HTTPSession
import Glibc
import Reachability

/// The failure of a connection attempt, so that a request gets no response.
///
/// ```swift
/// transport.stub("/", with: .failing(.connectionRefused), StubResponse(body: "hello"))
/// ```
/// The errors are those that a session gets from libcurl, with the same code, reason and context.
public struct StubFailure: Sendable {
    /// The error of the attempt.
    let error: HTTPSessionError
    /// Whether the connect timeout passes before the failure.
    var waits = false

    /// Returns a failure with any other error, which ends the attempt unchanged.
    public static func error(_ error: HTTPSessionError) -> StubFailure { StubFailure(error: error) }

    /// The name of the server has no address: `HTTPSessionError.Code.cannotFindHost`.
    public static let nameNotFound = StubFailure(.cannotFindHost, "the name of the server cannot be resolved", curlCode: 6)
    /// No program listens at the port: `HTTPSessionError.Code.cannotConnectToHost`.
    public static let connectionRefused = StubFailure(.cannotConnectToHost, connecting: ECONNREFUSED)
    /// A router has no route to the server: `HTTPSessionError.Code.cannotConnectToHost`.
    public static let hostUnreachable = StubFailure(.cannotConnectToHost, connecting: EHOSTUNREACH)
    /// This machine has no route: `HTTPSessionError.Code.notConnected`.
    public static let networkUnreachable = StubFailure(.notConnected, connecting: ENETUNREACH)
    /// No answer arrives within the connect timeout, which passes in the transport's time: `HTTPSessionError.Code.timedOut`.
    public static let connectTimedOut: StubFailure = {
        var failure = StubFailure(.timedOut, "no connection to the server was made in time", curlCode: 28)
        failure.waits = true
        return failure
    }()
    /// The TLS handshake fails, not because of a certificate: `HTTPSessionError.Code.secureConnectionFailed`.
    public static let handshakeRefused = StubFailure(.secureConnectionFailed, "the TLS handshake failed", curlCode: 35)
    /// The server's certificate has expired: `HTTPSessionError.Code.certificateExpired`.
    public static let certificateExpired = StubFailure(
        .certificateExpired, "the certificate of the server is not valid: certificate has expired")
    /// No trusted authority has signed the server's certificate: `HTTPSessionError.Code.certificateHasUnknownRoot`.
    public static let certificateHasUnknownRoot = StubFailure(
        .certificateHasUnknownRoot, "the certificate of the server is not valid: self-signed certificate")
    /// The server's certificate is for another host: `HTTPSessionError.Code.certificateUntrusted`.
    public static let certificateForAnotherHost = StubFailure(
        .certificateUntrusted, "the certificate of the server is for another host")
    /// No key of the server matches a pin: `HTTPSessionError.Code.pinMismatch`.
    public static let pinMismatch = StubFailure(.pinMismatch, "the server has nothing that is pinned")
    /// The server requires a client certificate: `HTTPSessionError.Code.clientCertificateRequired`.
    public static let clientCertificateRequired = StubFailure(
        .clientCertificateRequired, "the server requires a client certificate")

    private init(error: HTTPSessionError) { self.error = error }

    private init(_ code: HTTPSessionError.Code, _ reason: String, curlCode: Int32? = nil, systemError: Int32? = nil) {
        error = HTTPSessionError(code, reason, context: .init(curlCode: curlCode, systemError: systemError))
    }

    private init(_ code: HTTPSessionError.Code, connecting number: Int32) {
        self.init(code, "cannot connect to the server: \(errorText(number))", curlCode: 7, systemError: number)
    }
}

/// The errors of invalid responses, with the reasons of `CurlFailure`.
extension StubFailure {
    /// The greatest length of a head that a session reads, in bytes.
    static let maximumHeadBytes = 256 << 10

    /// The error of a connection attempt while the session's path is unsatisfied, as a session over libcurl reports it.
    static func noPath(_ monitor: PathMonitor?) -> HTTPSessionError {
        let cause = monitor?.currentPath?.cause
        var error = HTTPSessionError(
            .notConnected, cause.map { "\($0)" } ?? "there is no path to any network",
            context: networkUnreachable.error.context)
        error.cause = cause
        return error
    }

    static var routeLost: HTTPSessionError { receiving(ENETUNREACH) }
    static var notHTTP: HTTPSessionError { bad("the server answered something that is not HTTP", curlCode: 1) }
    static var headEnded: HTTPSessionError {
        HTTPSessionError(.connectionLost, "the connection ended within the head of the response")
    }
    static var noStatus: HTTPSessionError { bad("the response's status line has no status") }
    static var longHead: HTTPSessionError { bad("the response's head is longer than \(maximumHeadBytes) bytes") }
    static var switchedProtocol: HTTPSessionError {
        HTTPSessionError(
            .badServerResponse, "the server switched protocols without a request for it", context: .init(statusCode: 101))
    }
    static var noCloseNotify: HTTPSessionError {
        HTTPSessionError(
            .connectionLost, "the connection ended without close_notify (TLS): the response may be incomplete")
    }

    static func noResponse(_ ending: StubResponse.Ending) -> HTTPSessionError {
        ending == .reset ? receiving(ECONNRESET) : lost("the server closed the connection without a response", curlCode: 52)
    }

    static func cutHead(_ count: Int, _ ending: StubResponse.Ending) -> HTTPSessionError {
        if ending == .reset || count <= 0 { return noResponse(ending) }
        return headEnded
    }

    static func cutBody(_ ending: StubResponse.Ending) -> HTTPSessionError {
        ending == .reset ? receiving(ECONNRESET) : lost("the connection ended before the response was complete", curlCode: 18)
    }

    static func brokenChunks(_ fault: StubResponse.ChunkFault) -> HTTPSessionError {
        switch fault {
        case .sizeIsNoNumber, .sizeOverflows, .endIsMissing: bad("the chunked encoding of the response is broken", curlCode: 56)
        case .cutInChunk, .lastChunkIsMissing: cutBody(.truncated)
        }
    }

    private static func receiving(_ number: Int32) -> HTTPSessionError {
        lost(
            "the connection was lost while the server's response was awaited: \(errorText(number))", curlCode: 56,
            systemError: number)
    }

    private static func lost(_ reason: String, curlCode: Int32, systemError: Int32? = nil) -> HTTPSessionError {
        HTTPSessionError(.connectionLost, reason, context: .init(curlCode: curlCode, systemError: systemError))
    }

    private static func bad(_ reason: String, curlCode: Int32? = nil) -> HTTPSessionError {
        HTTPSessionError(.badServerResponse, reason, context: .init(curlCode: curlCode))
    }
}
