import Console
import FoundationEssentials
import HTTPSession
import Reachability

/// The reason why a transfer is delayed or has failed, for people, for programs, and for the decision to retry.
struct TransferProblem: Hashable {
    /// The kind of problem, which decides whether the transfer is retried.
    enum Kind: Hashable {
        /// The library has retried it for as long as it may.
        case temporary
        /// The library does not retry it, but a later attempt may succeed.
        case unretried
        /// Every attempt would fail in the same way.
        case permanent
        /// A local file failed; `code` is the program's exit code.
        case file(code: Int32)
    }

    /// The message for people: one line without a full stop.
    var message: String
    var cause: Cause
    var kind: Kind
    /// The code of an error that a missing connection may have caused; `nil` if the connection is not the problem.
    var connectionFailure: HTTPSessionError.Code?
    /// Whether the session's path monitor has found the cause.
    var hasFoundCause = false

    /// Whether a proxy answered, not the server: 407 is never the server's (RFC 9110 section 15.5.8), nor is a refused tunnel.
    var isAnswerOfProxy = false

    /// A transfer waits for ten years at most.
    static let forever = Duration.seconds(3_650 * 86_400)

    /// Whether a later attempt may succeed.
    var isRetriable: Bool { kind == .temporary || kind == .unretried }
}

extension TransferProblem {
    init(_ error: HTTPSessionError, of direction: TransferStatus.Direction = .download) {
        kind = TransferProblem.kind(of: error)
        // A server that violates the upload protocol does so again.
        if direction == .upload, error.code == .badServerResponse, error.context.statusCode != nil { kind = .permanent }
        var reason = error.reason.drop(while: \.isWhitespace)
        // A server's reason phrase may end in any number of spaces.
        while reason.last?.isWhitespace == true { reason.removeLast() }
        message = String(reason)
        if let delay = error.context.retryAfter, delay > Self.forever {
            message += "; it asks to wait \(ReadableDuration.text(delay))"
        }
        // An existing file is an error only if the server suggests the name: it is never replaced.
        if error.systemErrorNumber == .fileExists { message += "; remove it, or name the file with -o" }
        cause = error.cause ?? TransferProblem.cause(of: error, message)
        hasFoundCause = error.cause != nil
        // The cause says what the server has sent, in the words of `netwatch status`. The error has OpenSSL's words for it.
        if let found = error.cause, found.layer == .tls, found.code != .certificateExpiring, Self.isOfHandshake(error.code) {
            message = found.detail
        }
        let status = error.context.statusCode
        isAnswerOfProxy = status == 407 || (error.code == .proxyFailed && status != nil)
        switch error.code {
        case .proxyFailed where isAnswerOfProxy: break
        case .timedOut, .notConnected, .cannotFindHost, .cannotConnectToHost, .proxyFailed: connectionFailure = error.code
        default: break
        }
    }

    /// Whether the error is that of a TLS handshake, or of the server's certificate. Pins are this side's own rules.
    private static func isOfHandshake(_ code: HTTPSessionError.Code) -> Bool {
        switch code {
        case .secureConnectionFailed, .clientCertificateRequired, .certificateExpired, .certificateNotYetValid,
            .certificateHasUnknownRoot, .certificateRevoked, .certificateUntrusted:
            true
        default: false
        }
    }

    /// Creates the problem for a response with an error status that the library does not treat as an error.
    init(_ answer: TransferAnswer) {
        var reason = "the server answered \(answer.status)"
        if !answer.phrase.isEmpty { reason += " \(answer.phrase)" }
        switch answer.status {
        case 401: reason += "; credentials come from --user or -H"
        case 407: reason += "; its credentials are part of its URL, NAME:PASSWORD@HOST"
        default: break
        }
        self.init(HTTPSessionError(.unacceptableStatus, reason, context: .init(statusCode: answer.status)))
    }

    private static func kind(of error: HTTPSessionError) -> Kind {
        switch error.code {
        case .timedOut, .notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .proxyFailed:
            return .temporary
        case .unacceptableStatus:
            return error.context.statusCode.map(TransferProblem.isTemporary) ?? false ? .temporary : .permanent
        // The library does not repeat a handshake that the server has refused explicitly.
        case .badServerResponse, .transferFailed, .secureConnectionFailed: return .unretried
        case .cannotReadFile: return .file(code: ExitCode.inputOutput)
        case .cannotWriteFile, .cannotMoveFile:
            // The disk is full, over its quota or defective. With any other error, the file could not be created.
            switch error.systemErrorNumber {
            case .noSpace, .quotaExceeded, .fileTooLarge, .inputOutput: return .file(code: ExitCode.inputOutput)
            default: return .file(code: ExitCode.cannotCreate)
            }
        default: return .permanent
        }
    }

    /// The statuses after which `get` retries: errors of the server, and statuses of a busy server.
    static let temporaryStatuses = Set([408, 429] + Array(500...599))

    static func isTemporary(_ status: Int) -> Bool { temporaryStatuses.contains(status) }

    private static func cause(of error: HTTPSessionError, _ message: String) -> Cause {
        var evidence: [String: Cause.Evidence] = ["error": .text(error.code.rawValue)]
        if let number = error.context.systemError { evidence["errno"] = .number(Int(number)) }
        if let number = error.context.curlCode { evidence["curl_code"] = .number(Int(number)) }
        let (layer, code) = layerAndCode(of: error)
        if code == .status, let status = error.context.statusCode { evidence["status"] = .number(status) }
        return Cause(layer, code, detail: message, evidence: evidence)
    }

    private static func layerAndCode(of error: HTTPSessionError) -> (Cause.Layer, Cause.Code) {
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

/// Returns whether the two sides have no TLS version or cipher in common, or the server does not speak TLS. The error's reason
/// ends with OpenSSL's (SSL_R_… in sslerr.h).
private func lacksCommonProtocol(_ reason: String) -> Bool {
    [
        "wrong version number", "protocol version", "unsupported protocol", "no protocols available", "no shared cipher",
        "no common cipher", "record layer failure", "http request", "https proxy request", "packet length too long",
    ].contains { reason.contains($0) }
}

extension HTTPSessionError {
    fileprivate var systemErrorNumber: SystemErrorNumber? { context.systemError.flatMap(SystemErrorNumber.init) }
}

/// The parts of a server's response that matter to the program.
struct TransferAnswer: Hashable, Sendable {
    var status: Int
    var phrase: String
    /// The value of `Tus-Version`: the versions of tus that the server supports.
    var tusVersions: String?
}
