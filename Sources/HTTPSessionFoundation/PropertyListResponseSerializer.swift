public import Foundation
public import HTTPSession

/// A serializer that decodes a property list, binary or XML. The value is `nil` if the body is empty.
public struct PropertyListResponseSerializer: ResponseSerializer {
    /// The conditions for an acceptable response; the default content types are ``contentTypes``.
    public var validation: ResponseValidation
    /// The options of `PropertyListSerialization`. Default: none.
    public var readOptions: PropertyListSerialization.ReadOptions

    /// The content types of property lists.
    public static let contentTypes: Set<String> = ["application/x-plist"]

    /// Creates a serializer. By default it accepts statuses 200 to 299.
    public init(
        validation: ResponseValidation = ResponseValidation(acceptableContentTypes: contentTypes),
        readOptions: PropertyListSerialization.ReadOptions = []
    ) {
        self.validation = validation
        self.readOptions = readOptions
    }

    /// Decodes the body to dictionaries, arrays, strings, numbers, dates and data.
    public func decode(_ response: TransferResponse) throws -> sending Any? {
        guard !response.data.isEmpty else { return nil }
        return try PropertyListBounds.read(response.data, options: readOptions)
    }
}

extension PropertyListDecoder: DataDecoder {
    /// Throws if `PropertyListDecoder` must not read the list: unlike `JSONDecoder`, it recurses without a limit.
    public func check(_ data: Data) throws { try PropertyListBounds.check(data) }
}
