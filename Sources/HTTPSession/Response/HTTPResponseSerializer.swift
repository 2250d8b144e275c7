public import FoundationEssentials

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
