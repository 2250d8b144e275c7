public import Foundation
public import HTTPSession

/// The objects that `JSONSerialization` makes of a JSON body, for code that works with dictionaries of `Any`; `nil` for a body that is
/// empty or a single space.
public struct JSONObjectResponseSerializer: ResponseSerializer {
    /// What a response must be; by default `JSONResponseSerializer.contentTypes`.
    public var validation: ResponseValidation
    /// How the text is read.
    public var readingOptions: JSONSerialization.ReadingOptions
    /// Whether members and elements that are null are left out, all the way down.
    public var removesKeysWithNullValues: Bool
    /// A change to the body before it is read.
    public var preprocessor: DataPreprocessor

    /// JSON of status 200 to 299, as it is, unless told otherwise.
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

    /// The body's objects: dictionaries, arrays, strings, `NSNumber`, `NSNull`.
    public func decode(_ response: TransferResponse) throws -> sending Any? {
        let body = try preprocessor.preprocess(response.data)
        guard !body.isBlankJSON else { return nil }
        let object = try JSONSerialization.jsonObject(with: body, options: readingOptions)
        return removesKeysWithNullValues ? Self.removingNullValues(from: object) : object
    }

    /// `object` without dictionary keys and array elements that are `NSNull`, all the way down. Anything else stays as it is.
    ///
    /// `object` is what a JSON reader made: containers no deeper in each other than the reader allows.
    public static func removingNullValues(from object: Any) -> Any {
        switch object {
        case let elements as [Any]: elements.filter { !($0 is NSNull) }.map(removingNullValues)
        case let members as [String: Any]: members.filter { !($0.value is NSNull) }.mapValues(removingNullValues)
        default: object
        }
    }
}
