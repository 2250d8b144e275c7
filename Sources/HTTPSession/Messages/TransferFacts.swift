/// What an engine measured of one transaction. Times are nanoseconds since the transaction's start; what is not known is `nil`.
package struct TransferFacts: Hashable, Sendable {
    /// When a name or an address was given to the resolver; `nil` where what it stands for was known.
    package var lookupStart: Int64?
    package var nameLookup: Int64?
    package var connect: Int64?
    package var secureConnect: Int64?
    package var preTransfer: Int64?
    package var postTransfer: Int64?
    package var firstByte: Int64?
    package var total: Int64 = 0
    /// `http/1.0`, `http/1.1`, `h2`: the names of the ALPN registry (RFC 7301).
    package var networkProtocol: String?
    /// Whether the connection may carry others beside this transfer.
    package var isMultiplexed = false
    package var reusedConnection = false
    package var usedProxy = false
    package var localAddress: String?
    package var localPort: Int?
    package var remoteAddress: String?
    package var remotePort: Int?
    package var requestBytes: Int64 = 0
    package var requestBodyBytes: Int64 = 0
    /// As their source has given them, before they were framed.
    package var providedBodyBytes: Int64 = 0
    package var responseHeaderBytes: Int64 = 0
    /// As received, before decompression.
    package var responseBodyBytes: Int64 = 0
    /// As its receiver has taken them, after decompression.
    package var decodedBodyBytes: Int64 = 0
    /// libcurl wanted to send the request again because the reused connection had died before an answer.
    package var wasResent = false
    /// The response may belong to no request: the server sends bytes that nobody asked for.
    package var hadSurplus = false
    /// HSTS has upgraded the request to https, for which no evaluation of the certificate of the server or its proxy was prepared. Nothing was sent.
    package var wasUpgraded = false
    /// The task was suspended before its request was sent. Nothing was sent, and the attempt is repeated when the task is resumed.
    package var wasHeldUnsent = false
    /// The chosen connection must not be reused. Nothing was sent, and the attempt is repeated on a new connection.
    package var hadUnfitConnection = false
    package var tlsVersion: String?
    package var tlsCipher: String?

    package init() {}
}
