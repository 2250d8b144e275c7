public import FoundationEssentials

// Names of Foundation's URLSession, so that the compiler names the replacement. Only names that programs really use are here; the article
// "Coming from URLSession" has all others. `URLSession` itself is not here: Foundation declares it, and the two would be ambiguous. A program's own
// type `Session` hides the unavailable one, also if another module declares it.

/// The name that Alamofire has for ``HTTPSessionManager``.
@available(*, unavailable, renamed: "HTTPSessionManager")
public typealias Session = HTTPSessionManager

/// The name that Alamofire 4 has for ``HTTPSessionManager``.
@available(*, unavailable, renamed: "HTTPSessionManager")
public typealias SessionManager = HTTPSessionManager

/// The name that AFNetworking has for ``HTTPSessionManager``.
@available(*, unavailable, renamed: "HTTPSessionManager")
public typealias AFHTTPSessionManager = HTTPSessionManager

extension HTTPSessionManager {
    /// URLSession's name of ``dataTask(for:handlers:startsImmediately:)`` and ``dataTask(for:)``.
    @available(*, unavailable, renamed: "dataTask(for:)")
    public func dataTask(with request: Any) -> TransferTask { get("") }

    /// URLSession's data task with a completion handler. The counterparts are ``data(for:)`` and the methods with `success:failure:`.
    @available(*, unavailable, message: "await data(for:), or use get(_:success:failure:)")
    public func dataTask(
        with request: Any, completionHandler: @escaping @Sendable (Data?, TransferResponse?, (any Error)?) -> Void
    ) -> TransferTask { get("") }

    /// URLSession's data of a URL. The counterparts are ``get(_:parameters:headerFields:)`` and ``dataTask(for:)``.
    @available(*, unavailable, message: "await get(_:).data(), or get(_:).response of any status")
    public func data(from url: Any) async throws -> (Data, TransferResponse) {
        try await data(for: TransferRequest(url: URL(fileURLWithPath: "")))
    }

    /// URLSession's name of ``cancel(afterTasks:)`` without the tasks.
    @available(*, unavailable, renamed: "cancel(afterTasks:)")
    public func finishTasksAndInvalidate() {}

    /// URLSession's name of ``cancel(afterTasks:)``.
    @available(*, unavailable, renamed: "cancel()")
    public func invalidateAndCancel() {}

    /// URLSession's name of ``uploadTask(for:from:handlers:startsImmediately:)``.
    @available(*, unavailable, renamed: "uploadTask(for:from:)")
    public func uploadTask(with request: Any, from body: Data) -> TransferTask { get("") }

    /// URLSession's upload of a file. The counterpart is ``uploadTask(for:from:handlers:startsImmediately:)``.
    @available(*, unavailable, message: "use uploadTask(for:from:) with the body .file(url)")
    public func uploadTask(with request: Any, fromFile file: URL) -> TransferTask { get("") }

    /// URLSession's upload that is awaited. The counterpart is ``uploadTask(for:from:handlers:startsImmediately:)``.
    @available(*, unavailable, message: "await uploadTask(for:from:).response")
    public func upload(for request: Any, from body: Data) async throws -> (Data, TransferResponse) {
        try await data(for: TransferRequest(url: URL(fileURLWithPath: "")))
    }

    /// URLSession's upload of a file that is awaited. The counterpart is ``uploadTask(for:from:handlers:startsImmediately:)``.
    @available(*, unavailable, message: "await uploadTask(for:from:).response with the body .file(url)")
    public func upload(for request: Any, fromFile file: URL) async throws -> (Data, TransferResponse) {
        try await data(for: TransferRequest(url: URL(fileURLWithPath: "")))
    }

    /// URLSession's download task. The counterpart is ``downloadTask(for:to:handlers:startsImmediately:)-(_,URL,_,_)``.
    @available(*, unavailable, message: "use downloadTask(for:to:), which takes the destination")
    public func downloadTask(with request: Any) -> TransferTask { get("") }

    /// URLSession's download that is awaited. The counterpart is ``downloadTask(for:to:handlers:startsImmediately:)-(_,URL,_,_)``.
    @available(*, unavailable, message: "await downloadTask(for:to:).file(), which takes the destination")
    public func download(for request: Any) async throws -> (URL, TransferResponse) {
        (URL(fileURLWithPath: ""), try await data(for: TransferRequest(url: URL(fileURLWithPath: ""))).1)
    }

    /// URLSession's download of a URL that is awaited. The counterpart is ``downloadTask(for:to:handlers:startsImmediately:)-(_,URL,_,_)``.
    @available(*, unavailable, message: "await downloadTask(for:to:).file(), which takes the destination")
    public func download(from url: URL) async throws -> (URL, TransferResponse) {
        (URL(fileURLWithPath: ""), try await data(for: TransferRequest(url: URL(fileURLWithPath: ""))).1)
    }

