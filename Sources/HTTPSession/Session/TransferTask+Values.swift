public import FoundationEssentials

/// Values of a response that has passed the session's ``HTTPSessionManager/validation``: a status outside of 200 to 299 is an error by default.
///
/// The body of a download is read from its file, up to ``SessionConfiguration/maximumResponseSize``; a larger one is
/// ``HTTPSessionError/Code/responseTooLarge``, and ``file()`` returns it. For a stream these methods throw ``HTTPSessionError/Code/misuse`` at once:
/// ``chunks`` has its body.
extension TransferTask {
    /// Returns the body of the response.
    ///
    /// - Throws: The task's error, or an error of the validation such as ``HTTPSessionError/Code/unacceptableStatus``.
    public func data() async throws(HTTPSessionError) -> Data {
        let response = try await bodyResponse
        // Most sessions validate the status alone; then the header fields need not be parsed.
        if response.file == nil, validation.checksStatusOnly,
            validation.acceptableStatusCodes?.contains(response.statusCode) ?? true
        {
            return response.data
        }
        return try await serialized(response, by: HTTPResponseSerializer(validation: validation))
    }

    /// Returns the body as text, in the charset of `Content-Type`, or in UTF-8 if the field has no charset.
    ///
    /// - Throws: The task's error, an error of the validation such as ``HTTPSessionError/Code/unacceptableStatus``, or
    ///   ``HTTPSessionError/Code/cannotDecodeContent``.
    public func string() async throws(HTTPSessionError) -> String {
        try await serialized(by: StringResponseSerializer(validation: validation))
    }

    /// Returns the body as JSON; `nil` for an empty body.
    ///
    /// - Throws: The task's error, an error of the validation such as ``HTTPSessionError/Code/unacceptableStatus``, or
    ///   ``HTTPSessionError/Code/cannotDecodeContent``.
    public func json() async throws(HTTPSessionError) -> JSONValue? {
        var serializer = JSONResponseSerializer()
        serializer.validation = validation
        return try await serialized(by: serializer)
    }

    /// Decodes the body.
    ///
    /// ```swift
    /// let user = try await session.get("users/7").decode(as: User.self)
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type of the value; may be omitted if the context determines it.
    ///   - decoder: The decoder; a `JSONDecoder` by default.
    /// - Returns: The value.
    /// - Throws: The task's error, an error of the validation such as ``HTTPSessionError/Code/unacceptableStatus``, or
    ///   ``HTTPSessionError/Code/cannotDecodeContent``.
    public func decode<Value: Decodable & SendableMetatype>(
        as type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) async throws(HTTPSessionError) -> sending Value {
        try await serialized(by: DecodableResponseSerializer<Value>(decoder: decoder, validation: validation))
    }

    /// Returns the value that the serializer makes of the response, after the serializer's own validation.
    ///
    /// - Throws: The task's error, or an error of ``ResponseSerializer/serialize(_:)``.
    public func serialized<Serializer: ResponseSerializer>(
        by serializer: Serializer
    ) async throws(HTTPSessionError) -> sending Serializer.Value {
        try await serialized(bodyResponse, by: serializer)
    }

    /// The response of a task whose body is kept. For a stream it throws at once.
    private var bodyResponse: TransferResponse {
        get async throws(HTTPSessionError) {
            try refuseStream()
            return try await response
        }
    }

    /// Throws an error for a stream, whose body is not kept.
    func refuseStream() throws(HTTPSessionError) {
        guard chunkBuffer == nil else {
            throw HTTPSessionError(.misuse, "a stream has no body in memory; read its chunks", context: context)
        }
    }

    /// Returns the file of a download task when it is complete.
    ///
    /// - Throws: The task's error, or ``HTTPSessionError/Code/misuse`` for a task of another kind.
    @discardableResult
    public func file() async throws(HTTPSessionError) -> URL {
        guard let file = try await response.file else {
            throw HTTPSessionError(.misuse, "only a download has a file", context: context)
        }
        return file
    }
}

extension ResponseValidation {
    var checksStatusOnly: Bool { acceptableContentTypes == nil && checks.isEmpty }
}
