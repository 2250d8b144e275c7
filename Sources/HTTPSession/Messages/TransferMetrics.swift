public import FoundationEssentials

/// The metrics of a task, with the property names of `URLSessionTaskMetrics`. If libcurl does not report a value, it is `nil`,
/// never an estimate.
public struct TransferMetrics: Hashable, Sendable {
    /// The interval from the task's first start to its end.
    public internal(set) var taskInterval = DateInterval(start: .distantPast, duration: 0)
    /// The number of redirects followed.
    public internal(set) var redirectCount = 0
    /// The number of attempts that followed a failed one.
    public internal(set) var retryCount = 0
    /// The number of attempts that interceptors asked for, including those of tasks that this one repeats.
    var interceptionCount = 0
    /// The time spent waiting between attempts.
    public internal(set) var timeBackingOff = Duration.zero
    /// The time spent waiting for connectivity.
    public internal(set) var timeWaitingForConnectivity = Duration.zero
    /// The bytes that later attempts did not request or send again.
    public internal(set) var bytesContinued: Int64 = 0
    /// The metrics of the task's attempts in order, including abandoned ones; at most the latest 1,000. All requests of one
    /// Digest or NTLM login, which libcurl sends itself, count as one.
    public internal(set) var transactions: [TransactionMetrics] = []

    /// Creates metrics without transactions, for responses that a test makes.
    public init() {}

    static let maximumTransactions = 1_000
}

/// The metrics of one request and its response.
///
/// The properties have the names of `URLSessionTaskTransactionMetrics`. The times of the phases follow from five moments: the name is resolved
/// from ``fetchStart`` to ``connectStart``, the connection is established, with TLS, from ``connectStart`` to ``connectEnd``, the server answers
/// from ``requestStart`` to ``responseStart``, and the body arrives until ``responseEnd``.
public struct TransactionMetrics: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The request's method.
    public let method: String
    let address: URL
    /// The status code; `nil` if no response arrived.
    public let statusCode: Int?
    /// The time at which libcurl received the request.
    public let fetchStart: Date
    let network: Network?
    private let measured: CopyOnWrite<TransferFacts>
    var facts: TransferFacts { measured.value }

    init(
        method: String, address: URL, statusCode: Int?, fetchStart: Date, network: Network?, facts: TransferFacts
    ) {
        self.method = method
        self.address = address
        self.statusCode = statusCode
        self.fetchStart = fetchStart
        self.network = network
        measured = CopyOnWrite(facts)
    }

    /// The properties of the session monitor's path at the start of the transaction.
    struct Network: Hashable, Sendable {
        let isCellular: Bool
        let isExpensive: Bool
        let isConstrained: Bool
    }

    /// The scheme, host, port and path of the URL, without user, query and fragment.
    public var url: String { address.withoutSecrets }

    /// The method, URL and status code.
    public var description: String { "\(method) \(url) \(statusCode.map { "\($0)" } ?? "-")" }
    /// A mirror without secrets.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "method": method, "url": url, "statusCode": statusCode as Any, "fetchStart": fetchStart,
                "network": network as Any, "facts": facts,
            ])
    }

    private func date(_ nanoseconds: Int64?) -> Date? { nanoseconds.map { fetchStart.addingTimeInterval(Double($0) / 1e9) } }

    /// The time at which the resolver received the name, or that of the proxy. An address takes no time. `nil` if the result was
    /// cached, and on a reused connection, like all times of connection setup.
    package var domainLookupStart: Date? { date(facts.lookupStart) }
    /// The time at which the resolver answered (`CURLINFO_NAMELOOKUP_TIME_T`); `nil` if it was not asked.
    package var domainLookupEnd: Date? { facts.lookupStart == nil ? nil : date(facts.nameLookup) }
    /// The time at which the addresses were known and TCP began.
    public var connectStart: Date? { date(facts.nameLookup) }
    /// The time at which the connection was established, including TLS if it is used.
    public var connectEnd: Date? { date(facts.secureConnect ?? facts.connect) }
    /// The time at which TCP was established and TLS began; `nil` without TLS.
    package var secureConnectionStart: Date? { facts.secureConnect == nil ? nil : date(facts.connect) }
    /// The time at which TLS was established; `nil` without TLS.
    package var secureConnectionEnd: Date? { date(facts.secureConnect) }
    /// The time directly before the request was sent (`CURLINFO_PRETRANSFER_TIME_T`).
    public var requestStart: Date? { date(facts.preTransfer) }
    /// The time at which the last byte of the request was sent (`CURLINFO_POSTTRANSFER_TIME_T`); `nil` if libcurl is older than
    /// 8.10.
    package var requestEnd: Date? { date(facts.postTransfer) }
    /// The time at which the first byte of the response arrived (`CURLINFO_STARTTRANSFER_TIME_T`).
    public var responseStart: Date? { date(facts.firstByte) }
    /// The end of the transaction (`CURLINFO_TOTAL_TIME_T`).
    public var responseEnd: Date? { date(facts.total) }
    /// The protocol's name in the ALPN registry (RFC 7301), such as `http/1.1` or `h2`.
    public var networkProtocolName: String? { facts.networkProtocol }
    /// Whether the transaction used a proxy of any kind, by the configuration or by the environment at the creation of the
    /// session.
    public var isProxyConnection: Bool { facts.usedProxy }
    /// Whether the network was cellular at the start of the transaction, by the session's path monitor and its default route.
    /// `nil` without a monitor, without a network, and for servers on this machine.
    package var isCellular: Bool? { network?.isCellular }
    /// Whether the network was expensive by Reachability's definition; `nil` in the same cases as ``isCellular``.
    package var isExpensive: Bool? { network?.isExpensive }
    /// Whether the network was constrained by Reachability's definition; `nil` in the same cases as ``isCellular``.
    package var isConstrained: Bool? { network?.isConstrained }
    /// Whether the transaction reused an earlier connection.
    public var isReusedConnection: Bool { facts.reusedConnection }
    /// The local address of the connection.
    package var localAddress: String? { facts.localAddress }
    /// The local port of the connection.
    package var localPort: Int? { facts.localPort }
    /// The address of the server or proxy.
    public var remoteAddress: String? { facts.remoteAddress }
    /// The port of the server or proxy.
    package var remotePort: Int? { facts.remotePort }
    /// The size of the request line and fields, in bytes.
    package var countOfRequestHeaderBytesSent: Int64 { facts.requestBytes }
    /// The size of the request's body as sent, in bytes. It includes chunked framing if the length was not known.
    package var countOfRequestBodyBytesSent: Int64 { facts.requestBodyBytes }
    /// The size of the request's body as its source provided it, in bytes. If the request was stopped, libcurl may have read more
    /// than it sent.
    package var countOfRequestBodyBytesBeforeEncoding: Int64 { facts.providedBodyBytes }
    /// The size of the status lines and fields, in bytes.
    package var countOfResponseHeaderBytesReceived: Int64 { facts.responseHeaderBytes }
    /// The size of the response's body before decompression, in bytes.
    package var countOfResponseBodyBytesReceived: Int64 { facts.responseBodyBytes }
    /// The size of the response's body after decompression, in bytes.
    package var countOfResponseBodyBytesAfterDecoding: Int64 { facts.decodedBodyBytes }
    /// The TLS version, such as `TLSv1.3`; `nil` without TLS.
    public var negotiatedTLSProtocolVersion: String? { facts.tlsVersion }
    /// The cipher suite's name in IANA's registry, such as `TLS_AES_256_GCM_SHA384`; `nil` without TLS.
    package var negotiatedTLSCipherSuite: String? { facts.tlsCipher }
}
