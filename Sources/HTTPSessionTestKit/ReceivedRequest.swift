/// A field line of a message, as written: the case of its name and the order among its neighbors are kept.
public struct HeaderField: Hashable, Sendable {
    /// The name, in the case that was sent.
    public var name: String
    /// The value without the white space around it.
    public var value: String

    /// A field line.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A request as a server of this kit saw it.
public struct ReceivedRequest: Hashable, Sendable {
    /// The method, as sent.
    public let method: String
    /// The request target, as sent: path and query, the absolute form, `*` or an authority.
    public let target: String
    /// `HTTP/1.1` or `HTTP/1.0`.
    public let version: String
    /// The field lines in their order.
    public let fields: [HeaderField]
    /// The connection that it came over; the server's first has number 1.
    public let connection: Int
    /// Its place on that connection; the first request of each connection has number 1.
    public let numberOnConnection: Int
    /// Its place among all requests of the server, counted from 1 when the head has been read.
    public let arrival: Int
    /// What was agreed on when the connection is encrypted.
    public let tls: TLSDetails?
    /// The decoded body, at most ``TestServer/Options/recordedBodyBytes`` of it.
    public internal(set) var body: [UInt8] = []
    /// The length of the whole decoded body.
    public internal(set) var bodyLength: Int64 = 0
    /// The fields after a chunked body.
    public internal(set) var trailers: [HeaderField] = []

    /// What the TLS handshake agreed on.
    public struct TLSDetails: Hashable, Sendable {
        /// `TLSv1.2`, `TLSv1.3`, as OpenSSL writes it.
        public let version: String
        /// The name that the client asked for (RFC 6066 section 3).
        public let serverName: String?
        /// Whether the session of an earlier connection was resumed.
        public let isResumed: Bool
        /// The client's certificate, in DER.
        public let clientCertificate: [UInt8]?
    }

    /// The target up to the first question mark.
    public var path: String { String(target.prefix { $0 != "?" }) }

    /// The target after the first question mark.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The values of all field lines of that name, whatever its case.
    public func values(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// The value of the first field line of that name, whatever its case.
    public subscript(name: String) -> String? { values(name).first }

    /// The recorded body as text.
    public var text: String { String(decoding: body, as: UTF8.self) }
}
