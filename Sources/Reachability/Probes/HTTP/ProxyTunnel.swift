internal import Wire

/// A request to a proxy to connect to a server (CONNECT, RFC 9110 section 9.3.6), and its answer.
struct ProxyTunnel: Sendable {
    private let server: String
    private let fieldLines: String
    // The answer to CONNECT has no body if it is 2xx, and the body of another one is not read.
    private var exchange = HTTPExchange(method: "HEAD", keepsBody: false)

    init(to endpoint: Endpoint, through proxy: ProbeProxy) {
        server = endpoint.hostAndPort
        fieldLines = proxy.fieldLines
    }

    /// The request.
    var request: [UInt8] {
        Array(
            "CONNECT \(server) HTTP/1.1\r\nHost: \(server)\r\nUser-Agent: netwatch/\(PackageVersion.text)\r\n\(fieldLines)\r\n"
                .utf8)
    }

    /// Takes the next bytes of the connection. Returns how many of them belong to the answer.
    mutating func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        let before = exchange.receivedBytes
        exchange.receive(bytes)
        return exchange.receivedBytes - before
    }

    /// Takes the end of the connection.
    mutating func endOfInput() { exchange.endOfInput() }

    /// Whether the proxy has answered, or has closed the connection.
    var hasEnded: Bool { exchange.isEnded }
    /// Whether the connection leads to the server now.
    var isOpen: Bool { exchange.progress == .complete && exchange.head.map { (200...299).contains($0.status) } ?? false }
    /// The facts of the answer.
    var facts: HTTPResponseFacts { exchange.facts }
}

/// The end of a tunnel that the proxy has not opened.
package struct ProxyTunnelFailure: Hashable, Sendable, Codable {
    /// The proxy's answer.
    var response: HTTPResponseFacts
    /// How the exchange ended.
    var ending: HTTPEnding
}
