public import FoundationEssentials
public import HTTPTypes

/// A response whose body has arrived whole, and what was asked: all that a serializer may look at.
public struct ReceivedResponse: Sendable {
    /// Status and fields.
    public var head: HTTPResponse
    /// The body, decompressed.
    public var body: Data
    /// The address that answered, after every redirect.
    public var url: URL
    /// The method of the request that was answered.
    public var method: HTTPRequest.Method

    /// A response as it arrived.
    public init(head: HTTPResponse, body: Data, url: URL, method: HTTPRequest.Method = .get) {
        self.head = head
        self.body = body
        self.url = url
        self.method = method
    }

    /// The type that the server gives the body; `nil` where it gives none, or none that can be read.
    public var mediaType: MediaType? {
        // Of several fields the last counts (Fetch standard, "extract a MIME type").
        head.headerFields[values: .contentType].last.flatMap(MediaType.init)
    }

    /// Where an error happened: address, method and status, and with `keepingBody` the body's first 64 KiB.
    func errorContext(keepingBody: Bool) -> HTTPSessionError.Context {
        HTTPSessionError.Context(
            url: url.withoutSecrets, method: method.rawValue, statusCode: head.status.code,
            // A copy, lest 64 KiB keep a large body alive.
            responseBody: keepingBody ? Data(Array(body.prefix(Self.longestKeptBody))) : nil)
    }

    private static let longestKeptBody = 64 * 1024
}