    /// URLSession's bytes of a response. The counterpart is ``streamTask(for:handlers:startsImmediately:)``.
    @available(*, unavailable, message: "iterate over streamTask(for:).chunks")
    public func bytes(for request: Any) async throws -> (TransferTask.Chunks, TransferResponse) {
        (get("").chunks, try await data(for: TransferRequest(url: URL(fileURLWithPath: ""))).1)
    }

    /// URLSession's bytes of a URL. The counterpart is ``streamTask(for:handlers:startsImmediately:)``.
    @available(*, unavailable, message: "iterate over streamTask(for:).chunks")
    public func bytes(from url: URL) async throws -> (TransferTask.Chunks, TransferResponse) {
        (get("").chunks, try await data(for: TransferRequest(url: URL(fileURLWithPath: ""))).1)
    }

    /// URLSession's list of tasks with a completion handler. The counterpart is ``tasks``.
    @available(*, unavailable, message: "await tasks")
    public func getAllTasks(completionHandler: @escaping @Sendable ([TransferTask]) -> Void) {}

    /// URLSession's name of ``tasks``.
    @available(*, unavailable, renamed: "tasks")
    public var allTasks: [TransferTask] { get async { await tasks } }
}

extension TransferTask {
    /// URLSession's name of ``id``.
    @available(*, unavailable, renamed: "id")
    public var taskIdentifier: Int { Int(id) }

    /// URLSession's name of ``request``.
    @available(*, unavailable, renamed: "request")
    public var originalRequest: TransferRequest? { request }

    /// URLSession's request after redirects. The counterparts are ``TransferResponse/url`` and ``TransferResponse/method``.
    @available(*, unavailable, message: "use request, or url and method of the response, which are those of the last request")
    public var currentRequest: TransferRequest? { request }

    /// URLSession's error of a task. The counterpart is ``result``.
    @available(*, unavailable, message: "await response, which throws the error, or read result")
    public var error: (any Error)? { nil }

    /// URLSession's number of received bytes. The counterpart is ``TransferProgress/bytesReceived``.
    @available(*, unavailable, message: "use currentProgress.bytesReceived")
    public var countOfBytesReceived: Int64 { 0 }

    /// URLSession's number of sent bytes. The counterpart is ``TransferProgress/bytesSent``.
    @available(*, unavailable, message: "use currentProgress.bytesSent")
    public var countOfBytesSent: Int64 { 0 }

    /// URLSession's length of the response. The counterpart is ``TransferProgress/expectedToReceive``.
    @available(*, unavailable, message: "use currentProgress.expectedToReceive")
    public var countOfBytesExpectedToReceive: Int64 { 0 }

    /// URLSession's length of the request's body. The counterpart is ``TransferProgress/expectedToSend``.
    @available(*, unavailable, message: "use currentProgress.expectedToSend")
    public var countOfBytesExpectedToSend: Int64 { 0 }

    /// URLSession's cancellation of a download. The counterpart is ``cancel()``; the error has ``HTTPSessionError/resumeData``.
    @available(*, unavailable, message: "call cancel(); the error of the task has resumeData")
    public func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {}
}

extension TransferTask.State {
    /// URLSession's name of ``finished``.
    @available(*, unavailable, renamed: "finished")
    public static var completed: TransferTask.State { .finished }
}

extension TransferProgress {
    /// Progress' number of completed units. The counterparts are ``bytesReceived`` and ``bytesSent``.
    @available(*, unavailable, message: "use bytesReceived or bytesSent")
    public var completedUnitCount: Int64 { 0 }

    /// Progress' number of units. The counterparts are ``expectedToReceive`` and ``expectedToSend``.
    @available(*, unavailable, message: "use expectedToReceive or expectedToSend")
    public var totalUnitCount: Int64 { 0 }
}

extension TransferRequest {
    /// URLRequest's name of ``method``.
    @available(*, unavailable, renamed: "method")
    public var httpMethod: String? {
        get { nil }
        set {}
    }

    /// URLRequest's name of ``headerFields``.
    @available(*, unavailable, renamed: "headerFields")
    public var allHTTPHeaderFields: [String: String]? {
        get { nil }
        set {}
    }

    /// URLRequest's body. The counterpart is ``body``.
    @available(*, unavailable, message: "use body, such as .data(data)")
    public var httpBody: Data? {
        get { nil }
        set {}
    }

    /// URLRequest's timeout in seconds. The counterpart is ``Options-swift.struct/requestTimeout``.
    @available(*, unavailable, renamed: "options.requestTimeout")
    public var timeoutInterval: Double {
        get { 0 }
        set {}
    }

