import CCurl
import Expectations
import Foundation
import Glibc
import Testing

@testable import HTTPSession

/// The error code for each of libcurl's codes (libcurl-errors(3)).
@Suite struct CurlFailureTests {
    /// Error codes by libcurl's number, as the manual lists them; every other number is `transferFailed`.
    private static let meanings: [UInt32: HTTPSessionError.Code] = [
        1: .invalidRequest, 3: .invalidRequest, 5: .proxyFailed, 6: .cannotFindHost, 7: .cannotConnectToHost,
        8: .badServerResponse,
        16: .connectionLost, 18: .connectionLost, 22: .badServerResponse, 23: .cannotDecodeContent, 26: .cannotReadFile,
        28: .timedOut,
        35: .secureConnectionFailed, 45: .notConnected, 47: .tooManyRedirects, 52: .connectionLost, 53: .invalidConfiguration,
        55: .connectionLost, 56: .connectionLost, 58: .clientCertificateRejected, 59: .secureConnectionFailed,
        60: .certificateUntrusted, 61: .cannotDecodeContent, 63: .responseTooLarge, 64: .secureConnectionFailed,
        65: .cannotReadFile, 67: .authenticationFailed, 77: .invalidConfiguration, 80: .secureConnectionFailed,
        82: .invalidConfiguration, 83: .certificateUntrusted, 90: .pinMismatch, 92: .connectionLost, 94: .authenticationFailed,
        97: .proxyFailed, 98: .clientCertificateRequired,
    ]

    private func error(_ code: CURLcode, _ evidence: CurlEvidence = CurlEvidence()) -> HTTPSessionError? {
        HTTPSessionError.thrown { () throws(HTTPSessionError) in try CurlFailure.check(code, evidence) }
    }

    @Test func `every CURLcode except CURLE_OK becomes an error with a code, the number and a reason`() {
        expectNil(error(CURLE_OK))
        // Numbers of a newer library are included.
        for number in Array(1...UInt32(CURL_LAST.rawValue)) + [150, .max] {
            let error = error(CURLcode(number))
            expectEqual(error?.code, Self.meanings[number] ?? .transferFailed, "CURLcode \(number)")
            expectEqual(error?.context.curlCode, Int32(bitPattern: number))
            expectNil(error?.context.systemError)
            #expect(error?.reason.isEmpty == false)
        }
    }

    @Test func `every CURLSHcode and CURLMcode of a failure becomes an error with a reason`() {
        for number in 0..<CURLSHE_LAST.rawValue {
            let error = HTTPSessionError.thrown { () throws(HTTPSessionError) in try CurlFailure.check(CURLSHcode(number)) }
            #expect((error == nil) == (number == 0) && error?.reason.isEmpty != true, "CURLSHcode \(number)")
        }
        for number in -1..<CURLM_LAST.rawValue {
            let error = HTTPSessionError.thrown { () throws(HTTPSessionError) in try CurlFailure.check(CURLMcode(number)) }
            #expect((error == nil) == (number <= 0) && error?.reason.isEmpty != true, "CURLMcode \(number)")
        }
    }

    @Test func `a CURLcode's error code depends on the system error, the proxy and the text`() {
        func meaning(_ code: CURLcode, _ change: (inout CurlEvidence) -> Void) -> HTTPSessionError.Code? {
            var evidence = CurlEvidence()
            change(&evidence)
            return error(code, evidence)?.code
        }
        expectEqual(meaning(CURLE_COULDNT_CONNECT) { $0.systemError = ECONNREFUSED }, .cannotConnectToHost)
        expectEqual(meaning(CURLE_COULDNT_CONNECT) { $0.systemError = EHOSTUNREACH }, .cannotConnectToHost)
        expectEqual(meaning(CURLE_COULDNT_CONNECT) { $0.systemError = ENETUNREACH }, .notConnected)
        expectEqual(meaning(CURLE_COULDNT_CONNECT) { $0.systemError = ENETDOWN }, .notConnected)
        expectEqual(meaning(CURLE_COULDNT_CONNECT) { $0.systemError = ETIMEDOUT }, .timedOut)
        expectEqual(meaning(CURLE_COULDNT_CONNECT) { $0.usesProxy = true }, .proxyFailed)
        expectEqual(meaning(CURLE_UNSUPPORTED_PROTOCOL) { $0.hasRequested = true }, .badServerResponse)
        expectEqual(
            meaning(CURLE_RECV_ERROR) { $0.text = "Illegal or missing hexadecimal sequence in chunked-encoding" },
            .badServerResponse)
        expectEqual(meaning(CURLE_RECV_ERROR) { $0.text = "Too large response headers: 307201 > 307200" }, .badServerResponse)
        expectEqual(meaning(CURLE_WRITE_ERROR) { $0.refusal = HTTPSessionError(.responseTooLarge, "") }, .responseTooLarge)
        expectEqual(meaning(CURLE_SSL_CONNECT_ERROR) { $0.trust = HTTPSessionError(.pinMismatch, "") }, .pinMismatch)
        expectEqual(meaning(CURLE_ABORTED_BY_CALLBACK) { $0.wasResent = true }, .connectionLost)
        for isMultiplexed in [true, false] {
            let evidence = CurlEvidence(wasResent: true, isMultiplexed: isMultiplexed)
            let error = HTTPSessionError.thrown { try CurlFailure.check(CURLE_ABORTED_BY_CALLBACK, evidence) }
            expectEqual(error?.reason.contains("refused the request"), isMultiplexed)
        }
    }

    /// libcurl's text has milliseconds and function names, and quotes a proxy's URL with its password.
    @Test func `no error's reason contains the text of libcurl`() throws {
        for number in UInt32(1)...100 {
            let code = CURLcode(number)
            let texts = ["Recv failure: x after 3 milliseconds", "Unsupported proxy 'socks9://user:s3cret@host'"]
            for text in texts {
                let reason = try #require(error(code, CurlEvidence(text: text))?.reason)
                #expect(!reason.contains("failure: x") && !reason.contains("s3cret") && !reason.contains("curl"), "\(number)")
                #expect(
                    reason != String(cString: curl_easy_strerror(code)) && !reason.isEmpty && !reason.hasSuffix("."), "\(number)")
            }
        }
        expectEqual(error(CURLE_RECV_ERROR, CurlEvidence(systemError: ECONNRESET))?.context.systemError, ECONNRESET)
        expectEqual(error(CURLE_RECV_ERROR, CurlEvidence())?.context.curlCode, 56)
    }

    @Test func `a failed handshake's reason is OpenSSL's text`() {
        let text = "TLS connect error: error:0A000410:SSL routines::ssl/tls alert handshake failure"
        expectEqual(
            error(CURLE_SSL_CONNECT_ERROR, CurlEvidence(text: text))?.reason,
            "the TLS handshake failed: ssl/tls alert handshake failure")
    }

    @Test func `a CURLMcode is an error unless it is CURLM_OK or CURLM_CALL_MULTI_PERFORM`() {
        for number in Int32(-1)...13 {
            let code = CURLMcode(number)
            let error = HTTPSessionError.thrown { () throws(HTTPSessionError) in try CurlFailure.check(code) }
            expectEqual(error?.code, (number <= 0 ? nil : .transferFailed), "CURLMcode \(number)")
        }
    }
}
