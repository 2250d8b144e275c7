package import Certificates

/// The result of the levels of a probe above TCP: the TLS handshake and the HTTP exchange on one connection.
package struct LevelResult: Hashable, Sendable, Codable {
    /// How the levels ended.
    package enum Ending: String, Hashable, Sendable, Codable {
        /// All levels are complete, whatever the server has answered.
        case completed
        /// The bytes of the server violate the protocol, or this side ends the level for another reason.
        case failed
        /// The probe's deadline was reached.
        case deadline
        /// The server has closed the connection.
        case closed
        /// The connection has failed with an errno.
        case error
    }

    package var ending = Ending.completed
    /// The errno of the connection; 0 if there is none.
    package var errno: Int32 = 0
    package var tls: TLSHandshakeFacts?
    package var http: HTTPResponseFacts?
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
    /// Whether the connection was limited to small segments (TCP_MAXSEG, tcp(7)).
    package var hasSmallSegments = false
    /// The destinations of the redirects that were followed, in order.
    package var redirects: [String] = []
    /// The reason why this machine could not begin the handshake; `nil` if it could.
    package var localFailure: String?

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
    /// The time from the request to the end of the response; `nil` if it is not complete.
    package var exchange: Duration? { processing.flatMap { processing in transfer.map { processing + $0 } } }
}
