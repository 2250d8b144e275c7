public import FoundationEssentials

/// What was measured of a task, in the terms of `URLSessionTaskMetrics`. What libcurl does not tell is `nil`, never estimated.
public struct TransferMetrics: Hashable, Sendable {
    /// From the task's first start to its end.
    public internal(set) var taskInterval = DateInterval(start: .distantPast, duration: 0)
    /// Redirects followed.
    public internal(set) var redirectCount = 0
    /// Attempts after one that had failed.
    public internal(set) var retryCount = 0
    /// Attempts that interceptors have asked for, those of the tasks that this one repeats included.
    var interceptionCount = 0
    /// Waited between attempts.
    public internal(set) var timeBackingOff = Duration.zero
    /// Waited for a network that had gone.
    public internal(set) var timeWaitingForConnectivity = Duration.zero
    /// Bytes that later attempts did not ask for, or send, again.
    public internal(set) var bytesResumed: Int64 = 0
    /// One for each attempt, in their order, also those that were given up; the requests of one login by Digest or NTLM, which libcurl
    /// makes, are one. Of a task that has made more, the latest 1,000.
    public internal(set) var transactions: [TransactionMetrics] = []

    /// Creates metrics without transactions, for responses that a test makes.
    public init() {}

    static let maximumTransactions = 1_000
}

/// One request and its response. Of the fields of `URLSessionTaskTransactionMetrics` there is no `isMultipath` and no
/// `domainResolutionProtocol`, which libcurl does not tell, no fetch type (all come from the network), and no copy of request and response.
public struct TransactionMetrics: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The request's method.
    public let method: String
    let address: URL
    /// `nil` where no response came.
    public let statusCode: Int?
    /// When the transaction was handed to libcurl.
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

    /// What the path of the session's monitor was like when the transaction began.
    struct Network: Hashable, Sendable {
        let isCellular: Bool
        let isExpensive: Bool
        let isConstrained: Bool
    }

    /// Scheme, host, port and path; no user, query and fragment.
    public var url: String { address.withoutSecrets }

    /// Method, address and status.
    public var description: String { "\(method) \(url) \(statusCode.map { "\($0)" } ?? "-")" }
    /// What `dump` sees: nothing secret either.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "method": method, "url": url, "statusCode": statusCode as Any, "fetchStart": fetchStart,
                "network": network as Any, "facts": facts,
            ])
    }

    private func date(_ nanoseconds: Int64?) -> Date? { nanoseconds.map { fetchStart.addingTimeInterval(Double($0) / 1e9) } }

    /// The name was given to the resolver, that of the proxy where there is one; an address too, which takes no time. `nil` where the
    /// answer was known, and on a reused connection, as all times of its making.
    public var domainLookupStart: Date? { date(facts.lookupStart) }
    /// The resolver has answered (`CURLINFO_NAMELOOKUP_TIME_T`); `nil` where it was not asked.
    public var domainLookupEnd: Date? { facts.lookupStart == nil ? nil : date(facts.nameLookup) }
    /// The addresses are known, from the resolver or otherwise: TCP begins there.
    public var connectStart: Date? { date(facts.nameLookup) }
    /// TCP is established, and TLS where there is some.
    public var connectEnd: Date? { date(facts.secureConnect ?? facts.connect) }
    /// TCP is established and TLS begins; `nil` without TLS.
    public var secureConnectionStart: Date? { facts.secureConnect == nil ? nil : date(facts.connect) }
    /// TLS is established; `nil` without TLS.
    public var secureConnectionEnd: Date? { date(facts.secureConnect) }
    /// The request is about to be sent (`CURLINFO_PRETRANSFER_TIME_T`).
    public var requestStart: Date? { date(facts.preTransfer) }
    /// The last byte of the request has gone (`CURLINFO_POSTTRANSFER_TIME_T`); `nil` where libcurl is older than 8.10.
    public var requestEnd: Date? { date(facts.postTransfer) }
    /// The first byte of the response (`CURLINFO_STARTTRANSFER_TIME_T`).
    public var responseStart: Date? { date(facts.firstByte) }
    /// The end (`CURLINFO_TOTAL_TIME_T`).
    public var responseEnd: Date? { date(facts.total) }
    /// `http/1.1`, `h2`: the names of ALPN (RFC 7301).
    public var networkProtocolName: String? { facts.networkProtocol }
    /// Whether a proxy was between, of any kind: by the configuration, or by the environment as it was when the session was made.
    public var isProxyConnection: Bool { facts.usedProxy }
    /// Whether the network was cellular when the transaction began: by the session's path monitor, for the way to where the machine sends
    /// by default. `nil` without a monitor, without a network, and to this machine itself.
    public var isCellular: Bool? { network?.isCellular }
    /// Whether it was what Reachability calls expensive; `nil` likewise.
    public var isExpensive: Bool? { network?.isExpensive }
    /// Whether it was what Reachability calls constrained; `nil` likewise.
    public var isConstrained: Bool? { network?.isConstrained }
    /// Whether an earlier connection was used again.
    public var isReusedConnection: Bool { facts.reusedConnection }
    /// This end's address.
    public var localAddress: String? { facts.localAddress }
    /// This end's port.
    public var localPort: Int? { facts.localPort }
    /// The server's or the proxy's address.
    public var remoteAddress: String? { facts.remoteAddress }
    /// The server's or the proxy's port.
    public var remotePort: Int? { facts.remotePort }
    /// Request line and fields, in bytes.
    public var countOfRequestHeaderBytesSent: Int64 { facts.requestBytes }
    /// In bytes, with the framing of a body whose length was not known.
    public var countOfRequestBodyBytesSent: Int64 { facts.requestBodyBytes }
    /// As the body's source gave it, in bytes. Of a request that was broken off, libcurl may have had more than it sent.
    public var countOfRequestBodyBytesBeforeEncoding: Int64 { facts.providedBodyBytes }
    /// Status lines and fields, in bytes.
    public var countOfResponseHeaderBytesReceived: Int64 { facts.responseHeaderBytes }
    /// Before decompression, in bytes.
    public var countOfResponseBodyBytesReceived: Int64 { facts.responseBodyBytes }
    /// After decompression, in bytes.
    public var countOfResponseBodyBytesAfterDecoding: Int64 { facts.decodedBodyBytes }
    /// Such as `TLSv1.3`; `nil` without TLS.
    public var negotiatedTLSProtocolVersion: String? { facts.tlsVersion }
    /// Its name in IANA's registry, such as `TLS_AES_256_GCM_SHA384`; `nil` without TLS.
    public var negotiatedTLSCipherSuite: String? { facts.tlsCipher }
}
