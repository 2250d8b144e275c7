import HTTPTypes

/// Puts parameters into a request: where they go, in which form, and which fields say so.
public protocol RequestSerializer: Sendable {
    /// `request` with `parameters` and this serializer's fields. A field that `request` already has stays as it is.
    ///
    /// May throw any error; callers of ``serialize(_:parameters:)`` see it beneath an ``HTTPSessionError``.
    func encode(_ parameters: Parameters?, into request: TransferRequest) throws -> TransferRequest

    /// The serializer of multipart forms, which gives them fields and options; by default one with the library's fields.
    var formSerializer: HTTPRequestSerializer { get }
}

extension RequestSerializer {
    /// A serializer with the library's fields.
    public var formSerializer: HTTPRequestSerializer { HTTPRequestSerializer() }
}

extension RequestSerializer {
    /// The request to send, checked: an address that can be asked, no field of HTTP's framing.
    ///
    /// Throws ``HTTPSessionError/Code/invalidRequest`` for a request that must not be sent, and
    /// ``HTTPSessionError/Code/cannotEncodeRequest`` for parameters that the serializer cannot write, with its error below.
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
