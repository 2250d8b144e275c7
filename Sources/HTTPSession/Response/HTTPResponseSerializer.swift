public import FoundationEssentials

/// The body as it is, once the response has been checked.
public struct HTTPResponseSerializer: ResponseSerializer {
    /// What a response must be.
    public var validation: ResponseValidation

    /// Any type, status 200 to 299, unless told otherwise.
    public init(validation: ResponseValidation = ResponseValidation()) {
        self.validation = validation
    }

    /// The body.
    public func decode(_ response: TransferResponse) -> sending Data { response.data }
}
