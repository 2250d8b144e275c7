internal import Foundation
internal import HTTPSession
internal import HTTPTypes

/// The work of a task as the journal stores it: everything that another process needs to do it. Property names are keys of the JSON.
struct Intent: Hashable, Sendable, Codable {
    enum Kind: String, Codable {
        case download, upload
    }

    struct Field: Hashable, Codable {
        var name: String
        var value: String
    }

    enum Body: Hashable, Codable {
        case data(Data)
        case file(path: String, FileIdentity)
    }

    struct Destination: Hashable, Codable {
        var file: String
        var replaces: Bool
        var createsDirectories: Bool
        var digest: ContentDigest?
    }

    /// The protocol that continues an interrupted upload.
    enum Resuming: Hashable, Codable {
        case tus(metadata: [String: String])
        case draft
    }

    struct Options: Hashable, Codable {
        var requestTimeout: Duration?
        var connectTimeout: Duration?
        var priority: Int
        var handlesCookies: Bool?
        var sendsCredentialsPreemptively: Bool?
        var allowsCellularAccess: Bool?
        var allowsExpensiveAccess: Bool?
        var allowsConstrainedAccess: Bool?
        var waitsForConnectivity: Bool?
        var maximumResponseSize: Int?
        var retries: Retries?
    }

    struct Retries: Hashable, Codable {
        var maximum: Int?
        var baseDelay: Duration
        var maximumDelay: Duration
        var maximumRetryAfter: Duration
        var statuses: [Int]
    }

    var kind: Kind
    var url: URL
    var method: String
    var fields: [Field]
    var body: Body?
    var options: Options
    var destination: Destination?
    var resuming: Resuming?

    /// Creates the intent of a request. `identity` returns the identity of a body's file.
    init(
        _ request: TransferRequest, to destination: DownloadDestination?, uploadProtocol: UploadProtocol?, writesSecrets: Bool,
        identity: (String) throws(DurableSessionError) -> FileIdentity
    ) throws(DurableSessionError) {
        guard request.url.scheme == "https" || request.url.scheme == "http", request.url.host() != nil else {
            throw DurableSessionError(.invalidTask, "the URL is not an absolute http or https URL")
        }
        if !writesSecrets, let secret = Intent.secret(in: request) {
            throw DurableSessionError(
                .invalidTask, "\(secret) would be written to the disk: add it by an interceptor, or allow that (writesSecrets)")
        }
        kind = destination == nil ? .upload : .download
        url = request.url
        method = request.method.rawValue
        fields = request.headerFields.map { Field(name: $0.name.rawName, value: $0.value) }
        switch request.body {
        case .none: body = nil
        case .data(let data): body = .data(data)
        case .file(let file):
            guard file.isFileURL else { throw DurableSessionError(.invalidTask, "the URL of the body is not a file URL") }
            body = .file(path: file.path, try identity(file.path))
        case .multipart, .stream:
            throw DurableSessionError(.invalidTask, "the journal stores bodies of data and files only")
        }
        if kind == .upload, body == nil { throw DurableSessionError(.invalidTask, "there is no body to upload") }
        options = Options(request.options)
        if let destination {
            guard destination.file.isFileURL, !destination.file.lastPathComponent.isEmpty else {
                throw DurableSessionError(.invalidTask, "the destination is not a file URL")
            }
            self.destination = Destination(
                file: destination.file.standardizedFileURL.path, replaces: destination.existingFile == .replace,
                createsDirectories: destination.createsDirectories, digest: destination.expectedDigest)
        }
        switch uploadProtocol?.kind {
        case .tus(let metadata): self.resuming = .tus(metadata: metadata)
        case .draft: self.resuming = .draft
        case nil: self.resuming = nil
        }
    }

    /// The part of the request that must not be readable on a disk.
    private static func secret(in request: TransferRequest) -> String? {
        if let name = [.authorization, .proxyAuthorization, .cookie].first(where: { request.headerFields[$0] != nil }) {
            return "the field \(name.rawName)"
        }
        return request.url.user() != nil || request.url.password() != nil ? "the user in the URL" : nil
    }

    /// The request that this value was made from.
    func request() throws(DurableSessionError) -> TransferRequest {
        guard let method = HTTPRequest.Method(method) else { throw Intent.damaged("its method") }
        var fields = HTTPFields()
        for field in self.fields {
            guard let name = HTTPField.Name(field.name) else { throw Intent.damaged("the name of a header field") }
            fields.append(HTTPField(name: name, value: field.value))
        }
        let body: RequestBody =
            switch self.body {
            case .data(let data): .data(data)
            case .file(let path, _): .file(URL(fileURLWithPath: path))
            case nil: .none
            }
        return TransferRequest(url: url, method: method, headerFields: fields, body: body, options: options.request)
    }

    private static func damaged(_ part: String) -> DurableSessionError {
        DurableSessionError(.journalFailed, "the journal has an invalid request: \(part)")
    }

    var uploadProtocol: UploadProtocol? {
        switch resuming {
        case .tus(let metadata): .tus(metadata: metadata)
        case .draft: .draft
        case nil: nil
        }
    }

    func terms(expires: Int64, isIdempotent: Bool) -> TaskLifecycle.Terms {
        var isRepeatable = isIdempotent
        // A repeated creation request of tus leaves an empty upload on the server at worst.
        if case .tus = resuming { isRepeatable = true }
        return TaskLifecycle.Terms(
            isDownload: kind == .download, refusesExistingFile: destination?.replaces == false, isRepeatable: isRepeatable,
            expires: expires)
    }
}

extension Intent.Options {
    init(_ options: TransferRequest.Options) {
        requestTimeout = options.requestTimeout
        connectTimeout = options.connectTimeout
        priority = options.priority.rawValue
        handlesCookies = options.handlesCookies
        sendsCredentialsPreemptively = options.sendsCredentialsPreemptively
        allowsCellularAccess = options.allowsCellularAccess
        allowsExpensiveAccess = options.allowsExpensiveAccess
        allowsConstrainedAccess = options.allowsConstrainedAccess
        waitsForConnectivity = options.waitsForConnectivity
        maximumResponseSize = options.maximumResponseSize
        retries = options.retryPolicy.map {
            .init(
                maximum: $0.maximumRetries, baseDelay: $0.baseDelay, maximumDelay: $0.maximumDelay,
                maximumRetryAfter: $0.maximumRetryAfter, statuses: $0.statusCodes.sorted())
        }
    }

    var request: TransferRequest.Options {
        var options = TransferRequest.Options()
        options.requestTimeout = requestTimeout
        options.connectTimeout = connectTimeout
        options.priority = .init(rawValue: priority) ?? .default
        options.handlesCookies = handlesCookies
        options.sendsCredentialsPreemptively = sendsCredentialsPreemptively
        options.allowsCellularAccess = allowsCellularAccess
        options.allowsExpensiveAccess = allowsExpensiveAccess
        options.allowsConstrainedAccess = allowsConstrainedAccess
        options.waitsForConnectivity = waitsForConnectivity
        options.maximumResponseSize = maximumResponseSize
        // Retries have no limit by default: a task ends when it expires.
        options.retryPolicy =
            retries.map {
                RetryPolicy(
                    maximumRetries: $0.maximum, baseDelay: $0.baseDelay, maximumDelay: $0.maximumDelay,
                    maximumRetryAfter: $0.maximumRetryAfter, statusCodes: Set($0.statuses))
            } ?? .persistent
        return options
    }
}
