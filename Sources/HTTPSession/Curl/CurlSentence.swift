internal import CCurl
internal import Glibc
internal import Reachability

/// The reasons of errors that libcurl reports, as sentences for a person.
///
/// libcurl's own text names milliseconds, functions and options, and quotes a proxy's URL with its password.
/// ``HTTPSessionError/Context/curlCode`` has the number of the code.
enum CurlSentence {
    /// The sentence for a CURLcode, without a full stop.
    static func text(of code: CURLcode, _ evidence: CurlEvidence) -> String {
        let peer = evidence.usesProxy && !evidence.hasRequested ? "the proxy" : "the server"
        return switch code {
        case CURLE_UNSUPPORTED_PROTOCOL where evidence.hasRequested: "\(peer) answered something that is not HTTP"
        case CURLE_RECV_ERROR where evidence.text.hasSuffix("in chunked-encoding"):
            "the chunked encoding of the response is broken"
        case CURLE_RECV_ERROR where evidence.text.hasPrefix("Too large response headers"):
            "the header of the response is too large"
        case CURLE_URL_MALFORMAT: "the URL is malformed"
        case CURLE_UNSUPPORTED_PROTOCOL: "the scheme of the URL is not supported"
        case CURLE_COULDNT_RESOLVE_HOST: "the name of the server cannot be resolved"
        case CURLE_COULDNT_RESOLVE_PROXY: "the name of the proxy cannot be resolved"
        case CURLE_PROXY: "the proxy does not forward the connection"
        case CURLE_COULDNT_CONNECT: "cannot connect to \(peer)\(systemText(evidence))"
        case CURLE_INTERFACE_FAILED: "the connection cannot be bound to the interface\(systemText(evidence))"
        case CURLE_OPERATION_TIMEDOUT:
            evidence.hasRequested ? "\(peer) did not answer in time" : "no connection to \(peer) was made in time"
        case CURLE_GOT_NOTHING: "\(peer) closed the connection without a response"
        case CURLE_RECV_ERROR: "the connection was lost while \(peer)'s response was awaited\(systemText(evidence))"
        case CURLE_SEND_ERROR: "the connection was lost while the request was sent\(systemText(evidence))"
        case CURLE_PARTIAL_FILE: "the connection ended before the response was complete"
        case CURLE_HTTP2: "the HTTP/2 connection failed"
        case CURLE_HTTP2_STREAM: "the server reset the HTTP/2 stream"
        case CURLE_BAD_CONTENT_ENCODING: "the response cannot be decompressed"
        case CURLE_WRITE_ERROR: "the response cannot be decompressed: bytes follow the end of its compressed data"
        case CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP_RETURNED_ERROR: "\(peer)'s response is not valid HTTP"
        case CURLE_BAD_FUNCTION_ARGUMENT where evidence.hasRequested || evidence.usesProxy: "\(peer)'s response is not valid HTTP"
        case CURLE_TOO_MANY_REDIRECTS: "there are too many redirects"
        default: textOfOthers(code, evidence)
        }
    }

    private static func textOfOthers(_ code: CURLcode, _ evidence: CurlEvidence) -> String {
        switch code {
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
            "the server's certificate is not trusted\(opensslText(evidence))"
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: "the server's key is not the pinned one"
        case CURLE_SSL_CERTPROBLEM: "the client certificate cannot be used\(opensslText(evidence))"
        case CURLE_SSL_CLIENTCERT: "the server requires a client certificate"
        case CURLE_SSL_CONNECT_ERROR, CURLE_USE_SSL_FAILED, CURLE_SSL_SHUTDOWN_FAILED:
            "the TLS handshake failed\(opensslText(evidence))"
        case CURLE_SSL_CIPHER: "the TLS handshake failed: no common cipher"
        case CURLE_SSL_CACERT_BADFILE: "the file of certificate authorities cannot be read"
        case CURLE_SSL_CRL_BADFILE: "the certificate revocation list cannot be read"
        case CURLE_FILESIZE_EXCEEDED: "the response is larger than permitted"
        case CURLE_LOGIN_DENIED, CURLE_AUTH_ERROR: "the authentication failed"
        case CURLE_READ_ERROR: "the body of the request cannot be read"
        case CURLE_SEND_FAIL_REWIND: "the body of the request cannot be sent again"
        case CURLE_OUT_OF_MEMORY: "no memory is left"
        case CURLE_NOT_BUILT_IN, CURLE_UNKNOWN_OPTION, CURLE_BAD_FUNCTION_ARGUMENT:
            "the installed transfer library lacks a needed function (code \(code.rawValue))"
        default: "the transfer failed (code \(code.rawValue))"
        }
    }

    private static func systemText(_ evidence: CurlEvidence) -> String {
        evidence.systemError == 0 ? "" : ": \(errorText(evidence.systemError))"
    }

    /// OpenSSL's reason out of `error:0A000410:SSL routines::sslv3 alert handshake failure`.
    private static func opensslText(_ evidence: CurlEvidence) -> String {
        guard let routine = evidence.text.firstRange(of: "routines:") else { return systemText(evidence) }
        let reason = evidence.text[routine.upperBound...].split(separator: ":").last ?? ""
        let isPlain = !reason.isEmpty && reason.utf8.allSatisfy { (0x20..<0x7f).contains($0) && $0 != 0x40 }
        return isPlain ? ": \(reason)" : ""
    }
}
