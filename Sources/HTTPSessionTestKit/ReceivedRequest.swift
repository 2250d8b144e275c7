/// A field line of a message as it was written, with the case of its name.
public struct HeaderField: Hashable, Sendable {
    /// The name, in the case in which it was sent.
    public var name: String
    /// The value, without the whitespace around it.
    public var value: String

    /// Creates a field line.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A request that a server or a ``ScriptedTransport`` received.
public struct ReceivedRequest: Hashable, Sendable {
    /// The method, as sent.
    public let method: String
    /// The request target, as sent: path and query, the absolute form, `*` or an authority.
    public let target: String
    /// The version: `HTTP/1.1` or `HTTP/1.0`.
    public let version: String
    /// The field lines, in their order.
    public let fields: [HeaderField]
    /// The number of the connection, counted from 1. Each request of a ``ScriptedTransport`` has its own.
    public let connection: Int
    /// The number of the request on its connection, counted from 1.
    public let numberOnConnection: Int
    /// The number of the request among all, counted from 1 in the order of their heads.
    public let arrival: Int
    /// The parameters of the TLS connection; `nil` without TLS.
    public let tls: TLSDetails?
    /// The decoded body, up to ``TestServer/Configuration/recordedBodyBytes`` or ``ScriptedTransport/recordedBodyBytes``.
    public package(set) var body: [UInt8]
    /// The length of the complete decoded body, in bytes.
    public package(set) var bodyLength: Int64
    /// The trailer fields of a chunked body.
    public package(set) var trailers: [HeaderField]

    /// The parameters that a TLS handshake has negotiated.
    public struct TLSDetails: Hashable, Sendable {
        /// The version as OpenSSL writes it: `TLSv1.2`, `TLSv1.3`.
        public let version: String
        /// The server name that the client sent (RFC 6066 section 3).
        public let serverName: String?
        /// Whether the session of an earlier connection was resumed.
        public let isResumed: Bool
        /// The client's certificate, in DER.
        public let clientCertificate: [UInt8]?

        /// Creates the parameters of a handshake, for tests of code that answers requests.
        public init(
            version: String = "TLSv1.3", serverName: String? = nil, isResumed: Bool = false, clientCertificate: [UInt8]? = nil
        ) {
            self.version = version
            self.serverName = serverName
            self.isResumed = isResumed
            self.clientCertificate = clientCertificate
        }
    }

    /// Creates a request, for tests of code that answers requests. ``bodyLength`` is the length of `body`.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - target: the request target: path and query, the absolute form, `*` or an authority.
    ///   - version: the version of HTTP.
    ///   - fields: the field lines, in their order.
    ///   - connection: the number of the connection, counted from 1.
    ///   - numberOnConnection: the number of the request on its connection, counted from 1.
    ///   - arrival: the number of the request among all, counted from 1.
    ///   - tls: the parameters of the TLS connection; `nil` without TLS.
    ///   - body: the decoded body.
    ///   - trailers: the trailer fields of a chunked body.
    public init(
        method: String = "GET", target: String, version: String = "HTTP/1.1", fields: [HeaderField] = [], connection: Int = 1,
        numberOnConnection: Int = 1, arrival: Int = 1, tls: TLSDetails? = nil, body: [UInt8] = [], trailers: [HeaderField] = []
    ) {
        (self.method, self.target, self.version, self.fields) = (method, target, version, fields)
        (self.connection, self.numberOnConnection, self.arrival) = (connection, numberOnConnection, arrival)
        self.tls = tls
        (self.body, self.bodyLength, self.trailers) = (body, Int64(body.count), trailers)
    }

    /// The target before the first question mark.
    public var path: String { String(target.prefix { $0 != "?" }) }

    /// The target after the first question mark; `nil` without one.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// Returns the values of all field lines with a name. The case of the name is ignored.
    public func values(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// The value of the first field line with a name; `nil` if there is none. The case of the name is ignored.
    public subscript(name: String) -> String? { values(name).first }

    /// The recorded body as text.
    public var text: String { String(decoding: body, as: UTF8.self) }
}