    /// URLRequest's access to a header field. The counterpart is ``headerFields``.
    @available(*, unavailable, message: "use headerFields, such as headerFields[.accept] = value")
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {}

    /// URLRequest's access to a header field. The counterpart is ``headerFields``.
    @available(*, unavailable, message: "use headerFields, such as headerFields[.accept] = value")
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {}

    /// URLRequest's access to a header field. The counterpart is ``headerFields``.
    @available(*, unavailable, message: "use headerFields, such as headerFields[.accept]")
    public func value(forHTTPHeaderField field: String) -> String? { nil }
}

extension TransferResponse {
    /// HTTPURLResponse's name of ``headerFields``.
    @available(*, unavailable, renamed: "headerFields")
    public var allHeaderFields: [AnyHashable: Any] { [:] }

    /// HTTPURLResponse's access to a header field. The counterpart is ``headerFields``.
    @available(*, unavailable, message: "use headerFields, such as headerFields[.contentType]")
    public func value(forHTTPHeaderField field: String) -> String? { nil }
}

extension SessionConfiguration {
    /// URLSessionConfiguration's name of ``requestTimeout``, in seconds.
    @available(*, unavailable, renamed: "requestTimeout")
    public var timeoutIntervalForRequest: Double {
        get { 0 }
        set {}
    }

    /// URLSessionConfiguration's name of ``resourceTimeout``, in seconds.
    @available(*, unavailable, renamed: "resourceTimeout")
    public var timeoutIntervalForResource: Double {
        get { 0 }
        set {}
    }

    /// URLSessionConfiguration's name of ``maximumConnectionsPerHost``.
    @available(*, unavailable, renamed: "maximumConnectionsPerHost")
    public var httpMaximumConnectionsPerHost: Int {
        get { 0 }
        set {}
    }

    /// URLSessionConfiguration's name of ``additionalHeaderFields``.
    @available(*, unavailable, renamed: "additionalHeaderFields")
    public var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { nil }
        set {}
    }

    /// URLSessionConfiguration's name of ``allowsExpensiveAccess``.
    @available(*, unavailable, renamed: "allowsExpensiveAccess")
    public var allowsExpensiveNetworkAccess: Bool {
        get { allowsExpensiveAccess }
        set {}
    }

    /// URLSessionConfiguration's name of ``allowsConstrainedAccess``.
    @available(*, unavailable, renamed: "allowsConstrainedAccess")
    public var allowsConstrainedNetworkAccess: Bool {
        get { allowsConstrainedAccess }
        set {}
    }

    /// URLSessionConfiguration's store of cookies. The counterpart is ``cookies``.
    @available(*, unavailable, message: "use cookies, such as .shared(CookieStore())")
    public var httpCookieStorage: CookieStore? {
        get { nil }
        set {}
    }

    /// URLSessionConfiguration's cache, which has no counterpart.
    @available(*, unavailable, message: "HTTPSession has no cache")
    public var urlCache: Any? {
        get { nil }
        set {}
    }

    /// The values of ``requestCachePolicy``, so that the compiler explains an assignment.
    @available(*, unavailable, message: "HTTPSession has no cache")
    @nonexhaustive public enum RequestCachePolicy {
        /// A policy of URLRequest, which has no counterpart.
        case useProtocolCachePolicy, reloadIgnoringLocalCacheData, reloadIgnoringCacheData, reloadIgnoringLocalAndRemoteCacheData,
            returnCacheDataElseLoad, returnCacheDataDontLoad, reloadRevalidatingCacheData
    }

    /// URLSessionConfiguration's cache policy, which has no counterpart: every request is sent to the server.
    @available(*, unavailable, message: "HTTPSession has no cache: every request is sent to the server")
    public var requestCachePolicy: RequestCachePolicy {
        get { .useProtocolCachePolicy }
        set {}
    }

    /// URLSessionConfiguration's protocols, with which tests replace the network.
    @available(*, unavailable, message: "use scriptedTransport of HTTPSessionTestKit")
    public var protocolClasses: [AnyObject.Type]? {
        get { nil }
        set {}
    }

    /// URLSessionConfiguration's background sessions. The counterpart is `DurableSession` of HTTPSessionJournal.
    @available(*, unavailable, message: "use DurableSession.open(identifier:directory:) of HTTPSessionJournal")
    public static func background(withIdentifier identifier: String) -> SessionConfiguration { .default }
}

extension HTTPSessionError.Code {
    /// URLError's name of ``notConnected``.
    @available(*, unavailable, renamed: "notConnected")
    public static var notConnectedToInternet: HTTPSessionError.Code { .notConnected }

    /// URLError's name of ``connectionLost``.
    @available(*, unavailable, renamed: "connectionLost")
    public static var networkConnectionLost: HTTPSessionError.Code { .connectionLost }
}
