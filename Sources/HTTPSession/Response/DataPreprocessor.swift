public import FoundationEssentials

/// A change to the body before it is decoded.
public struct DataPreprocessor: Sendable {
    private let change: @Sendable (Data) throws -> Data

    /// A change; an error that it throws ends the response.
    public init(_ change: @escaping @Sendable (Data) throws -> Data) {
        self.change = change
    }

    /// None.
    public static let passthrough = DataPreprocessor { $0 }

    /// Takes the line `)]}',` away that some servers put before JSON, lest a page load it as a script.
    public static let googleXSSI = DataPreprocessor { body in
        let prefix = Data(")]}',\n".utf8)
        return body.starts(with: prefix) ? body.dropFirst(prefix.count) : body
    }

    /// The body to decode.
    public func preprocess(_ body: Data) throws -> Data { try change(body) }
}
