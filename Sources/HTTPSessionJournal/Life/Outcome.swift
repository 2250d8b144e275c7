internal import Foundation
internal import HTTPSession

/// The result of a task, as the journal stores it.
enum Outcome: Hashable, Sendable, Codable {
    case finished(FinalResponse?)
    case failed(Failure)
    case expired
    case cancelled
    case interrupted
}

/// The final response of the server.
struct FinalResponse: Hashable, Sendable, Codable {
    var statusCode: Int
    var url: URL
    /// The first bytes of the response to an upload; empty for a download.
    var body: Data
}

/// An error in the form in which the journal stores it.
struct Failure: Hashable, Sendable {
    var code: HTTPSessionError.Code
    var reason: String
    var url: String?
    var method: String?
    var statusCode: Int?
    var curlCode: Int32?
    var systemError: Int32?

    init(_ code: HTTPSessionError.Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    init(_ error: HTTPSessionError) {
        self.init(error.code, error.reason)
        (url, method, statusCode) = (error.context.url, error.context.method, error.context.statusCode)
        (curlCode, systemError) = (error.context.curlCode, error.context.systemError)
    }

    static let fileChanged = Failure(.fileChanged, "the file has changed since the task was made")
    static let fileExists = Failure(.cannotWriteFile, "there is a file at the destination")
    static let fileGone = Failure(.cannotWriteFile, "the downloaded file has been removed by another program")

    var error: HTTPSessionError {
        HTTPSessionError(
            code, reason,
            context: .init(
                url: url, method: method, statusCode: statusCode, curlCode: curlCode, systemError: systemError))
    }
}

extension Failure: Codable {
    private enum CodingKeys: String, CodingKey {
        case code, reason, url, method, curlCode, systemError
        case statusCode = "status"
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let code = HTTPSessionError.Code(rawValue: try values.decode(String.self, forKey: .code))
        self.init(code, try values.decode(String.self, forKey: .reason))
        url = try values.decodeIfPresent(String.self, forKey: .url)
        method = try values.decodeIfPresent(String.self, forKey: .method)
        statusCode = try values.decodeIfPresent(Int.self, forKey: .statusCode)
        curlCode = try values.decodeIfPresent(Int32.self, forKey: .curlCode)
        systemError = try values.decodeIfPresent(Int32.self, forKey: .systemError)
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(code.rawValue, forKey: .code)
        try values.encode(reason, forKey: .reason)
        try values.encodeIfPresent(url, forKey: .url)
        try values.encodeIfPresent(method, forKey: .method)
        try values.encodeIfPresent(statusCode, forKey: .statusCode)
        try values.encodeIfPresent(curlCode, forKey: .curlCode)
        try values.encodeIfPresent(systemError, forKey: .systemError)
    }
}

/// The identity of a file. It survives a restart of the system, which may change the number of the device: that is left out.
struct FileIdentity: Hashable, Sendable, Codable {
    var inode: UInt64
    var size: Int64
    /// Nanoseconds since 1970.
    var modified: Int64
}
