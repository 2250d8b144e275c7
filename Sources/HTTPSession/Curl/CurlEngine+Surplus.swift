internal import CCurl
internal import EventLoop

/// What an engine knows of servers that send bytes which no request asked for.
struct SurplusRecord {
    var servers = SurplusServers()
    var quietPeriods = QuietPeriods()
    /// Attempts that have begun and wait for the end of a quiet period, outside of the multi handle.
    var waiting: [(transfer: CurlTransfer, end: Int64)] = []
    /// The end of the earliest wait.
    var deadline: Int64 { waiting.lazy.map(\.end).min() ?? .max }
}

extension CurlEngine {
    /// A server has sent bytes that no request asked for.
    func noteSurplus(of server: SurplusServers.Server) { surplus.servers.insert(server, now: MonotonicClock.now()) }

    func isSurplusServer(_ server: SurplusServers.Server) -> Bool {
        !surplus.servers.isEmpty && surplus.servers.contains(server, now: MonotonicClock.now())
    }

    /// An exchange went well, and its handle is still in the multi handle.
    func noteConnection(of transfer: CurlTransfer) {
        guard let connection = transfer.connectionInUse?.connection else { return }
        sockets.noteEnd(on: connection)
        guard transfer.reused == nil else { return transfer.lookBehindResponse() }
        guard !transfer.ending.isSecure, !transfer.madeSockets.isEmpty, transfer.ending.keepsConnection else { return }
        surplus.quietPeriods.begin(
            with: SurplusServers.Server(connection), url: transfer.plan.url, now: MonotonicClock.now())
    }

    /// Whether an attempt waits for the end of its server's quiet period; it is added to the multi handle then.
    func waitsForQuiet(_ transfer: CurlTransfer, now: Int64) -> Bool {
        guard !transfer.plan.needsFreshConnection, !transfer.plan.isSecure,
            let end = surplus.quietPeriods.end(for: transfer.plan.url, now: now)
        else { return false }
        surplus.waiting.append((transfer, end))
        return true
    }

    /// The attempts whose wait is over.
    func takeQuiet(now: Int64) -> [CurlTransfer] {
        guard !surplus.waiting.isEmpty, surplus.deadline <= now else { return [] }
        let due = surplus.waiting.filter { $0.end <= now }.map(\.transfer)
        surplus.waiting.removeAll { $0.end <= now }
        return due
    }
}
