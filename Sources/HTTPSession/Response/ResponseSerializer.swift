public import FoundationEssentials
import HTTPTypes

/// A type that validates a response and decodes a value from it.
///
/// The value need not be `Sendable`, as `XMLDocument` is not: it is sent to the caller (`sending`).
public protocol ResponseSerializer<Value>: Sendable {
    /// The type of the decoded value.
    associatedtype Value

    /// The checks before the response is decoded; status 200 to 299 and any content type by default.
    var validation: ResponseValidation { get }

    /// Decodes the value without checks of the status and the type.
    ///
    /// Call it directly to decode an error page, for example from ``HTTPSessionError/Context/responseBody``.
    ///
    /// - Throws: Any error. ``serialize(_:)`` throws it as the underlying error of an ``HTTPSessionError``.
    func decode(_ response: TransferResponse) throws -> sending Value
}

extension ResponseSerializer {
    /// The default validation: status 200 to 299 and any content type.
    public var validation: ResponseValidation { ResponseValidation() }

    /// Validates the response and decodes it.
    ///
    /// - Throws: the errors of ``ResponseValidation/validate(_:)``, and ``HTTPSessionError/Code/cannotDecodeContent`` with the decoder's error as
    ///   ``HTTPSessionError/underlying`` and the body as ``HTTPSessionError/Context/responseBody``.
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

    /// Returns a serializer whose value is this one's value, transformed by a closure.
    public func map<NewValue>(
        _ transform: @escaping @Sendable (sending Value) throws -> sending NewValue
    ) -> MappedResponseSerializer<Self, NewValue> {
        MappedResponseSerializer(base: self, transform: transform)
    }
}

/// The serializer of ``ResponseSerializer/map(_:)``.
public struct MappedResponseSerializer<Base: ResponseSerializer, Value>: ResponseSerializer {
    private let base: Base
    private let transform: @Sendable (sending Base.Value) throws -> sending Value

    init(base: Base, transform: @escaping @Sendable (sending Base.Value) throws -> sending Value) {
        self.base = base
        self.transform = transform
    }

    /// The validation of the original serializer.
    public var validation: ResponseValidation { base.validation }

    /// Decodes the response with the original serializer and transforms the value.
    ///
    /// - Throws: The error of the original serializer or of the closure.
    public func decode(_ response: TransferResponse) throws -> sending Value {
        try transform(base.decode(response))
    }
}

/// A serializer that checks the response and returns the bytes of its body.
public struct HTTPResponseSerializer: ResponseSerializer {
    /// The checks before the body is returned.
    public var validation: ResponseValidation

    /// Creates a serializer. By default it accepts status 200 to 299 and any content type.
    public init(validation: ResponseValidation = ResponseValidation()) {
        self.validation = validation
    }

    /// The bytes of the body.
    public func decode(_ response: TransferResponse) -> sending Data { response.data }
}
