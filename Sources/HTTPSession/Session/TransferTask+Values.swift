public import FoundationEssentials

/// Values made of a response that has been checked (``HTTPSessionManager/validation``): another status is an error here.
extension TransferTask {
    /// The body.
    public func data() async throws(HTTPSessionError) -> Data {
        let response = try await value
        // Most sessions ask for no more than a status: then the fields need not be read.
        if validation.checksStatusOnly, validation.acceptableStatusCodes?.contains(response.statusCode) ?? true {
            return response.data
        }
        return try await serialized(by: BodySerializer(validation: validation))
    }

    /// The body as text, by the charset that the server gives, or UTF-8.
    public func string() async throws(HTTPSessionError) -> String {
        try await serialized(by: StringResponseSerializer(validation: validation))
    }

    /// The body as JSON; `nil` for an empty one.
    public func json() async throws(HTTPSessionError) -> JSONValue? {
        var serializer = JSONResponseSerializer()
        serializer.validation = validation
        return try await serialized(by: serializer)
    }

    /// The body, decoded from JSON unless another decoder is given.
    public func decode<Value: Decodable & SendableMetatype>(
        _ type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) async throws(HTTPSessionError) -> sending Value {
        try await serialized(by: DecodableResponseSerializer<Value>(decoder: decoder, validation: validation))
    }

    /// What the serializer makes of it, checked as the serializer says.
    public func serialized<Serializer: ResponseSerializer>(
        by serializer: Serializer
    ) async throws(HTTPSessionError) -> sending Serializer.Value {
        try await serialized(value, by: serializer)
    }

    /// The file of a download, once it is there.
    @discardableResult
    public func file() async throws(HTTPSessionError) -> URL {
        guard let file = try await value.file else {
            throw HTTPSessionError(.misuse, "only a download has a file", context: context)
        }
        return file
    }
}

extension TransferResponse {
    /// As serializers see it.
    public var received: ReceivedResponse { ReceivedResponse(head: response, body: data, url: url, method: method) }
}

extension ResponseValidation {
    var checksStatusOnly: Bool { acceptableContentTypes == nil && checks.isEmpty }
}
