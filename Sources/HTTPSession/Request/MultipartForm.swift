/// A form of parts (RFC 7578), sent without being put together in memory.
public struct MultipartForm: Sendable {
    /// A form without parts.
    public init() {}
}
