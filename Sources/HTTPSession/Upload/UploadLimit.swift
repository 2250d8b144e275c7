/// The limits of an upload server (`Upload-Limit`, draft-ietf-httpbis-resumable-upload section 4.1.4). Sizes are bytes.
struct UploadLimit: Hashable, Sendable {
    /// The largest complete upload.
    var maximumSize: Int64?
    /// The most bytes of the upload in one request.
    var maximumAppendSize: Int64?

    /// The limits in a field's members; `nil` if the field is invalid. A known key with a value of another type makes the field
    /// invalid; unknown keys are ignored.
    init?(_ members: [String: StructuredField.Item]) {
        var sizes: [String: Int64] = [:]
        for key in ["max-size", "min-size", "max-append-size", "min-append-size", "max-age"] {
            guard let member = members[key] else { continue }
            guard case .integer(let value) = member, value >= 0 else { return nil }
            sizes[key] = value
        }
        maximumSize = sizes["max-size"]
        // Requests without bytes would never complete the upload.
        maximumAppendSize = sizes["max-append-size"].map { max(1, $0) }
    }
}
