internal import ByteComparison
internal import Pacing

/// The servers that have sent unsolicited bytes. A client closes such a connection, because the limits of its messages are ambiguous (RFC 9112
/// section 9.2). ``CurlEngine`` sends no second request on any connection to these servers for ``lifetime``.
struct SurplusServers: Sendable {
    /// The remote end of a connection: a server or a proxy.
    struct Server: Hashable, Sendable {
        @ExactString var address: String
        var port: Int32

        init(_ connection: IdleSockets.Connection) {
            address = connection.remoteAddress
            port = connection.remotePort
        }
    }

    /// The time for which a server is remembered, in nanoseconds.
    static let lifetime: Int64 = 600 * 1_000_000_000
    static let maximumCount = 256

    private var expirations: [Server: Int64] = [:]

    var isEmpty: Bool { expirations.isEmpty }

    mutating func insert(_ server: Server, now: Int64) {
        if expirations.count >= SurplusServers.maximumCount {
            expirations = expirations.filter { $0.value > now }
            // The oldest entry is evicted.
            if expirations.count >= SurplusServers.maximumCount, let oldest = expirations.min(by: { $0.value < $1.value }) {
                expirations[oldest.key] = nil
            }
        }
        expirations[server] = now.addingSaturated(SurplusServers.lifetime)
    }

    func contains(_ server: Server, now: Int64) -> Bool { expirations[server].map { $0 > now } ?? false }
}
