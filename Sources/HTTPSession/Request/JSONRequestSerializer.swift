public import FoundationEssentials
import HTTPTypes

/// Parameters as a JSON body (RFC 8259); for methods without a body in the query, as ``HTTPRequestSerializer`` does it.
public struct JSONRequestSerializer: RequestSerializer {
    /// The fields, the methods and the options of every request.
    public var base: HTTPRequestSerializer
    /// How the text looks.
    public var outputFormatting: JSONEncoder.OutputFormatting
    /// Whether a single string, number, truth value or null is a body too.
    public var allowsFragments: Bool

    /// A serializer of JSON over the rules of `base`.
    public init(
        base: HTTPRequestSerializer = HTTPRequestSerializer(), outputFormatting: JSONEncoder.OutputFormatting = [],
        allowsFragments: Bool = false
    ) {
        self.base = base
        self.outputFormatting = outputFormatting
        self.allowsFragments = allowsFragments
    }

    /// The serializer below.
    public var formSerializer: HTTPRequestSerializer { base }

    /// Without parameters there is neither body nor `Content-Type`.
    ///
    /// Throws ``HTTPSessionError/Code/cannotEncodeRequest`` for what JSON cannot say: sets, data, dates, numbers that are not finite.
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

    /// Without the encoder's error, which has the parameters in it: they may be secrets.
    private static var invalid: HTTPSessionError {
        HTTPSessionError(.cannotEncodeRequest, "the parameters are not valid JSON")
    }

    /// Parameters for a `JSONEncoder`, which itself refuses numbers that are not finite.
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
