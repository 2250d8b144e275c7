internal import Foundation
internal import HTTPSession
internal import HTTPTypes

/// What a task is to do, as it is written down: all that another process needs to do it.
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
        case file(path: String, FileMark)
    }

    struct Destination: Hashable, Codable {
        var file: String
        var replaces: Bool
        var createsDirectories: Bool
        var digest: ContentDigest?
    }

    /// How an upload goes on where it stopped.
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

    /// `fileMark` looks at the file of a body.
    init(
        _ request: TransferRequest, to destination: DownloadDestination?, resuming: UploadProtocol?, writesSecrets: Bool,
        fileMark: (String) throws(DurableSessionError) -> FileMark
    ) throws(DurableSessionError) {
        guard request.url.scheme == "https" || request.url.scheme == "http", request.url.host() != nil else {
            throw DurableSessionError(.invalidTask, "the address is not absolute, or neither http nor https")
        }
        if !writesSecrets, let secret = Intent.secret(in: request) {
            throw DurableSessionError(
                .invalidTask, "\(secret) would be written to the disk: let an interceptor add it, or ask for it (writesSecrets)")
        }
        kind = destination == nil ? .upload : .download
        url = request.url
        method = request.method.rawValue
        fields = request.headerFields.map { Field(name: $0.name.rawName, value: $0.value) }
        switch request.body {
        case .none: body = nil
        case .data(let data): body = .data(data)
        case .file(let file):
            guard file.isFileURL else { throw DurableSessionError(.invalidTask, "the body is no file URL") }
            body = .file(path: file.path, try fileMark(file.path))
        case .multipart, .stream:
            throw DurableSessionError(.invalidTask, "the body cannot be written down: only data and files can")
        }
        if kind == .upload, body == nil { throw DurableSessionError(.invalidTask, "there is no body to upload") }
        options = Options(request.options)
        if let destination {
            guard destination.file.isFileURL, !destination.file.lastPathComponent.isEmpty else {
                throw DurableSessionError(.invalidTask, "the destination is no file URL")
            }
            self.destination = Destination(
                file: destination.file.standardizedFileURL.path, replaces: destination.existingFile == .replace,
                createsDirectories: destination.createsDirectories, digest: destination.expectedDigest)
        }
        switch resuming?.kind {
        case .tus(let metadata): self.resuming = .tus(metadata: metadata)
        case .draft: self.resuming = .draft
        case nil: self.resuming = nil
        }
    }

    /// What is in the request that nobody should read on a disk.
    private static func secret(in request: TransferRequest) -> String? {
        if let name = [.authorization, .proxyAuthorization, .cookie].first(where: { request.headerFields[$0] != nil }) {
            return "the field \(name.rawName)"
        }
        return request.url.user() != nil || request.url.password() != nil ? "the user in the address" : nil
    }

    /// The request once more.
    func request() throws(DurableSessionError) -> TransferRequest {
        guard let method = HTTPRequest.Method(method) else { throw Intent.damaged("the method") }
        var fields = HTTPFields()
        for field in self.fields {
            guard let name = HTTPField.Name(field.name) else { throw Intent.damaged("a field's name") }
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

    private static func damaged(_ what: String) -> DurableSessionError {
        DurableSessionError(.journalFailed, "the journal has a request that none can be: \(what)")
    }

    var uploadProtocol: UploadProtocol? {
        switch resuming {
        case .tus(let metadata): .tus(metadata: metadata)
        case .draft: .draft
        case nil: nil
        }
    }

    func terms(expires: Int64, isIdempotent: Bool) -> TaskLife.Terms {
        var isRepeatable = isIdempotent
        // An upload without a byte is left behind at the worst.
        if case .tus = resuming { isRepeatable = true }
        return TaskLife.Terms(
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
        // There is time: a task ends when it expires.
        options.retryPolicy =
            retries.map {
                RetryPolicy(
                    maximumRetries: $0.maximum, baseDelay: $0.baseDelay, maximumDelay: $0.maximumDelay,
                    maximumRetryAfter: $0.maximumRetryAfter, statusCodes: Set($0.statuses))
            } ?? .persistent
        return options
    }
}
