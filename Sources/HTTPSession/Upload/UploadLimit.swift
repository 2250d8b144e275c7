/// What a server takes (`Upload-Limit`, draft-ietf-httpbis-resumable-upload section 4.1.4). Sizes are bytes.
struct UploadLimit: Hashable, Sendable {
    /// Of the whole body.
    var maximumSize: Int64?
    /// Of one request's part of it.
    var maximumAppendSize: Int64?

    /// `nil`: the field says nothing. A known key with a value of another type makes nothing of the whole field; unknown keys are left out.
    init?(_ members: [String: StructuredField.Item]) {
        var sizes: [String: Int64] = [:]
        for key in ["max-size", "min-size", "max-append-size", "min-append-size", "max-age"] {
            guard let member = members[key] else { continue }
            guard case .integer(let value) = member, value >= 0 else { return nil }
            sizes[key] = value
        }
        maximumSize = sizes["max-size"]
        // Parts of no bytes would never end.
        maximumAppendSize = sizes["max-append-size"].map { max(1, $0) }
    }
}
