/// The time after a plain server's first response in which no request follows on its connection.
///
/// A server that sends bytes which nobody asked for sends them shortly after its response. If the next request is on its way already, these
/// bytes are taken for its response, and nobody can tell. So the second request to a server waits, once in a session: the bytes are
/// there before it is sent (``IdleSockets/hasSurplus(_:ssl:)``), and ``SurplusServers`` knows the server from then on.
struct QuietPeriods: Sendable {
    /// Nanoseconds.
    static let duration: Int64 = 5_000_000
    static let maximumCount = 4_096

    private var observed: Set<SurplusServers.Server> = []
    private var current: [(authority: String, end: Int64)] = []

    /// A server's first response has ended; `url` is that of its request.
    mutating func begin(with server: SurplusServers.Server, url: String, now: Int64) {
        guard !observed.contains(server) else { return }
        if observed.count >= QuietPeriods.maximumCount { observed.removeAll() }
        observed.insert(server)
        current.removeAll { $0.end <= now }
        current.append((QuietPeriods.authority(of: url), now + QuietPeriods.duration))
    }

    /// When a request may be sent; `nil`: at once.
    mutating func end(for url: String, now: Int64) -> Int64? {
        guard !current.isEmpty else { return nil }
        current.removeAll { $0.end <= now }
        guard !current.isEmpty else { return nil }
        let authority = QuietPeriods.authority(of: url)
        return current.last { $0.authority == authority }?.end
    }

    /// Scheme, host and port of an absolute URL, as it is written.
    private static func authority(of url: String) -> String {
        var slashes = 0
        return String(
            url.prefix {
                if $0 == "/" { slashes += 1 }
                return slashes < 3 && $0 != "?"
            })
    }
}
