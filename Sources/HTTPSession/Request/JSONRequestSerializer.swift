public import Foundation
import HTTPTypes

/// Parameters as a JSON body (RFC 8259); for methods without a body in the query, as ``HTTPRequestSerializer`` does it.
public struct JSONRequestSerializer: RequestSerializer {
    /// The fields, the methods and the options of every request.
    public var base: HTTPRequestSerializer
    /// How the text looks. With `fragmentsAllowed` a single string or number is a body too.
    public var writingOptions: JSONSerialization.WritingOptions

    /// A serializer of JSON over the rules of `base`.
    public init(base: HTTPRequestSerializer, writingOptions: JSONSerialization.WritingOptions = []) {
        self.base = base
        self.writingOptions = writingOptions
    }

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
        // Foundation's writer traps on what it cannot write, so nothing that it cannot write may reach it.
        guard let object = parameters.foundationObject(for: .json),
            writingOptions.contains(.fragmentsAllowed) || JSONSerialization.isValidJSONObject(object)
        else {
            throw HTTPSessionError(.cannotEncodeRequest, "the parameters are not valid JSON")
        }
        return try JSONSerialization.data(withJSONObject: object, options: writingOptions)
    }
}
