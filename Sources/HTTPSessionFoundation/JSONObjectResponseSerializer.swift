public import Foundation
public import HTTPSession

/// A serializer that decodes a JSON body with `JSONSerialization`, for code that works with dictionaries of `Any`. The value is
/// `nil` if the body is empty or a single space.
public struct JSONObjectResponseSerializer: ResponseSerializer {
    /// The conditions for an acceptable response; the default content types are `JSONResponseSerializer.contentTypes`.
    public var validation: ResponseValidation
    /// The options of `JSONSerialization`. Default: none.
    public var readingOptions: JSONSerialization.ReadingOptions
    /// Whether null members and elements are removed at every level. Default: false.
    public var removesKeysWithNullValues: Bool
    /// The preprocessor that may change the body before it is decoded. Default: no change.
    public var preprocessor: DataPreprocessor

    /// Creates a serializer. By default it accepts statuses 200 to 299 and keeps null members.
    public init(
        validation: ResponseValidation = ResponseValidation(acceptableContentTypes: JSONResponseSerializer.contentTypes),
        readingOptions: JSONSerialization.ReadingOptions = [], removesKeysWithNullValues: Bool = false,
        preprocessor: DataPreprocessor = .passthrough
    ) {
        self.validation = validation
        self.readingOptions = readingOptions
        self.removesKeysWithNullValues = removesKeysWithNullValues
        self.preprocessor = preprocessor
    }

    /// Decodes the body to dictionaries, arrays, strings, `NSNumber` and `NSNull`.
    public func decode(_ response: TransferResponse) throws -> sending Any? {
        let body = try preprocessor.preprocess(response.data)
        guard !body.isBlankJSON else { return nil }
        let object = try JSONSerialization.jsonObject(with: body, options: readingOptions)
        return removesKeysWithNullValues ? Self.removingNullValues(from: object) : object
    }

    /// Returns `object` without the dictionary keys and array elements that are `NSNull`, at every level. Other values stay
    /// unchanged.
    ///
    /// `object` must come from a JSON reader, whose limit bounds the nesting of containers.
    package static func removingNullValues(from object: Any) -> Any {
        switch object {
        case let elements as [Any]: elements.filter { !($0 is NSNull) }.map(removingNullValues)
        case let members as [String: Any]: members.filter { !($0.value is NSNull) }.mapValues(removingNullValues)
        default: object
        }
    }
}
