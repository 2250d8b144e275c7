public import FoundationEssentials
import HTTPTypes

/// A serializer that writes parameters as a JSON body (RFC 8259). For methods without a body, it writes them into the query, like
/// ``HTTPRequestSerializer``.
public struct JSONRequestSerializer: RequestSerializer {
    /// The serializer of header fields, options and queries.
    public var base: HTTPRequestSerializer
    /// The format of the JSON text.
    public var outputFormatting: JSONEncoder.OutputFormatting
    /// Whether a string, number, truth value or null may be the body; `false` by default.
    public var allowsFragments: Bool

    /// Creates a serializer of JSON that is based on `base`.
    public init(
        base: HTTPRequestSerializer = HTTPRequestSerializer(), outputFormatting: JSONEncoder.OutputFormatting = [],
        allowsFragments: Bool = false
    ) {
        self.base = base
        self.outputFormatting = outputFormatting
        self.allowsFragments = allowsFragments
    }

    /// The serializer of forms, which is ``base``.
    public var formSerializer: HTTPRequestSerializer { base }

    /// Writes parameters as JSON. Without parameters the request gets neither a body nor a `Content-Type`.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotEncodeRequest`` for values that JSON does not have: sets, data, dates, numbers that are not finite.
    public func encode(_ parameters: Parameters?, into request: TransferRequest) throws -> TransferRequest {
        guard !base.encodesParametersInURI(request.method) else { return try base.encode(parameters, into: request) }
        var request = base.applyingDefaults(to: request)
        guard let parameters, try request.takesBody(from: parameters) else { return request }
        request.body = .data(try json(parameters))
        request.headerFields.setDefault("application/json", for: .contentType)
        return request
    }

    private func json(_ parameters: Parameters) throws -> Data {
        try parameters.requireWritable()
        guard allowsFragments || parameters.isContainer else { throw Self.invalid }
        let encoder = JSONEncoder()
        encoder.outputFormatting = outputFormatting
        do { return try encoder.encode(JSONText(parameters: parameters)) } catch { throw Self.invalid }
    }

    /// An error without that of the encoder, which contains the parameters: they may be secrets.
    private static var invalid: HTTPSessionError {
        HTTPSessionError(.cannotEncodeRequest, "the parameters are not valid JSON")
    }

    /// Parameters for a `JSONEncoder`, which refuses numbers that are not finite.
    private struct JSONText: Encodable {
        let parameters: Parameters

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch parameters {
            case .null: try container.encodeNil()
            case .bool(let value): try container.encode(value)
            case .integer(let value): try container.encode(value)
            case .unsigned(let value): try container.encode(value)
            case .number(let value): try container.encode(value)
            case .string(let value): try container.encode(value)
            case .array(let elements): try container.encode(elements.map(JSONText.init))
            case .dictionary(let pairs): try container.encode(pairs.mapValues(JSONText.init))
            case .data, .date, .set:
                throw EncodingError.invalidValue(
                    parameters,
                    .init(codingPath: encoder.codingPath, debugDescription: "JSON has neither sets nor data nor dates"))
            }
        }
    }
}

extension Parameters {
    fileprivate var isContainer: Bool {
        switch self {
        case .array, .dictionary, .set: true
        default: false
        }
    }
}
