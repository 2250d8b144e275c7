import HTTPTypes

/// A serializer that writes parameters into a request and adds header fields.
public protocol RequestSerializer: Sendable {
    /// Returns the request with the parameters and the header fields of this serializer. Header fields of `request` are not replaced.
    ///
    /// - Throws: Any error. ``serialize(_:parameters:)`` throws it as the underlying error of an ``HTTPSessionError``.
    func encode(_ parameters: Parameters?, into request: TransferRequest) throws -> TransferRequest

    /// The serializer that adds header fields and options to multipart forms; by default one with the library's header fields.
    var formSerializer: HTTPRequestSerializer { get }
}

extension RequestSerializer {
    /// A serializer with the library's header fields.
    public var formSerializer: HTTPRequestSerializer { HTTPRequestSerializer() }
}

extension RequestSerializer {
    /// Returns the request to send, after validation of its URL and header fields.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` for a request that must not be sent, and ``HTTPSessionError/Code/cannotEncodeRequest`` for
    ///   parameters that the serializer cannot write, with its error as the underlying one.
    public func serialize(
        _ request: TransferRequest, parameters: Parameters? = nil
    ) throws(HTTPSessionError) -> TransferRequest {
        try request.validate()
        let serialized: TransferRequest
        do {
            serialized = try encode(parameters, into: request)
        } catch var error as HTTPSessionError {
            error.context.url = error.context.url ?? request.url.withoutSecrets
            error.context.method = error.context.method ?? request.method.rawValue
            throw error
        } catch {
            throw HTTPSessionError(
                .cannotEncodeRequest, "the request's serializer failed", context: .init(of: request), underlying: error)
        }
        try serialized.validate()
        return serialized
    }
}
