import HTTPTypes

/// Makes a value of a response: checks it, then decodes it.
///
/// The value need not be `Sendable`: it is handed over whole, as an `XMLDocument` is.
public protocol ResponseSerializer<Value>: Sendable {
    /// What it makes.
    associatedtype Value

    /// What a response must be before it is decoded. 200 to 299 and any type unless the serializer says otherwise.
    var validation: ResponseValidation { get }

    /// The value, whatever the status and the type are.
    ///
    /// May throw any error; callers of ``serialize(_:)`` see it beneath an ``HTTPSessionError``. After an unacceptable status it makes
    /// the error page's value, as from ``HTTPSessionError/Context/responseBody``.
    func decode(_ response: TransferResponse) throws -> sending Value
}

extension ResponseSerializer {
    /// 200 to 299, any type.
    public var validation: ResponseValidation { ResponseValidation() }

    /// Checks the response and decodes it.
    ///
    /// Throws as ``ResponseValidation/validate(_:)`` does, and ``HTTPSessionError/Code/cannotDecodeContent`` with the decoder's error
    /// below and the body beside it.
    public func serialize(_ response: TransferResponse) throws(HTTPSessionError) -> sending Value {
        try validation.validate(response)
        do {
            return try decode(response)
        } catch var error as HTTPSessionError {
            error.context.url = error.context.url ?? response.url.withoutSecrets
            error.context.method = error.context.method ?? response.method.rawValue
            error.context.statusCode = error.context.statusCode ?? response.statusCode
            error.context.responseBody = error.context.responseBody ?? response.errorContext(keepingBody: true).responseBody
            throw error
        } catch {
            throw HTTPSessionError(
                .cannotDecodeContent, "the response's serializer failed", context: response.errorContext(keepingBody: true),
                underlying: error)
        }
    }

    /// A serializer of what `transform` makes of this one's value.
    public func map<NewValue>(
        _ transform: @escaping @Sendable (sending Value) throws -> sending NewValue
    ) -> MappedResponseSerializer<Self, NewValue> {
        MappedResponseSerializer(base: self, transform: transform)
    }
}

/// A serializer with a last step (``ResponseSerializer/map(_:)``).
public struct MappedResponseSerializer<Base: ResponseSerializer, Value>: ResponseSerializer {
    private let base: Base
    private let transform: @Sendable (sending Base.Value) throws -> sending Value

    init(base: Base, transform: @escaping @Sendable (sending Base.Value) throws -> sending Value) {
        self.base = base
        self.transform = transform
    }

    /// That of the serializer below.
    public var validation: ResponseValidation { base.validation }

    /// The transformed value.
    public func decode(_ response: TransferResponse) throws -> sending Value {
        try transform(base.decode(response))
    }
}
