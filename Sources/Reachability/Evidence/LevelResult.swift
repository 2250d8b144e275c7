package import Certificates
internal import Pacing

/// The result of the levels of a probe above TCP: the TLS handshake and the HTTP exchange on one connection.
package struct LevelResult: Hashable, Sendable {
    /// The facts of the last TLS handshake; `nil` without one.
    package var tls: TLSHandshakeFacts?
    /// How the handshake ended; `nil` without one.
    package var handshakeEnd: TLSHandshakeEnd?
    /// What the kind of the probe has found out.
    var facts = FactsOfKinds()
    /// The time in which the proxy has opened a tunnel to the server, in nanoseconds; `nil` without a tunnel.
    package var tunnelNanoseconds: Int64?
    /// The duration of the connections after the first one in nanoseconds, to which redirects led; `nil` if there were none.
    package var furtherConnectNanoseconds: Int64?
    /// The time of the answer in nanoseconds, for probes without a connection; `nil` for others.
    package var answerNanoseconds: Int64?
    /// Whether the levels ended at the probe's deadline.
    package var isAtDeadline = false
    /// The duration of the TLS handshake in nanoseconds; `nil` if it is not complete.
    package var handshakeNanoseconds: Int64?
    /// The time from the request to the first byte of the response in nanoseconds; `nil` if none arrived.
    package var processingNanoseconds: Int64?
    /// The time from the first byte of the response to its end in nanoseconds; `nil` if it is not complete.
    package var transferNanoseconds: Int64?
    /// Whether the server's host has acknowledged all bytes that were sent. Otherwise silence is that of the network.
    package var isAcknowledged = true
    /// Whether segments behind a missing one have arrived (`tcpi_rcv_ooopack`): a larger one was lost.
    package var hasGap = false
    /// The connection's progress at the deadline; `nil` if the levels ended before, or if it is not known.
    package var progress: ConnectionProgress?
    /// Whether the connection was limited to small segments (TCP_MAXSEG, tcp(7)).
    package var hasSmallSegments = false
    /// The number of bytes that were sent on all connections of the probe, without the headers of TCP and IP.
    package var bytesSent = 0
    /// The number of bytes that were received on all connections of the probe, without the headers of TCP and IP.
    package var bytesReceived = 0
    /// The reason why this machine could not begin the handshake; `nil` if it could.
    package var localFailure: String?

    /// Whether more is known than times.
    package var hasFacts: Bool { tls != nil || !facts.isEmpty }

    /// Creates the result of levels that have just begun.
    package init() {}
}

extension LevelResult {
    /// The duration of the TLS handshake; `nil` if it is not complete.
    package var handshake: Duration? { handshakeNanoseconds.map { .nanoseconds($0) } }
    /// The time from the request to the first byte of the response; `nil` if none arrived.
    package var processing: Duration? { processingNanoseconds.map { .nanoseconds($0) } }
    /// The time from the first byte of the response to its end; `nil` if it is not complete.
    package var transfer: Duration? { transferNanoseconds.map { .nanoseconds($0) } }
    /// The time that connections needed after the first one: to redirects, and through a proxy's tunnel; `nil` if there were none.
    package var furtherConnection: Duration? {
        Self.sum(furtherConnectNanoseconds, tunnelNanoseconds).map { .nanoseconds($0) }
    }
    /// The time from the request to the end of the response; `nil` if it is not complete.
    package var exchange: Duration? { processing.flatMap { processing in transfer.map { processing + $0 } } }
}

extension LevelResult {
    /// Returns the result of a probe that was redirected to another host: the handshake of the target, if it has made one, the exchange
    /// with the other host, and the sums of the durations.
    func redirected(_ last: LevelResult) -> LevelResult {
        var result = last
        if tls != nil { (result.tls, result.handshakeEnd) = (tls, handshakeEnd) }
        result.answerNanoseconds = Self.sum(answerNanoseconds, last.answerNanoseconds)
        result.handshakeNanoseconds = Self.sum(handshakeNanoseconds, last.handshakeNanoseconds)
        result.furtherConnectNanoseconds = Self.sum(furtherConnectNanoseconds, last.furtherConnectNanoseconds)
        result.tunnelNanoseconds = Self.sum(tunnelNanoseconds, last.tunnelNanoseconds)
        // Without the last response, the exchange is not complete.
        result.processingNanoseconds = last.processingNanoseconds.flatMap { Self.sum(processingNanoseconds, $0) }
        result.transferNanoseconds = last.transferNanoseconds.flatMap { Self.sum(transferNanoseconds, $0) }
        result.bytesSent = Self.sum(bytesSent, last.bytesSent)
        result.bytesReceived = Self.sum(bytesReceived, last.bytesReceived)
        return result
    }

    /// Notes the progress of the connection at the deadline; `nil` if it is not known.
    mutating func note(_ progress: ConnectionProgress?) {
        self.progress = progress
        isAcknowledged = progress.map { $0.unacknowledged == 0 && !$0.hasUnsentBytes } ?? true
        hasGap = progress.map { $0.outOfOrder > 0 } ?? false
    }

    /// Adds a connection to another host, to which a redirect led.
    mutating func addConnection(_ duration: Duration) {
        furtherConnectNanoseconds = Self.sum(furtherConnectNanoseconds, duration.saturatingNanoseconds)
    }

    // Recordings have these numbers.
    private static func sum(_ first: Int, _ second: Int) -> Int {
        let (sum, overflow) = first.addingReportingOverflow(second)
        return overflow ? .max : sum
    }

    private static func sum(_ first: Int64?, _ second: Int64?) -> Int64? {
        guard let first, let second else { return first ?? second }
        return first.addingSaturated(second)
    }
}
