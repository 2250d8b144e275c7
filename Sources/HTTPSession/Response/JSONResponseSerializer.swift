package import FoundationEssentials

/// A serializer that parses a JSON body; its value is `nil` if the body is empty or a single space.
public struct JSONResponseSerializer: ResponseSerializer {
    /// The checks before the body is parsed; status 200 to 299 and the ``contentTypes`` by default.
    public var validation: ResponseValidation
    /// Whether null members of objects and null elements of arrays are removed, at every depth; `false` by default.
    public var removesKeysWithNullValues: Bool
    /// The transformation of the body before it is parsed.
    public var preprocessor: DataPreprocessor

    /// The media types that servers use for JSON.
    public static let contentTypes: Set<String> = ["application/json", "text/json", "text/javascript"]

    /// Creates a serializer. By default it accepts status 200 to 299 and the ``contentTypes``, and keeps null values.
    public init(
        validation: ResponseValidation = ResponseValidation(acceptableContentTypes: contentTypes),
        removesKeysWithNullValues: Bool = false, preprocessor: DataPreprocessor = .passthrough
    ) {
        self.validation = validation
        self.removesKeysWithNullValues = removesKeysWithNullValues
        self.preprocessor = preprocessor
    }

    /// Parses the body.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotDecodeContent`` with the position for a body that is not JSON, and errors of the ``preprocessor``.
    public func decode(_ response: TransferResponse) throws -> sending JSONValue? {
        let body = try preprocessor.preprocess(response.data)
        guard !body.isBlankJSON else { return nil }
        let value = try JSONValue(parsing: body)
        return removesKeysWithNullValues ? value.removingNullValues : value
    }
}

extension Data {
    /// Whether the body is empty or a single space, which Rails sends for `head :ok`.
    package var isBlankJSON: Bool { isEmpty || elementsEqual([UInt8(ascii: " ")]) }
}
