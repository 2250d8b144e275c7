/// The measurements of one transaction by the engine. Times are nanoseconds since the transaction's start; an unknown value is
/// `nil`.
package struct TransferFacts: Hashable, Sendable {
    /// The time at which the resolver received the name or address; `nil` if the result was cached.
    package var lookupStart: Int64?
    package var nameLookup: Int64?
    package var connect: Int64?
    package var secureConnect: Int64?
    package var preTransfer: Int64?
    package var postTransfer: Int64?
    package var firstByte: Int64?
    package var total: Int64 = 0
    /// The protocol's name in the ALPN registry (RFC 7301): `http/1.0`, `http/1.1` or `h2`.
    package var networkProtocol: String?
    /// Whether other transfers may share the connection.
    package var isMultiplexed = false
    package var reusedConnection = false
    package var usedProxy = false
    package var localAddress: String?
    package var localPort: Int?
    package var remoteAddress: String?
    package var remotePort: Int?
    package var requestBytes: Int64 = 0
    package var requestBodyBytes: Int64 = 0
    /// The bytes of the body as its source provided them, before framing.
    package var providedBodyBytes: Int64 = 0
    package var responseHeaderBytes: Int64 = 0
    /// The bytes of the body as received, before decompression.
    package var responseBodyBytes: Int64 = 0
    /// The bytes of the body as delivered, after decompression.
    package var decodedBodyBytes: Int64 = 0
    /// Whether libcurl tried to repeat the request because the reused connection died before a response.
    package var wasResent = false
    /// Whether the server sent bytes without a request, so that the response may belong to none.
    package var hadSurplus = false
    /// Whether the response began, and the exchange ended before the complete body of the request was sent.
    package var isRequestBodyCut = false
    /// Whether HSTS upgraded the request to https without a certificate evaluation for the server, or for the proxy before it.
    /// Nothing was sent; the attempt is repeated.
    package var wasUpgraded = false
    /// Whether the task was suspended before the request was sent. Nothing was sent; the attempt is repeated after the
    /// resumption.
    package var wasSuspendedBeforeSending = false
    /// Whether the connection could not carry the next request, which was not sent; the attempt is repeated on a new connection.
    package var hadUnfitConnection = false
    package var tlsVersion: String?
    package var tlsCipher: String?

    package init() {}
}
