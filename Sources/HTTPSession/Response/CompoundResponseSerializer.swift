/// A serializer that returns the value of the first of several serializers that succeeds.
///
/// Map serializers with different values to one type with ``ResponseSerializer/map(_:)``.
public struct CompoundResponseSerializer<Value>: ResponseSerializer {
    /// The checks before the first serializer; each serializer then applies its own validation as well.
    public var validation: ResponseValidation
    /// The serializers, in the order in which they are tried.
    public var serializers: [any ResponseSerializer<Value>]

    /// Creates a serializer of others, in the order in which they are tried. By default it accepts status 200 to 299 and any type.
    public init(_ serializers: [any ResponseSerializer<Value>], validation: ResponseValidation = ResponseValidation()) {
        self.serializers = serializers
        self.validation = validation
    }

    /// Decodes the response with each serializer until one succeeds.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotDecodeContent`` if none succeeds, with the last one's error as ``HTTPSessionError/underlying``.
    public func decode(_ response: TransferResponse) throws -> sending Value {
        var last: HTTPSessionError?
        for serializer in serializers {
            do throws(HTTPSessionError) {
                return try serializer.serialize(response)
            } catch {
                last = error
            }
        }
        throw HTTPSessionError(
            .cannotDecodeContent, "none of \(serializers.count) serializers decodes the response", underlying: last)
    }
}
