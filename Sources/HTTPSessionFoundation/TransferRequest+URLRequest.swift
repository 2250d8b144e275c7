internal import Foundation
public import FoundationNetworking
public import HTTPSession
internal import HTTPTypes

extension TransferRequest {
    /// Creates a request from a `URLRequest`, for code that creates or signs `URLRequest`s.
    ///
    /// The URL, method, fields and `httpBody` are copied. `timeoutInterval`, `allowsCellularAccess` and
    /// `httpShouldHandleCookies` are copied if they differ from their defaults. `Content-Length` is omitted, because the
    /// session counts the body. Responses are not cached: `cachePolicy` has no effect.
    ///
    /// - Throws: `HTTPSessionError.Code.invalidRequest` for a request without a URL, or with a method or fields that HTTP does
    ///   not allow. An `httpBodyStream` throws it too, because a stream cannot be sent twice (`RequestBody`).
    public init(_ request: URLRequest) throws(HTTPSessionError) {
        guard let url = request.url else { throw HTTPSessionError(.invalidRequest, "the URLRequest has no URL") }
        guard let method = HTTPRequest.Method(request.httpMethod ?? "GET") else {
            throw HTTPSessionError(.invalidRequest, "the URLRequest's method is no token")
        }
        guard request.httpBodyStream == nil else {
            throw HTTPSessionError(.invalidRequest, "the URLRequest has a body stream: give the body as data or as a file")
        }
        var fields = try HTTPFields(checking: request.allHTTPHeaderFields ?? [:])
        fields[.contentLength] = nil
        var options = Options()
        let timeout = request.timeoutInterval
        if timeout > 0, timeout != Self.defaults.timeoutInterval {
            options.requestTimeout = .seconds(min(max(timeout, 0.001), Self.tenYears))
        }
        if !request.allowsCellularAccess { options.allowsCellularAccess = false }
        if !request.httpShouldHandleCookies { options.handlesCookies = false }
        self.init(
            url: url, method: method, headerFields: fields, body: request.httpBody.map(RequestBody.data) ?? .none,
            options: options)
    }

    private static let defaults = URLRequest(url: URL(fileURLWithPath: "/"))
    /// The longest timeout of a request (`TransferRequest.Options`). In a URLRequest it may be infinite.
    private static let tenYears = 315_360_000.0
}

extension URLRequest {
    /// Creates a `URLRequest` with the URL, the method, the fields, the body and the timeout of `request`. Several fields of
    /// one name are combined, with commas between their values, or semicolons between cookies.
    ///
    /// - Throws: `HTTPSessionError.Code.invalidRequest` for a body that is not in memory.
    public init(_ request: TransferRequest) throws(HTTPSessionError) {
        self.init(url: request.url)
        httpMethod = request.method.rawValue
        for name in Set(request.headerFields.map(\.name)) {
            // RFC 9110 section 5.3; RFC 6265 section 5.4 for cookies.
            let values = request.headerFields[values: name].joined(separator: name == .cookie ? "; " : ", ")
            setValue(values, forHTTPHeaderField: name.rawName)
        }
        switch request.body {
        case .none: break
        case .data(let data): httpBody = data
        default: throw HTTPSessionError(.invalidRequest, "a URLRequest takes only a body that is in memory")
        }
        if let timeout = request.options.requestTimeout { timeoutInterval = timeout / .seconds(1) }
        allowsCellularAccess = request.options.allowsCellularAccess ?? true
        httpShouldHandleCookies = request.options.handlesCookies ?? true
    }
}
