internal import CCurl
internal import EventLoop

/// The record of servers that send unsolicited bytes, and of the attempts that wait because of them.
struct SurplusRecord {
    var servers = SurplusServers()
    var quietPeriods = QuietPeriods()
    /// The attempts that have begun and wait for the end of a quiet period, outside of the multi handle.
    var waiting: [(transfer: CurlTransfer, end: Int64)] = []
    /// The end of the earliest wait.
    var deadline: Int64 { waiting.lazy.map(\.end).min() ?? .max }
}

extension CurlEngine {
    /// Records that a server has sent unsolicited bytes.
    func recordSurplus(of server: SurplusServers.Server) { surplus.servers.insert(server, now: MonotonicClock.now()) }

    func isSurplusServer(_ server: SurplusServers.Server) -> Bool {
        !surplus.servers.isEmpty && surplus.servers.contains(server, now: MonotonicClock.now())
    }

    /// Records the connection of a successful exchange, whose handle is still in the multi handle.
    func recordConnection(of transfer: CurlTransfer) {
        guard let connection = transfer.connectionInUse?.connection else { return }
        sockets.recordEnd(on: connection)
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

    /// Removes and returns the attempts whose wait has ended.
    func takeQuiet(now: Int64) -> [CurlTransfer] {
        guard !surplus.waiting.isEmpty, surplus.deadline <= now else { return [] }
        let due = surplus.waiting.filter { $0.end <= now }.map(\.transfer)
        surplus.waiting.removeAll { $0.end <= now }
        return due
    }
}
