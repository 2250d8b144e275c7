import Foundation
import HTTPSession
import HTTPSessionFoundation
import Testing

@Suite struct HTTPSessionErrorTests {
    @Test func `an error's description has its code, reason and URL on one line`() {
        let error = HTTPSessionError(
            .cannotFindHost, "no such host", context: .init(url: "https://example.com/a", method: "GET"))
        #expect("\(error)" == "cannot-find-host: no such host (GET https://example.com/a)")
        #expect(error.urlErrorCode == .cannotFindHost)
        #expect(error.metricLabel == "cannot-find-host")
    }

    /// The codes of Apple's NSURLError.h.
    private static let urlErrors: [HTTPSessionError.Code: Int] = [
        .cancelled: -999, .invalidRequest: -1000, .invalidConfiguration: -1, .sessionInvalidated: -1,
        .insecureConnectionRefused: -1022, .networkNotAllowed: -1020, .handlerTimedOut: -1001, .interceptorFailed: -1,
        .misuse: -1,
        .timedOut: -1001, .notConnected: -1009, .cannotFindHost: -1003, .cannotConnectToHost: -1004, .connectionLost: -1005,
        .proxyFailed: -1004, .secureConnectionFailed: -1200, .certificateExpired: -1201, .certificateNotYetValid: -1204,
        .certificateHasUnknownRoot: -1203, .certificateRevoked: -1202, .certificateUntrusted: -1202, .pinMismatch: -1202,
        .clientCertificateRequired: -1206, .clientCertificateRejected: -1205, .badServerResponse: -1011,
        .unacceptableStatus: -1011, .unacceptableContentType: -1016, .authenticationFailed: -1013, .tooManyRedirects: -1007,
        .redirectRefused: -1022, .responseTooLarge: -1103, .cannotDecodeContent: -1016, .cannotEncodeRequest: -1016,
        .cannotReadFile: -3001, .fileChanged: -1021, .cannotWriteFile: -3003, .cannotMoveFile: -3005, .digestMismatch: -1015,
        .cannotResume: -1015, .transferFailed: -1,
    ]

    @Test(arguments: HTTPSessionError.Code.allCases) func `each code has the number that URLSession would give`(
        _ code: HTTPSessionError.Code
    ) {
        #expect(HTTPSessionError(code, "").urlErrorCode.rawValue == Self.urlErrors[code])
    }

    @Test func `each code of the source is in the list of all codes`() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let source = try String(
            contentsOf: folder.appending(path: "Sources/HTTPSession/Messages/HTTPSessionError+Codes.swift"), encoding: .utf8)
        let names = source.matches(of: /HTTPSessionError\.Code\("([^"]+)"\)/).map { String($0.1) }
        #expect(names == HTTPSessionError.Code.allCases.map(\.rawValue))
    }

    @Test func `metric labels are unique for each code, in lower-case words`() {
        let labels = HTTPSessionError.Code.allCases.map { HTTPSessionError($0, "s3cret").metricLabel }
        #expect(Set(labels).count == Self.urlErrors.count)
        #expect(labels.allSatisfy { $0.wholeMatch(of: /[a-z]+(-[a-z]+)*/) != nil })
    }
}
