public import Foundation
public import HTTPSession

/// The objects of a property list, binary or XML; `nil` for an empty body.
public struct PropertyListResponseSerializer: ResponseSerializer {
    /// What a response must be; by default ``contentTypes``.
    public var validation: ResponseValidation
    /// How the list is read.
    public var readOptions: PropertyListSerialization.ReadOptions

    /// What servers call a property list.
    public static let contentTypes: Set<String> = ["application/x-plist"]

    /// A property list of status 200 to 299, unless told otherwise.
    public init(
        validation: ResponseValidation = ResponseValidation(acceptableContentTypes: contentTypes),
        readOptions: PropertyListSerialization.ReadOptions = []
    ) {
        self.validation = validation
        self.readOptions = readOptions
    }

    /// The body's objects: dictionaries, arrays, strings, numbers, dates, data.
    public func decode(_ response: TransferResponse) throws -> sending Any? {
        guard !response.data.isEmpty else { return nil }
        return try PropertyListBounds.read(response.data, options: readOptions)
    }
}
