package import Wire

/// The facts of one HTTP exchange on which a verdict depends. Texts are shortened and have no control characters.
package struct HTTPResponseFacts: Hashable, Sendable, Codable {
    /// The status code; `nil` if no complete head arrived.
    package var status: Int?
    /// The version of the status line, such as `1.1`.
    package var version: String?
    /// The reason phrase; `nil` if it is empty.
    package var reason: String?
    /// The value of `Location`.
    package var location: String?
    /// The value of `Content-Type`.
    package var contentType: String?
    /// The value of `Content-Encoding`.
    package var contentEncoding: String?
    /// The value of `Server`.
    package var server: String?
    /// `true` if the response says that a proxy has made it: `Proxy-Status` with an error (RFC 9209), or Squid's `X-Squid-Error`.
    package var isOfProxy: Bool?
    /// The number of received bytes: heads, framing and body.
    package var receivedBytes: Int
    /// The number of received bytes of the body, without the framing of chunks.
    package var bodyBytes: Int
    /// The reason why the response is invalid.
    package var failure: HTTPResponseReader.Failure?
    /// The limit that ended the exchange, with or without a failure.
    package var limit: HTTPLimit?
    /// The bytes that are not HTTP, or the line that is invalid.
    package var excerpt: String?

    package init(
        status: Int? = nil, version: String? = nil, reason: String? = nil, location: String? = nil, contentType: String? = nil,
        server: String? = nil, receivedBytes: Int = 0, bodyBytes: Int = 0, failure: HTTPResponseReader.Failure? = nil,
        limit: HTTPLimit? = nil, excerpt: String? = nil
    ) {
        self.status = status
        self.version = version
        self.reason = reason
        self.location = location
        self.contentType = contentType
        self.server = server
        self.receivedBytes = receivedBytes
        self.bodyBytes = bodyBytes
        self.failure = failure
        self.limit = limit
        self.excerpt = excerpt
    }
}

/// The limits of a response (``HTTPResponseReader/Limits``) and of a chain of redirects.
package enum HTTPLimit: String, Hashable, Sendable, Codable, CaseIterable {
    /// The bytes of all heads of a response, interim responses included.
    case head
    /// The fields of a head.
    case fields
    /// The interim responses (1xx) before the final one.
    case interimResponses = "interim-responses"
    /// The bytes of a body whose length is not known.
    case body
    /// The bytes that are read of a body with Content-Length. A longer body is no failure.
    case knownBody = "known-body"
    /// The bytes of the line that begins a chunk.
    case chunkLine = "chunk-line"
    /// The bytes of the framing of all chunks.
    case chunkFraming = "chunk-framing"
    /// The bytes of the trailer section.
    case trailers
    /// The bytes of a `Location`.
    case location
    /// The redirects that are followed.
    case redirects

    /// The greatest number that is accepted.
    package var value: Int {
        switch self {
        case .head: 64 << 10
        case .fields: 512
        case .interimResponses: 10
        case .body: 8 << 20
        case .knownBody: 1 << 20
        case .chunkLine: 4 << 10
        case .chunkFraming: 1 << 20
        case .trailers: 16 << 10
        case .location: 8 << 10
        case .redirects: 10
        }
    }

    /// The limit with its unit, such as `64 KiB of header fields`.
    package var text: String {
        switch self {
        case .head: "64 KiB of header fields"
        case .fields: "512 header fields"
        case .interimResponses: "10 interim responses"
        case .body: "8 MiB of body"
        case .knownBody: "1 MiB of body"
        case .chunkLine: "4 KiB of a chunk's extensions"
        case .chunkFraming: "1 MiB of chunk framing"
        case .trailers: "16 KiB of trailer fields"
        case .location: "8 KiB of Location"
        case .redirects: "10 redirects"
        }
    }
}
