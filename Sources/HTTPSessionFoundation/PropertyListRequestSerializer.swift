public import Foundation
public import HTTPSession
import HTTPTypes

/// A serializer that encodes parameters as a property list. For methods without a body it adds them to the query, as
/// `HTTPRequestSerializer` does.
public struct PropertyListRequestSerializer: RequestSerializer {
    /// The serializer that supplies the fields, methods and options of every request.
    public var base: HTTPRequestSerializer
    /// The format: XML (the default) or binary. The OpenStep format is not supported.
    public var format: PropertyListSerialization.PropertyListFormat

    /// Creates a serializer that follows the rules of `base`.
    public init(
        base: HTTPRequestSerializer = HTTPRequestSerializer(), format: PropertyListSerialization.PropertyListFormat = .xml
    ) {
        self.base = base
        self.format = format
    }

    /// The serializer for parameters in the query: ``base``.
    public var formSerializer: HTTPRequestSerializer { base }

    /// Encodes the parameters into the request. Without parameters it sets neither a body nor `Content-Type`.
    ///
    /// - Throws: `HTTPSessionError.Code.cannotEncodeRequest` for null and sets, which a property list cannot hold.
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
