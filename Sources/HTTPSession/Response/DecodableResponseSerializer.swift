public import FoundationEssentials
public import HTTPTypes

/// Makes values of bytes. `JSONDecoder` is a decoder, and with HTTPSessionFoundation `PropertyListDecoder`.
public protocol DataDecoder: Sendable {
    /// A value of the type that the caller wants.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value

    /// Throws if `data` is not to be decoded. Called before ``decode(_:from:)``; does nothing by default.
    func check(_ data: Data) throws
}

extension DataDecoder {
    /// Accepts any data.
    public func check(_ data: Data) throws {}
}

extension JSONDecoder: DataDecoder {}

/// A type that has a value for a response without a body.
public protocol EmptyResponse: SendableMetatype {
    /// What such a response means.
    static func emptyValue() -> Self
}

/// The value of a response from which nothing but success is wanted.
public struct Empty: EmptyResponse, Codable, Hashable, Sendable {
    /// Nothing.
    public init() {}

    /// Nothing.
    public static func emptyValue() -> Empty { Empty() }
}

extension Optional: EmptyResponse {
    /// `nil`.
    public static func emptyValue() -> Wrapped? { nil }
}

/// The body decoded as `Value`.
///
/// A response without a body is an error, unless its status or method says that it has none and `Value` has a value for that
/// (``EmptyResponse``; every optional has one).
public struct DecodableResponseSerializer<Value: Decodable & SendableMetatype>: ResponseSerializer {
    /// What a response must be.
    public var validation: ResponseValidation
    /// What reads the body.
    public var decoder: any DataDecoder
    /// The statuses of responses without a body.
    public var emptyStatusCodes: Set<Int>
    /// The methods whose responses have no body.
    public var emptyMethods: Set<HTTPRequest.Method>
    /// A change to the body before it is read.
    public var preprocessor: DataPreprocessor

    /// A JSON body of any type and status 200 to 299, empty at 204, 205 and HEAD, unless told otherwise.
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

    /// The body's value.
    public func decode(_ response: TransferResponse) throws -> sending Value {
        guard !response.data.isEmpty else { return try emptyValue(response) }
        let body = try preprocessor.preprocess(response.data)
        try decoder.check(body)
        do {
            return try decoder.decode(Value.self, from: body)
        } catch {
            let place = (error as? DecodingError)?.placeInBody.map { ": \($0)" } ?? ""
            throw HTTPSessionError(.cannotDecodeContent, "the body is no \(Value.self)\(place)", underlying: error)
        }
    }

    private func emptyValue(_ response: TransferResponse) throws -> sending Value {
        guard emptyStatusCodes.contains(response.statusCode) || emptyMethods.contains(response.method) else {
            throw HTTPSessionError(.cannotDecodeContent, "the body is empty")
        }
        guard let type = Value.self as? any EmptyResponse.Type, let value = type.emptyValue() as? Value else {
            throw HTTPSessionError(.cannotDecodeContent, "the body is empty, and \(Value.self) has no value for that")
        }
        return value
    }
}

extension DecodingError {
    /// What failed and at which coding path: `users[3].name is missing`. Names of keys appear in it, values never do.
    var placeInBody: String? {
        switch self {
        case .keyNotFound(let key, let context): "\(DecodingError.text(context.codingPath + [key])) is missing"
        case .valueNotFound(let type, let context): "\(DecodingError.text(context.codingPath)) is null and should be \(type)"
        case .typeMismatch(let type, let context): "\(DecodingError.text(context.codingPath)) is no \(type)"
        case .dataCorrupted(let context):
            context.codingPath.isEmpty ? nil : "\(DecodingError.text(context.codingPath)) cannot be read"
        @unknown default: nil
        }
    }

    /// The path as Swift writes it; of a key from a body, 64 characters at most and no control characters.
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
                key.stringValue.unicodeScalars.prefix(64).map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .format, .lineSeparator, .paragraphSeparator: "\u{fffd}"
                    default: scalar
                    }
                }))
    }
}
