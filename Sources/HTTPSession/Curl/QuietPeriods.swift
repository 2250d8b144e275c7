internal import ByteComparison

/// The time after the first response of a server without TLS in which no request is sent on its connection.
///
/// A server that sends unsolicited bytes sends them shortly after its response. If the next request has been sent by then, these bytes are taken
/// for its response, and this cannot be detected. So the second request to a server waits, once in a session. The bytes arrive before the request
/// is sent (``IdleSockets/hasSurplus(_:ssl:)``), and ``SurplusServers`` has the server from then on.
struct QuietPeriods: Sendable {
    /// The length of a period, in nanoseconds.
    static let duration: Int64 = 5_000_000
    static let maximumCount = 4_096

    private var observed: Set<SurplusServers.Server> = []
    private var current: [(authority: String, end: Int64)] = []

    /// Begins a period when a server's first response has ended. `url` is the URL of its request.
    mutating func begin(with server: SurplusServers.Server, url: String, now: Int64) {
        guard !observed.contains(server) else { return }
        if observed.count >= QuietPeriods.maximumCount { observed.removeAll() }
        observed.insert(server)
        current.removeAll { $0.end <= now }
        current.append((QuietPeriods.authority(of: url), now + QuietPeriods.duration))
    }

    /// The time at which a request may be sent; `nil` if it may be sent at once.
    mutating func end(for url: String, now: Int64) -> Int64? {
        guard !current.isEmpty else { return nil }
        current.removeAll { $0.end <= now }
        guard !current.isEmpty else { return nil }
        let authority = QuietPeriods.authority(of: url)
        return current.last { $0.authority.isExactly(authority) }?.end
    }

    /// The scheme, host and port of an absolute URL, unchanged.
    private static func authority(of url: String) -> String {
        var slashes = 0
        return String(
            url.prefix {
                if $0 == "/" { slashes += 1 }
                return slashes < 3 && $0 != "?"
            })
    }
}
