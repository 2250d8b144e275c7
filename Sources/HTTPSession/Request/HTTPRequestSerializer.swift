import FoundationEssentials
public import HTTPTypes

/// A serializer that writes parameters into the query or into a form (`application/x-www-form-urlencoded`), depending on the method.
///
/// It also adds header fields to every request of a session.
public struct HTTPRequestSerializer: RequestSerializer {
    /// The header fields that are added to requests without a field of the same name.
    public var headerFields: HTTPFields
    /// The methods whose parameters are written into the query; GET, HEAD and DELETE by default. Methods are compared in upper case.
    public var httpMethodsEncodingParametersInURI: Set<HTTPRequest.Method> = [.get, .head, .delete]
    /// The serialization of parameters into a query string, which is also the body of a form.
    public var queryStringSerialization = QueryStringSerialization.percentEscaped
    /// The options for requests that have none of their own, except the priority.
    public var options = TransferRequest.Options()

    /// A serialization of parameters into a query string.
    @nonexhaustive public enum QueryStringSerialization: Sendable {
        /// The serialization of ``Parameters/queryString()``.
        case percentEscaped
        /// The serialization of the closure, which must also percent-escape. If it throws, the request fails.
        case custom(@Sendable (TransferRequest, Parameters) throws -> String)
    }

    /// Creates a serializer that adds these header fields.
    public init(headerFields: HTTPFields) {
        self.headerFields = headerFields
    }

    /// Creates a serializer that adds `Accept-Language` and `User-Agent` (``RequestFields``).
    public init(preferredLanguages: [String], userAgent: String?) {
        headerFields = [:]
        headerFields[.acceptLanguage] = RequestFields.acceptLanguage(preferring: preferredLanguages)
        headerFields[.userAgent] = userAgent
    }

    /// Sends `Authorization` of the Basic scheme (RFC 7617) with every request, before a server requests it. To remove the field, set
    /// `headerFields[.authorization]` to `nil`.
    ///
    /// - Throws: The error of ``RequestFields/basicAuthorization(username:password:)``.
    public mutating func setAuthorizationHeaderField(username: String, password: String) throws(HTTPSessionError) {
        headerFields[.authorization] = try RequestFields.basicAuthorization(username: username, password: password)
    }

    /// The serializer of forms, which is this serializer.
    public var formSerializer: HTTPRequestSerializer { self }

    /// Writes parameters into the query or into a form. If there are no parameters, the method has a body and the request has none, the request gets
    /// an empty form.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` for parameters of a request that has a body already, the errors of
    ///   ``Parameters/queryString()``, and ``HTTPSessionError/Code/cannotEncodeRequest`` if a custom query string fails.
    public func encode(_ parameters: Parameters?, into request: TransferRequest) throws -> TransferRequest {
        var request = applyingDefaults(to: request)
        let query = try parameters.map { try queryString($0, for: request) }
        if encodesParametersInURI(request.method) {
            request.url = try RequestURL.appending(query: query ?? "", to: request.url)
        } else if try request.takesBody(from: parameters) {
            request.body = .data(Data((query ?? "").utf8))
            request.headerFields.setDefault("application/x-www-form-urlencoded", for: .contentType)
        }
        return request
    }

    /// Returns a request whose body is a multipart form: `parameters` first, then the parts of `form`. Without any part the request keeps its body.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` for GET and HEAD, which have no body.
    public func multipartRequest(
        _ request: TransferRequest, parameters: Parameters? = nil, form: MultipartForm
    ) throws(HTTPSessionError) -> TransferRequest {
        guard !["GET", "HEAD"].contains(request.method.rawValue.uppercased()) else {
            throw HTTPSessionError(.invalidRequest, "\(request.method) carries no form", context: .init(of: request))
        }
        var complete = form
        complete.removeParts()
        if let parameters { try complete.appendParameters(parameters) }
        complete.append(partsOf: form)
        var request = applyingDefaults(to: request)
        try request.validate()
        guard !complete.isEmpty else { return request }
        request.body = .multipart(complete)
        request.headerFields[.contentType] = complete.contentType
        return request
    }

    /// Whether the parameters of this method are written into the query.
    package func encodesParametersInURI(_ method: HTTPRequest.Method) -> Bool {
        HTTPRequest.Method(method.rawValue.uppercased()).map(httpMethodsEncodingParametersInURI.contains) ?? false
    }

    /// The request with the header fields and options of this serializer that it does not have.
    package func applyingDefaults(to request: TransferRequest) -> TransferRequest {
        let own = request.headerFields
        var request = request
        // In the order of the serializer, so that equal calls send the same bytes and share one preparation.
        for field in headerFields where !own.contains(field.name) { request.headerFields.append(field) }
        request.options.requestTimeout = request.options.requestTimeout ?? options.requestTimeout
        request.options.resourceTimeout = request.options.resourceTimeout ?? options.resourceTimeout
        request.options.connectTimeout = request.options.connectTimeout ?? options.connectTimeout
        request.options.handlesCookies = request.options.handlesCookies ?? options.handlesCookies
        request.options.sendsCredentialsPreemptively =
            request.options.sendsCredentialsPreemptively ?? options.sendsCredentialsPreemptively
        request.options.allowsCellularAccess = request.options.allowsCellularAccess ?? options.allowsCellularAccess
        request.options.allowsExpensiveAccess = request.options.allowsExpensiveAccess ?? options.allowsExpensiveAccess
        request.options.allowsConstrainedAccess = request.options.allowsConstrainedAccess ?? options.allowsConstrainedAccess
        request.options.maximumResponseSize = request.options.maximumResponseSize ?? options.maximumResponseSize
        request.options.waitsForConnectivity = request.options.waitsForConnectivity ?? options.waitsForConnectivity
        request.options.connectivityTimeout = request.options.connectivityTimeout ?? options.connectivityTimeout
        request.options.retryPolicy = request.options.retryPolicy ?? options.retryPolicy
        if request.options.priority == .default { request.options.priority = options.priority }
        return request
    }

    private func queryString(_ parameters: Parameters, for request: TransferRequest) throws -> String {
        switch queryStringSerialization {
        case .percentEscaped: return try parameters.queryString()
        case .custom(let make):
            do {
                return try make(request, parameters)
            } catch {
                throw HTTPSessionError(
                    .cannotEncodeRequest, "the query's own serialization failed", context: .init(of: request), underlying: error)
            }
        }
    }
}

extension TransferRequest {
    /// Whether a serializer may write the body. A request with a body keeps it, and cannot take parameters.
    package func takesBody(from parameters: Parameters?) throws(HTTPSessionError) -> Bool {
        if case .none = body { return true }
        guard parameters == nil else {
            throw HTTPSessionError(.invalidRequest, "the request has a body already", context: .init(of: self))
        }
        return false
    }
}

extension HTTPFields {
    package mutating func setDefault(_ value: String, for name: HTTPField.Name) {
        if !contains(name) { self[name] = value }
    }
}
