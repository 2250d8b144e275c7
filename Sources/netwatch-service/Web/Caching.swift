/// The values of `Cache-Control`.
enum Caching {
    /// The value for documents, which are right for a moment only.
    static let noStore = "no-store"
    /// The value for an asset whose URL contains its tag.
    static let immutable = "public, max-age=31536000, immutable"
    /// The value for an asset whose URL does not change.
    static let revalidate = "no-cache"
}
