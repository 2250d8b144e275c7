/// How an upload goes on where it stopped: the protocol that its server speaks.
public struct UploadProtocol: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case tus(metadata: [String: String])
        case draft
    }

    package let kind: Kind

    /// tus 1.0.0 (tus.io). The request is a POST to the address that makes uploads; the body goes to the address that its answer names.
    public static let tus = UploadProtocol(kind: .tus(metadata: [:]))

    /// tus 1.0.0, with what the server is to know of the upload (`Upload-Metadata`), such as `filename`. Names are ASCII without spaces
    /// and commas; values are sent in Base64.
    public static func tus(metadata: [String: String]) -> UploadProtocol { UploadProtocol(kind: .tus(metadata: metadata)) }

    /// draft-ietf-httpbis-resumable-upload, interoperability version 8. The request is the same as without it, and so is the upload where
    /// the server knows nothing of the draft; where it does, what was lost is sent again from where the server is.
    public static let draft = UploadProtocol(kind: .draft)
}
