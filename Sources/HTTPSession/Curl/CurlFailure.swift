internal import CCurl
internal import Glibc

/// The evidence that decides what a CURLcode means.
struct CurlEvidence {
    /// The error buffer's text (CURLOPT_ERRORBUFFER).
    var text = ""
    /// errno of the last system call that failed (CURLINFO_OS_ERRNO).
    var systemError: Int32 = 0
    /// Whether the request had a connection.
    var hasRequested = false
    /// The error for which one of the callbacks ended the transfer.
    var refusal: HTTPSessionError?
    /// The error of the trust evaluation.
    var trust: HTTPSessionError?
    /// Whether libcurl wanted to send the request a second time, on another connection.
    var wasResent = false
    /// Whether the connection was one of HTTP/2, whose requests the server can refuse one by one.
    var isMultiplexed = false
    var usesProxy = false
}

/// The conversion of libcurl's codes to errors (libcurl-errors(3)). No other place does it.
enum CurlFailure {
    static func check(_ code: CURLcode, _ evidence: @autoclosure () -> CurlEvidence = CurlEvidence()) throws(HTTPSessionError) {
        guard code != CURLE_OK else { return }
        throw error(for: code, evidence())
    }

    static func check(_ code: CURLMcode) throws(HTTPSessionError) {
        guard code != CURLM_OK, code != CURLM_CALL_MULTI_PERFORM else { return }
        throw HTTPSessionError(.transferFailed, "the transfer library failed (multi code \(code.rawValue))")
    }

    static func check(_ code: CURLSHcode) throws(HTTPSessionError) {
        guard code != CURLSHE_OK else { return }
        throw HTTPSessionError(.transferFailed, "the transfer library failed (share code \(code.rawValue))")
    }

    private static func error(for code: CURLcode, _ evidence: CurlEvidence) -> HTTPSessionError {
        // The errors of a callback and of the trust evaluation are more precise than the resulting code of libcurl.
        if let refusal = evidence.refusal { return refusal }
        if evidence.wasResent {
            return failure(
                .connectionLost, code, evidence,
                evidence.isMultiplexed
                    ? "the server refused the request, or closed its HTTP/2 connection, before it answered"
                    : "the server closed the reused connection before it answered")
        }
        if let trust = evidence.trust { return trust }
        return failure(meaning(of: code, evidence), code, evidence, nil)
    }

    private static func failure(
        _ meaning: HTTPSessionError.Code, _ code: CURLcode, _ evidence: CurlEvidence, _ reason: String?
    ) -> HTTPSessionError {
        HTTPSessionError(
            meaning, reason ?? CurlSentence.text(of: code, evidence),
            context: .init(
                curlCode: Int32(bitPattern: code.rawValue), systemError: evidence.systemError == 0 ? nil : evidence.systemError))
    }

    private static func meaning(of code: CURLcode, _ evidence: CurlEvidence) -> HTTPSessionError.Code {
        switch code {
        // After a request, the response is unsupported: HTTP/0.9, or another protocol's greeting.
        case CURLE_UNSUPPORTED_PROTOCOL where evidence.hasRequested: .badServerResponse
        // Only the text distinguishes a broken chunk from a broken connection (lib/http_chunks.c).
        case CURLE_RECV_ERROR where evidence.text.hasSuffix("in chunked-encoding"): .badServerResponse
        case CURLE_RECV_ERROR where evidence.text.hasPrefix("Too large response headers"): .badServerResponse
        // A first field line that begins with a space (lib/headers.c, 7.88).
        case CURLE_BAD_FUNCTION_ARGUMENT where evidence.hasRequested || evidence.usesProxy: .badServerResponse
        case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .invalidRequest
        case CURLE_COULDNT_RESOLVE_HOST: .cannotFindHost
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: .proxyFailed
        case CURLE_COULDNT_CONNECT: meaning(ofConnectError: evidence)
        case CURLE_INTERFACE_FAILED: .notConnected
        case CURLE_OPERATION_TIMEDOUT: .timedOut
        case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE, CURLE_HTTP2, CURLE_HTTP2_STREAM:
            .connectionLost
        case CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP_RETURNED_ERROR: .badServerResponse
        // No callback has refused bytes: a decoder of libcurl did, because others follow the end of its data (lib/content_encoding.c).
        case CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR: .cannotDecodeContent
        case CURLE_TOO_MANY_REDIRECTS: .tooManyRedirects
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR: .certificateUntrusted
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: .pinMismatch
        case CURLE_SSL_CERTPROBLEM: .clientCertificateRejected
        case CURLE_SSL_CLIENTCERT: .clientCertificateRequired
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED, CURLE_SSL_SHUTDOWN_FAILED: .secureConnectionFailed
        case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ENGINE_NOTFOUND: .invalidConfiguration
        case CURLE_FILESIZE_EXCEEDED: .responseTooLarge
        case CURLE_LOGIN_DENIED, CURLE_AUTH_ERROR: .authenticationFailed
        case CURLE_READ_ERROR, CURLE_SEND_FAIL_REWIND: .cannotReadFile
        default: .transferFailed
        }
    }

    private static func meaning(ofConnectError evidence: CurlEvidence) -> HTTPSessionError.Code {
        switch evidence.systemError {
        case ENETUNREACH, ENETDOWN: .notConnected
        case ETIMEDOUT: .timedOut
        default: evidence.usesProxy ? .proxyFailed : .cannotConnectToHost
        }
    }
}
