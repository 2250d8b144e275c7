public import Foundation

/// What was measured of a task, in the terms of `URLSessionTaskMetrics`. What libcurl does not tell is `nil`, never estimated.
public struct TransferMetrics: Hashable, Sendable {
    /// From the task's first start to its end.
    public internal(set) var taskInterval = DateInterval(start: .distantPast, duration: 0)
    /// Redirects followed.
    public internal(set) var redirectCount = 0
    /// Attempts after one that had failed.
    public internal(set) var retryCount = 0
    /// Waited between attempts.
    public internal(set) var timeBackingOff = Duration.zero
    /// Waited for a network that had gone.
    public internal(set) var timeWaitingForConnectivity = Duration.zero
    /// Bytes that later attempts did not ask for, or send, again.
    public internal(set) var bytesResumed: Int64 = 0
    /// One for each request, in their order; of a task that has made more, the latest 1,000.
    public internal(set) var transactions: [TransactionMetrics] = []

    static let maximumTransactions = 1_000
}

/// One request and its response.
public struct TransactionMetrics: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The request's method.
    public let method: String
    let address: URL
    /// `nil` where no response came.
    public let statusCode: Int?
    /// When the transaction was handed to libcurl.
    public let fetchStart: Date
    let facts: TransferFacts

    /// Scheme, host, port and path; no user, query and fragment.
    public var url: String { address.withoutSecrets }

    /// Method, address and status.
    public var description: String { "\(method) \(url) \(statusCode.map { "\($0)" } ?? "-")" }
    /// What `dump` sees: nothing secret either.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: ["method": method, "url": url, "statusCode": statusCode as Any, "fetchStart": fetchStart, "facts": facts])
    }

    private func date(_ nanoseconds: Int64?) -> Date? { nanoseconds.map { fetchStart.addingTimeInterval(Double($0) / 1e9) } }

    /// `nil` on a reused connection, as all times of its making.
    public var domainLookupEnd: Date? { date(facts.nameLookup) }
    /// Where the look-up ended: TCP begins there.
    public var connectStart: Date? { date(facts.nameLookup) }
    /// TCP is established, and TLS where there is some.
    public var connectEnd: Date? { date(facts.secureConnect ?? facts.connect) }
    /// TCP is established and TLS begins; `nil` without TLS.
    public var secureConnectionStart: Date? { facts.secureConnect == nil ? nil : date(facts.connect) }
    /// TLS is established; `nil` without TLS.
    public var secureConnectionEnd: Date? { date(facts.secureConnect) }
    /// The request is about to be sent (`CURLINFO_PRETRANSFER_TIME_T`).
    public var requestStart: Date? { date(facts.preTransfer) }
    /// The first byte of the response (`CURLINFO_STARTTRANSFER_TIME_T`).
    public var responseStart: Date? { date(facts.firstByte) }
    /// The end (`CURLINFO_TOTAL_TIME_T`).
    public var responseEnd: Date? { date(facts.total) }
    /// `http/1.1`, `h2`: the names of ALPN (RFC 7301).
    public var networkProtocolName: String? { facts.networkProtocol }
    /// Whether a proxy was between: known where the session names one without exceptions, else only of the request that opened a tunnel.
    public var isProxyConnection: Bool { facts.usedProxy }
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
    /// In bytes.
    public var countOfRequestBodyBytesSent: Int64 { facts.requestBodyBytes }
    /// Status lines and fields, in bytes.
    public var countOfResponseHeaderBytesReceived: Int64 { facts.responseHeaderBytes }
    /// Before decompression, in bytes.
    public var countOfResponseBodyBytesReceived: Int64 { facts.responseBodyBytes }
    /// Such as `TLSv1.3`; `nil` without TLS.
    public var negotiatedTLSProtocolVersion: String? { facts.tlsVersion }
    /// Its name in IANA's registry, such as `TLS_AES_256_GCM_SHA384`; `nil` without TLS.
    public var negotiatedTLSCipherSuite: String? { facts.tlsCipher }
}
