public import FoundationEssentials
public import HTTPTypes
internal import Wire

/// A decoder of bytes. `JSONDecoder` conforms, and with HTTPSessionFoundation `PropertyListDecoder`.
public protocol DataDecoder: Sendable {
    /// Decodes a value of the type from the data.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value

    /// Throws if `data` must not be decoded. It is called before ``decode(_:from:)`` and does nothing by default.
    func check(_ data: Data) throws
}

extension DataDecoder {
    /// Accepts any data.
    public func check(_ data: Data) throws {}
}

extension JSONDecoder: DataDecoder {}

/// A type with a value for a response without a body.
public protocol EmptyResponse: SendableMetatype {
    /// The value of a response without a body.
    static func emptyValue() -> Self
}

/// The value of a response whose body the caller does not need.
public struct Empty: EmptyResponse, Codable, Hashable, Sendable {
    /// Creates the value, which has no properties.
    public init() {}

    /// The value, which has no properties.
    public static func emptyValue() -> Empty { Empty() }
}

extension Optional: EmptyResponse {
    /// The value of a response without a body: `nil`.
    public static func emptyValue() -> Wrapped? { nil }
}

/// A serializer that decodes the body as `Value`.
///
/// A response without a body is an error, unless its status or method permits that and `Value` conforms to ``EmptyResponse``, as every optional
/// does.
public struct DecodableResponseSerializer<Value: Decodable & SendableMetatype>: ResponseSerializer {
    /// The checks before the body is decoded.
    public var validation: ResponseValidation
    /// The decoder of the body.
    public var decoder: any DataDecoder
    /// The statuses of responses that may have no body; 204 and 205 by default.
    public var emptyStatusCodes: Set<Int>
    /// The methods whose responses may have no body; HEAD by default.
    public var emptyMethods: Set<HTTPRequest.Method>
    /// The transformation of the body before it is decoded.
    public var preprocessor: DataPreprocessor

    /// Creates a serializer. By default it decodes JSON, and accepts status 200 to 299 and any content type.
    public init(
        of type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder(),
        validation: ResponseValidation = ResponseValidation(), emptyStatusCodes: Set<Int> = [204, 205],
        emptyMethods: Set<HTTPRequest.Method> = [.head], preprocessor: DataPreprocessor = .passthrough
    ) {
        self.decoder = decoder
        self.validation = validation
        self.emptyStatusCodes = emptyStatusCodes
        self.emptyMethods = emptyMethods
        self.preprocessor = preprocessor
    }

    /// Decodes the body.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotDecodeContent`` with the coding path at which decoding failed, or for an empty body; and errors of the
    ///   ``preprocessor`` and of ``DataDecoder/check(_:)``.
    public func decode(_ response: TransferResponse) throws -> sending Value {
        guard !response.data.isEmpty else { return try emptyValue(response) }
        let body = try preprocessor.preprocess(response.data)
        try decoder.check(body)
        do {
            return try decoder.decode(Value.self, from: body)
        } catch {
            let place = (error as? DecodingError)?.placeInBody.map { ": \($0)" } ?? ""
            throw HTTPSessionError(.cannotDecodeContent, "the body is not of type \(Value.self)\(place)", underlying: error)
        }
    }

    private func emptyValue(_ response: TransferResponse) throws -> sending Value {
        guard emptyStatusCodes.contains(response.statusCode) || emptyMethods.contains(response.method) else {
            throw HTTPSessionError(.cannotDecodeContent, "the body is empty")
        }
        guard let type = Value.self as? any EmptyResponse.Type, let value = type.emptyValue() as? Value else {
            throw HTTPSessionError(.cannotDecodeContent, "the body is empty, and \(Value.self) has no value for an empty body")
        }
        return value
    }
}

extension DecodingError {
    /// The reason and the coding path of the error: `users[3].name is missing`. It contains names of keys, but no values.
    var placeInBody: String? {
        switch self {
        case .keyNotFound(let key, let context): "\(DecodingError.text(context.codingPath + [key])) is missing"
        case .valueNotFound(let type, let context): "\(DecodingError.text(context.codingPath)) is null and should be \(type)"
        case .typeMismatch(let type, let context): "\(DecodingError.text(context.codingPath)) is not of type \(type)"
        case .dataCorrupted(let context):
            context.codingPath.isEmpty ? nil : "\(DecodingError.text(context.codingPath)) cannot be read"
        @unknown default: nil
        }
    }

    /// The path in Swift's notation. A key comes from the body, so it is limited to 64 characters, and control characters are replaced.
    private static func text(_ path: [any CodingKey]) -> String {
        var text = ""
        for key in path {
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += (text.isEmpty ? "" : ".") + name(key)
            }
        }
        return text.isEmpty ? "the root" : text
    }

    private static func name(_ key: any CodingKey) -> String {
        String(
            String.UnicodeScalarView(
                key.stringValue.unicodeScalars.prefix(64).map { UnsafeCharacters.contain($0) ? "\u{fffd}" : $0 }))
    }
}
