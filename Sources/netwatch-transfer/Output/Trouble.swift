import Console
import FoundationEssentials
import HTTPSession
import Reachability

/// Why a transfer does not go on, or has ended: for people, for programs, and for what follows from it.
struct Trouble: Hashable {
    /// What is to be done about it.
    enum Kind: Hashable {
        /// The library has tried again for as long as it may.
        case temporary
        /// The library does not try again, but what it met may pass.
        case odd
        /// Trying again finds the same.
        case lasting
        /// A file here, with the program's exit code.
        case file(code: Int32)
    }

    /// One line without a full stop.
    var words: String
    var cause: Cause
    var kind: Kind
    /// The code of an error that an absent connection may have caused; `nil`: the connection is not the trouble.
    var connectionFailure: HTTPSessionError.Code?
    /// Whether the session's own monitor has found the cause.
    var hasFoundCause = false

    /// Whether a proxy answered, not the server: 407 is never the server's (RFC 9110 section 15.5.8), nor is a refused tunnel.
    var isAnswerOfProxy = false

    /// Whether it may be otherwise the next time.
    var mayPass: Bool { kind == .temporary || kind == .odd }
}

extension Trouble {
    init(_ error: HTTPSessionError, of direction: TransferStatus.Direction = .download) {
        kind = Trouble.kind(of: error)
        // A server that answers an upload otherwise than its protocol has it does so again.
        if direction == .upload, error.code == .badServerResponse, error.context.statusCode != nil { kind = .lasting }
        var reason = error.reason.drop(while: \.isWhitespace)
        // A server's reason phrase may end in any number of spaces.
        while reason.last?.isWhitespace == true { reason.removeLast() }
        words = String(reason)
        // Only a name that a server suggests is never replaced.
        if error.systemErrorNumber == .fileExists { words += "; remove it, or name the file with -o" }
        cause = error.cause ?? Trouble.cause(of: error, words)
        hasFoundCause = error.cause != nil
        let status = error.context.statusCode
        isAnswerOfProxy = status == 407 || (error.code == .proxyFailed && status != nil)
        switch error.code {
        case .proxyFailed where isAnswerOfProxy: break
        case .timedOut, .notConnected, .cannotFindHost, .cannotConnectToHost, .proxyFailed: connectionFailure = error.code
        default: break
        }
    }

    /// An answer that the library takes for one like another, and that says no.
    init(_ answer: TransferAnswer) {
        var reason = "the server answered \(answer.status)"
        if !answer.phrase.isEmpty { reason += " \(answer.phrase)" }
        self.init(HTTPSessionError(.unacceptableStatus, reason, context: .init(statusCode: answer.status)))
    }

    private static func kind(of error: HTTPSessionError) -> Kind {
        switch error.code {
        case .timedOut, .notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .proxyFailed:
            return .temporary
        case .unacceptableStatus:
            return error.context.statusCode.map(Trouble.isTemporary) ?? false ? .temporary : .lasting
        // The library does not repeat a handshake that the server has refused in so many words.
        case .badServerResponse, .transferFailed, .secureConnectionFailed: return .odd
        case .cannotReadFile: return .file(code: ExitCode.inputOutput)
        case .cannotWriteFile, .cannotMoveFile:
            // A disk that is full, over its quota or broken; whatever else there is, the file could not be made.
            switch error.systemErrorNumber {
            case .noSpace, .quotaExceeded, .fileTooLarge, .inputOutput: return .file(code: ExitCode.inputOutput)
            default: return .file(code: ExitCode.cannotCreate)
            }
        default: return .lasting
        }
    }

    /// The statuses after which `get` tries again: all that say that the fault is the server's, or that it is busy.
    static let temporaryStatuses = Set([408, 429] + Array(500...599))

    static func isTemporary(_ status: Int) -> Bool { temporaryStatuses.contains(status) }

    private static func cause(of error: HTTPSessionError, _ words: String) -> Cause {
        var evidence: [String: Cause.Evidence] = ["error": .text(error.code.rawValue)]
        if let number = error.context.systemError { evidence["errno"] = .number(Int(number)) }
        if let number = error.context.curlCode { evidence["curl_code"] = .number(Int(number)) }
        let (layer, code) = place(of: error)
        if code == .status, let status = error.context.statusCode { evidence["status"] = .number(status) }
        return Cause(layer, code, detail: words, evidence: evidence)
    }

    private static func place(of error: HTTPSessionError) -> (Cause.Layer, Cause.Code) {
        switch error.code {
        case .notConnected: (.route, .noRoute)
        case .cannotFindHost: (.dns, .nameNotFound)
        case .proxyFailed where error.context.statusCode != nil: (.http, .status)
        case .cannotConnectToHost, .proxyFailed:
            switch error.systemErrorNumber {
            case .networkUnreachable: (.network, .netUnreachable)
            case .hostUnreachable: (.network, .hostUnreachable)
            case .addressNotAvailable: (.local, .sourceUnavailable)
            case .tooManyFiles, .tooManyFilesInSystem: (.local, .fileLimit)
            default: (.tcp, .refused)
            }
        case .timedOut: (.tcp, .timeout)
        case .connectionLost: (.tcp, .reset)
        case .certificateExpired: (.tls, .certificateExpired)
        case .certificateNotYetValid: (.tls, .certificateNotYetValid)
        case .certificateHasUnknownRoot, .certificateRevoked, .certificateUntrusted, .pinMismatch: (.tls, .certificateUntrusted)
        case .secureConnectionFailed: (.tls, lacksCommonProtocol(error.reason) ? .protocolMismatch : .handshakeRefused)
        case .clientCertificateRequired, .clientCertificateRejected: (.tls, .clientCertificateRequired)
        case .unacceptableStatus, .authenticationFailed: (.http, .status)
        case .digestMismatch: (.http, .unexpectedBody)
        case .cannotReadFile: (.local, .cannotRead)
        case .fileChanged: (.local, .fileChanged)
        case .cannotWriteFile, .cannotMoveFile: (.local, .cannotWrite)
        default: (.http, .invalidResponse)
        }
    }
}

/// Whether OpenSSL's reason (SSL_R_… in sslerr.h), which ends the error's reason, says that the two sides have no version or cipher of TLS in
/// common, or that the server does not speak TLS.
private func lacksCommonProtocol(_ reason: String) -> Bool {
    [
        "wrong version number", "protocol version", "unsupported protocol", "no protocols available", "no shared cipher",
        "no common cipher", "record layer failure", "http request", "https proxy request", "packet length too long",
    ].contains { reason.contains($0) }
}

extension HTTPSessionError {
    fileprivate var systemErrorNumber: SystemErrorNumber? { context.systemError.flatMap(SystemErrorNumber.init) }
}
