public import FoundationEssentials
public import HTTPTypes

/// Methods that make a task, one or more for each HTTP method.
///
/// A path is relative to ``baseURL`` (RFC 3986 section 5); an absolute URL is accepted as well. The request serializer decides where parameters
/// go. Header fields given here replace those of the serializer. If a request cannot be made, the task fails before it starts.
extension HTTPSessionManager {
    /// Requests a resource (RFC 9110 section 9.3.1).
    public func get(_ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.get, path, parameters, headerFields)
    }

    /// Requests a resource's header fields without its body (RFC 9110 section 9.3.2).
    public func head(_ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.head, path, parameters, headerFields)
    }

    /// Sends parameters to a resource (RFC 9110 section 9.3.3).
    public func post(_ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.post, path, parameters, headerFields)
    }

    /// Sends a value as JSON to a resource.
    ///
    /// ```swift
    /// let created: Order = try await session.post("orders", json: order).decode()
    /// ```
    ///
    /// The `Content-Type` is `application/json` unless `headerFields` has another one. If the value cannot be encoded, the task fails with
    /// ``HTTPSessionError/Code/cannotEncodeRequest``.
    public func post(
        _ path: String, json value: some Encodable, encoder: JSONEncoder = JSONEncoder(), headerFields: HTTPFields = [:]
    ) -> TransferTask {
        task(.post, path, json: value, encoder, headerFields)
    }

    /// Sends a multipart form, with `parameters` as its first parts.
    ///
    /// The header fields are those of the session's serializer, or of the ``HTTPRequestSerializer`` that it is based on
    /// (``RequestSerializer/formSerializer``).
    public func post(
        _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:], form: MultipartForm
    ) -> TransferTask {
        task { () throws(HTTPSessionError) in
            let request = TransferRequest(
                url: try RequestURL.resolve(path, against: baseURL), method: .post, headerFields: headerFields)
            return try requestSerializer.formSerializer.multipartRequest(request, parameters: parameters, form: form)
        }
    }

    /// Replaces a resource (RFC 9110 section 9.3.4).
    public func put(_ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.put, path, parameters, headerFields)
    }

    /// Replaces a resource by a value as JSON; see ``post(_:json:encoder:headerFields:)``.
    public func put(
        _ path: String, json value: some Encodable, encoder: JSONEncoder = JSONEncoder(), headerFields: HTTPFields = [:]
    ) -> TransferTask {
        task(.put, path, json: value, encoder, headerFields)
    }

    /// Changes a resource (RFC 5789).
    public func patch(_ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.patch, path, parameters, headerFields)
    }

    /// Changes a resource by a value as JSON; see ``post(_:json:encoder:headerFields:)``.
    public func patch(
        _ path: String, json value: some Encodable, encoder: JSONEncoder = JSONEncoder(), headerFields: HTTPFields = [:]
    ) -> TransferTask {
        task(.patch, path, json: value, encoder, headerFields)
    }

    /// Removes a resource (RFC 9110 section 9.3.5).
    public func delete(_ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.delete, path, parameters, headerFields)
    }

    /// Sends a body unchanged.
    ///
    /// - Parameters:
    ///   - path: The path or URL.
    ///   - body: The body.
    ///   - method: The method; POST by default.
    ///   - headerFields: Header fields of this request.
    /// - Returns: The task.
    public func upload(
        _ path: String, from body: RequestBody, method: HTTPRequest.Method = .post, headerFields: HTTPFields = [:]
    ) -> TransferTask {
        task { () throws(HTTPSessionError) in
            let url = try RequestURL.resolve(path, against: baseURL)
            return try requestSerializer.serialize(
                TransferRequest(url: url, method: method, headerFields: headerFields, body: body))
        }
    }

    /// Downloads a resource to a file that must not exist. ``downloadTask(for:to:handlers:startsImmediately:)-(_,DownloadDestination,_,_)`` accepts other rules for
    /// existing files.
    public func download(_ path: String, to file: URL, headerFields: HTTPFields = [:]) -> TransferTask {
        let place = DownloadDestination(file)
        do throws(HTTPSessionError) {
            return downloadTask(for: try request(.get, path, headerFields: headerFields), to: place)
        } catch {
            return failedTask(.download, .file(place), error)
        }
    }

    /// Reads a resource in chunks as they arrive (``TransferTask/chunks``).
    public func stream(_ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        do throws(HTTPSessionError) {
            return streamTask(for: try request(.get, path, parameters: parameters, headerFields: headerFields))
        } catch {
            return failedTask(.stream, .reader(ChunkBuffer {}), error)
        }
    }

    /// Returns the request that the methods above send, so that a caller can change it first.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` or ``HTTPSessionError/Code/cannotEncodeRequest``.
    public func request(
        _ method: HTTPRequest.Method, _ path: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]
    ) throws(HTTPSessionError) -> TransferRequest {
        let url = try RequestURL.resolve(path, against: baseURL)
        return try requestSerializer.serialize(
            TransferRequest(url: url, method: method, headerFields: headerFields), parameters: parameters)
    }

    private func task(
        _ method: HTTPRequest.Method, _ path: String, _ parameters: Parameters?, _ headerFields: HTTPFields
    ) -> TransferTask {
        task { () throws(HTTPSessionError) in
            try request(method, path, parameters: parameters, headerFields: headerFields)
        }
    }

    private func task(
        _ method: HTTPRequest.Method, _ path: String, json value: some Encodable, _ encoder: JSONEncoder,
        _ headerFields: HTTPFields
    ) -> TransferTask {
        task { () throws(HTTPSessionError) in
            var request = TransferRequest(
                url: try RequestURL.resolve(path, against: baseURL), method: method, headerFields: headerFields)
            do { request.body = .data(try encoder.encode(value)) } catch {
                throw HTTPSessionError(
                    .cannotEncodeRequest, "the value cannot be encoded as JSON", context: .init(of: request), underlying: error)
            }
            if headerFields[.contentType] == nil { request.headerFields[.contentType] = "application/json" }
            return try requestSerializer.serialize(request)
        }
    }

    private func task(_ build: () throws(HTTPSessionError) -> TransferRequest) -> TransferTask {
        do throws(HTTPSessionError) {
            return dataTask(for: try build())
        } catch {
            return failedTask(.data, .memory(maximumSize: 0), error)
        }
    }
}

/// Values of one call, as of `URLSession`.
extension HTTPSessionManager {
    /// Sends a request, and returns the body and the response.
    ///
    /// ```swift
    /// let (data, response) = try await session.data(for: TransferRequest(url: url))
    /// ```
    ///
    /// As in URLSession, a response of any status is returned. ``TransferTask/data()`` and ``TransferTask/decode(as:decoder:)`` of
    /// ``dataTask(for:handlers:startsImmediately:)`` validate the status. Canceling the Swift task cancels the transfer.
    ///
    /// - Parameter request: The request.
    /// - Returns: The body, which is also ``TransferResponse/data`` of the response, and the response.
    /// - Throws: The task's error, such as ``HTTPSessionError/Code/cannotConnectToHost``.
    public func data(for request: TransferRequest) async throws(HTTPSessionError) -> (Data, TransferResponse) {
        let response = try await dataTask(for: request).response
        return (response.data, response)
    }
}
