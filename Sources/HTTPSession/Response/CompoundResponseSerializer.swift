/// Several serializers of the same value: the first that takes the response makes it.
///
/// Serializers of different types are brought to one by ``ResponseSerializer/map(_:)``.
public struct CompoundResponseSerializer<Value>: ResponseSerializer {
    /// What a response must be before any serializer is asked; each then applies its own as well.
    public var validation: ResponseValidation
    /// In the order in which they are asked.
    public var serializers: [any ResponseSerializer<Value>]

    /// Serializers in the order in which they are asked; status 200 to 299 unless told otherwise.
    public init(_ serializers: [any ResponseSerializer<Value>], validation: ResponseValidation = ResponseValidation()) {
        self.serializers = serializers
        self.validation = validation
    }

    /// The value of the first serializer that succeeds. Where none does, the last one's error stands below.
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
            .cannotDecodeContent, "none of \(serializers.count) serializers takes the response", underlying: last)
    }
}
