public import Foundation
public import HTTPSession

extension HTTPSessionError {
    /// The code that URLSession reports for this error on Apple's platforms.
    public var urlErrorCode: URLError.Code {
        switch code {
        case .cancelled: .cancelled
        case .invalidRequest: .badURL
        case .invalidConfiguration, .misuse, .interceptorFailed, .sessionInvalidated, .transferFailed: .unknown
        case .insecureConnectionRefused, .redirectRefused: .appTransportSecurityRequiresSecureConnection
        case .networkNotAllowed: .dataNotAllowed
        case .handlerTimedOut, .timedOut: .timedOut
        case .notConnected: .notConnectedToInternet
        case .cannotFindHost: .cannotFindHost
        case .cannotConnectToHost, .proxyFailed: .cannotConnectToHost
        case .connectionLost: .networkConnectionLost
        case .secureConnectionFailed: .secureConnectionFailed
        case .certificateExpired: .serverCertificateHasBadDate
        case .certificateNotYetValid: .serverCertificateNotYetValid
        case .certificateHasUnknownRoot: .serverCertificateHasUnknownRoot
        case .certificateRevoked, .certificateUntrusted, .pinMismatch: .serverCertificateUntrusted
        case .clientCertificateRequired: .clientCertificateRequired
        case .clientCertificateRejected: .clientCertificateRejected
        case .badServerResponse, .unacceptableStatus: .badServerResponse
        case .unacceptableContentType, .cannotDecodeContent, .cannotEncodeRequest: .cannotDecodeContentData
        case .authenticationFailed: .userAuthenticationRequired
        case .tooManyRedirects: .httpTooManyRedirects
        case .responseTooLarge: .dataLengthExceedsMaximum
        case .cannotReadFile: .cannotOpenFile
        case .fileChanged: .requestBodyStreamExhausted
        case .cannotWriteFile: .cannotWriteToFile
        case .cannotMoveFile: .cannotMoveFile
        case .digestMismatch, .cannotResume: .cannotDecodeRawData
        default: .unknown
        }
    }
}

extension HTTPSessionError: CustomNSError {
    /// The domain of URLSession's errors, to which ``urlErrorCode`` belongs.
    public static var errorDomain: String { NSURLErrorDomain }

    /// The raw value of ``urlErrorCode``.
    public var errorCode: Int { urlErrorCode.rawValue }

    /// The reason, the URL without secrets, and the underlying error.
    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: reason]
        if let cause { info[NSLocalizedFailureReasonErrorKey] = "\(cause)" }
        if let url = context.url.flatMap({ URL(string: $0) }) { info[NSURLErrorFailingURLErrorKey] = url }
        if let underlying { info[NSUnderlyingErrorKey] = underlying }
        return info
    }
}
