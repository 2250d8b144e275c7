public import Foundation
public import HTTPSession
import HTTPTypes

/// Parameters as a property list; for methods without a body in the query, as `HTTPRequestSerializer` does it.
public struct PropertyListRequestSerializer: RequestSerializer {
    /// The fields, the methods and the options of every request.
    public var base: HTTPRequestSerializer
    /// XML or binary; nothing writes the OpenStep format.
    public var format: PropertyListSerialization.PropertyListFormat

    /// A serializer of property lists over the rules of `base`.
    public init(
        base: HTTPRequestSerializer = HTTPRequestSerializer(), format: PropertyListSerialization.PropertyListFormat = .xml
    ) {
        self.base = base
        self.format = format
    }

    /// The serializer below.
    public var formSerializer: HTTPRequestSerializer { base }

    /// Without parameters there is neither body nor `Content-Type`.
    ///
    /// Throws `HTTPSessionError.Code.cannotEncodeRequest` for what a property list cannot say: null and sets.
    public func encode(_ parameters: Parameters?, into request: TransferRequest) throws -> TransferRequest {
        guard !base.encodesParametersInURI(request.method) else { return try base.encode(parameters, into: request) }
        var request = base.applyingDefaults(to: request)
        guard let parameters, try request.takesBody(from: parameters) else { return request }
        try parameters.requireWritable()
        guard format != .openStep, let object = parameters.propertyList else {
            throw HTTPSessionError(.cannotEncodeRequest, "the parameters are not a valid property list")
        }
        request.body = .data(try PropertyListSerialization.data(fromPropertyList: object, format: format, options: 0))
        request.headerFields.setDefault("application/x-plist", for: .contentType)
        return request
    }
}
