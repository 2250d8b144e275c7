import FoundationEssentials
public import HTTPTypes

/// Parameters in the query, or as a form (`application/x-www-form-urlencoded`), by the request's method; and the fields that every
/// request of a session carries.
///
/// A value: copies are independent, so that threads need no lock around it.
public struct HTTPRequestSerializer: RequestSerializer {
    /// The fields for requests that do not have them already.
    public var headerFields: HTTPFields
    /// The methods whose parameters go into the query. Looked up in upper case.
    public var httpMethodsEncodingParametersInURI: Set<HTTPRequest.Method> = [.get, .head, .delete]
    /// How parameters become a query string, which is also the body of a form.
    public var queryStringSerialization = QueryStringSerialization.percentEscaped
    /// What a request does not say for itself. The priority is not taken from here.
    public var options = TransferRequest.Options()

    /// How parameters become a query string.
    @nonexhaustive public enum QueryStringSerialization: Sendable {
        /// ``Parameters/queryString()``.
        case percentEscaped
        /// Made by the closure, escaping included. Its error ends the request.
        case custom(@Sendable (TransferRequest, Parameters) throws -> String)
    }

    /// A serializer with the given fields.
    public init(headerFields: HTTPFields) {
        self.headerFields = headerFields
    }

    /// A serializer that tells the server the preferred languages and who asks (``RequestFields``).
    public init(preferredLanguages: [String], userAgent: String?) {
        headerFields = [:]
        headerFields[.acceptLanguage] = RequestFields.acceptLanguage(preferring: preferredLanguages)
        headerFields[.userAgent] = userAgent
    }

    /// Sets a field for every request; `nil` removes it.
    ///
    /// Throws ``HTTPSessionError/Code/invalidRequest`` for a name or value that would break the header (`HTTPFields`).
    public mutating func setValue(_ value: String?, forHTTPHeaderField name: String) throws(HTTPSessionError) {
        try headerFields.set(value, forFieldNamed: name)
    }

    /// What every request carries under this name.
    public func value(forHTTPHeaderField name: String) -> String? {
        HTTPField.Name(name).flatMap { headerFields[$0] }
    }

    /// Sends Basic authorization with every request, before any server asks for it.
    public mutating func setAuthorizationHeaderField(username: String, password: String) throws(HTTPSessionError) {
        headerFields[.authorization] = try RequestFields.basicAuthorization(username: username, password: password)
    }

    /// Sends none any more.
    public mutating func clearAuthorizationHeader() {
        headerFields[.authorization] = nil
    }

    /// This serializer.
    public var formSerializer: HTTPRequestSerializer { self }

    /// Query or form. A method with a body gets a form even without parameters, an empty one, unless it has a body already.
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

    /// A request whose body is a form of parts: `parameters` first, then what `form` has. One without any part is left as it is.
    ///
    /// Throws ``HTTPSessionError/Code/invalidRequest`` for GET and HEAD, which have no body.
    public func multipartRequest(
        _ request: TransferRequest, parameters: Parameters? = nil, form: MultipartForm
    ) throws(HTTPSessionError) -> TransferRequest {
        guard !["GET", "HEAD"].contains(request.method.rawValue.uppercased()) else {
            throw HTTPSessionError(.invalidRequest, "\(request.method) carries no form", context: .init(of: request))
        }
        var whole = form
        whole.removeParts()
        if let parameters { try whole.appendParameters(parameters) }
        whole.append(partsOf: form)
        var request = applyingDefaults(to: request)
        try request.validate()
        guard !whole.isEmpty else { return request }
        request.body = .multipart(whole)
        request.headerFields[.contentType] = whole.contentType
        return request
    }

    /// Whether this method's parameters belong into the query.
    package func encodesParametersInURI(_ method: HTTPRequest.Method) -> Bool {
        HTTPRequest.Method(method.rawValue.uppercased()).map(httpMethodsEncodingParametersInURI.contains) ?? false
    }

    /// `request` with the fields and options that it does not have.
    package func applyingDefaults(to request: TransferRequest) -> TransferRequest {
        var request = request
        for name in Set(headerFields.map(\.name)) where !request.headerFields.contains(name) {
            request.headerFields[fields: name] = headerFields[fields: name]
        }
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
    /// Whether a serializer is to write the body. A body that is there stays, and no parameters fit beside it.
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
