/// The protocol of resumable uploads that a server supports.
public struct UploadProtocol: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case tus(metadata: [String: String])
        case draft
    }

    package let kind: Kind

    /// The protocol tus 1.0.0 (tus.io). The request is a POST to the URL that creates uploads; the body is sent to the URL in its response.
    public static let tus = UploadProtocol(kind: .tus(metadata: [:]))

    /// The protocol tus 1.0.0 with metadata (`Upload-Metadata`), such as `filename`. Names are ASCII without spaces and commas; values are sent in
    /// Base64.
    public static func tus(metadata: [String: String]) -> UploadProtocol { UploadProtocol(kind: .tus(metadata: metadata)) }

    /// The IETF's draft (draft-ietf-httpbis-resumable-upload, interoperability version 8). A server without support handles the request as an
    /// ordinary one. With a server that supports the draft, the upload continues after the bytes that the server has.
    public static let draft = UploadProtocol(kind: .draft)
}
