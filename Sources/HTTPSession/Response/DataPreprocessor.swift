public import FoundationEssentials

/// A transformation of the body before it is decoded.
public struct DataPreprocessor: Sendable {
    private let change: @Sendable (Data) throws -> Data

    /// Creates a preprocessor from a closure. If the closure throws, serialization fails with that error.
    public init(_ change: @escaping @Sendable (Data) throws -> Data) {
        self.change = change
    }

    /// The preprocessor that returns the body unchanged.
    public static let passthrough = DataPreprocessor { $0 }

    /// The preprocessor that removes the line `)]}',`, which some servers send before JSON so that a page cannot load it as a script.
    public static let googleXSSI = DataPreprocessor { body in
        let prefix = Data(")]}',\n".utf8)
        return body.starts(with: prefix) ? body.dropFirst(prefix.count) : body
    }

    /// Transforms a body.
    public func preprocess(_ body: Data) throws -> Data { try change(body) }
}
