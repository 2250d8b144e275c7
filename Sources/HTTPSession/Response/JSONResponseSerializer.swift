package import FoundationEssentials

/// The value of a JSON body, safe to share; `nil` for a body that is empty or a single space.
public struct JSONResponseSerializer: ResponseSerializer {
    /// What a response must be; by default ``contentTypes``.
    public var validation: ResponseValidation
    /// Whether members and elements that are null are left out, all the way down.
    public var removesKeysWithNullValues: Bool
    /// A change to the body before it is read.
    public var preprocessor: DataPreprocessor

    /// What servers call JSON.
    public static let contentTypes: Set<String> = ["application/json", "text/json", "text/javascript"]

    /// JSON of status 200 to 299, as it is, unless told otherwise.
    public init(
        validation: ResponseValidation = ResponseValidation(acceptableContentTypes: contentTypes),
        removesKeysWithNullValues: Bool = false, preprocessor: DataPreprocessor = .passthrough
    ) {
        self.validation = validation
        self.removesKeysWithNullValues = removesKeysWithNullValues
        self.preprocessor = preprocessor
    }

    /// The body's value.
    public func decode(_ response: TransferResponse) throws -> sending JSONValue? {
        let body = try preprocessor.preprocess(response.data)
        guard !body.isBlankJSON else { return nil }
        let value = try JSONValue(parsing: body)
        return removesKeysWithNullValues ? value.removingNullValues : value
    }
}

extension Data {
    /// Rails answers `head :ok` with a single space.
    package var isBlankJSON: Bool { isEmpty || elementsEqual([UInt8(ascii: " ")]) }
}
