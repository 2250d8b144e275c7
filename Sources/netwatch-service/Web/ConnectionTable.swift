/// The open connections by kind and address, and the choice of those that are closed for others. A limit of connections never keeps
/// clients out that send requests: the oldest waiting connection is closed for them.
struct ConnectionTable: Sendable {
    /// The decision about a new connection or stream.
    enum Admission: Hashable, Sendable {
        /// The connection is accepted. Another one, which makes no progress, is closed for it.
        case accepted(replacing: Int?)
        /// Only requests for the state of the service are answered.
        case reserved(replacing: Int?)
        case refused
    }

    /// The origin of a connection.
    enum Client: Hashable, Sendable {
        /// A program of this machine, by the Unix socket.
        case socket
        /// A program of this machine. All of them have the same address.
        case loopback
        case address(String)
    }

    private enum Kind: Hashable, Sendable {
        /// No request is complete yet.
        case waiting
        case requests, stream, reserved
    }

    private struct Entry: Sendable {
        var client: Client
        var kind: Kind
        var idleSince: Int64?
        /// Whether a request was complete.
        var hasRequested = false
    }

    private let limits: WebLimits
    private var entries: [Int: Entry] = [:]
    private var numberOf: [Client: Int] = [:]
    private var numberOfKind: [Kind: Int] = [:]
    /// The connections in the order in which they arrived, from `firstArrival` on; not all of them still wait.
    private var arrivals: [Int] = []
    private var firstArrival = 0

    init(limits: WebLimits) { self.limits = limits }

    /// The number of connections for pages and documents.
    var requests: Int { numberOfKind[.requests] ?? 0 }

    /// The number of streams.
    var streams: Int { numberOfKind[.stream] ?? 0 }

    private var reserved: Int { numberOfKind[.reserved] ?? 0 }
    private var waiting: Int { numberOfKind[.waiting] ?? 0 }

    /// Decides about a new connection, and enters it if it is not refused. The one that it replaces is removed; the caller closes it.
    mutating func admit(_ id: Int, _ client: Client, at now: Int64) -> Admission {
        var victim: Int?
        if case .address = client, (numberOf[client] ?? 0) >= limits.connectionsOfAddress {
            victim = oldest(.waiting, of: client) ?? oldest(.requests, of: client)
            guard victim != nil else { return .refused }
        } else if waiting >= limits.waiting {
            victim = oldestWaiting()
        }
        if let victim { remove(victim) }
        enter(id, Entry(client: client, kind: .waiting, idleSince: now))
        arrivals.append(id)
        forgetArrivals()
        return .accepted(replacing: victim)
    }

    /// Decides about a connection whose first request is complete, or too long to wait for it. It is removed if it is refused. The one
    /// that it replaces is removed; the caller closes it.
    mutating func beginRequests(_ id: Int, at now: Int64) -> Admission {
        guard let entry = entries[id], entry.kind == .waiting else { return .refused }
        remove(id)
        let admission = placeForRequests
        switch admission {
        case .accepted(let victim):
            if let victim { remove(victim) }
            enter(id, Entry(client: entry.client, kind: .requests, idleSince: now))
        case .reserved(let victim):
            if let victim { remove(victim) }
            enter(id, Entry(client: entry.client, kind: .reserved, idleSince: now))
        case .refused: break
        }
        return admission
    }

    private mutating func oldestWaiting() -> Int? {
        while firstArrival < arrivals.count {
            let id = arrivals[firstArrival]
            firstArrival += 1
            if entries[id]?.kind == .waiting { return id }
        }
        return nil
    }

    /// Removes the arrivals that wait no longer, when they are the majority.
    private mutating func forgetArrivals() {
        guard arrivals.count > 2 * waiting + 64 else { return }
        arrivals = arrivals[firstArrival...].filter { entries[$0]?.kind == .waiting }
        firstArrival = 0
    }

    private mutating func enter(_ id: Int, _ entry: Entry) {
        entries[id] = entry
        numberOf[entry.client, default: 0] += 1
        numberOfKind[entry.kind, default: 0] += 1
    }

    private var placeForRequests: Admission {
        guard requests >= limits.connections else { return .accepted(replacing: nil) }
        if let victim = leastUseful { return .accepted(replacing: victim) }
        guard reserved >= limits.reserve else { return .reserved(replacing: nil) }
        return oldest(.reserved).map { .reserved(replacing: $0) } ?? .refused
    }

    /// The connection for requests that is closed for another one: the oldest of the client with the most that make no progress. A head that
    /// is too long to wait for, and may never end, does not close a connection that has sent requests.
    private var leastUseful: Int? {
        let idle = entries.filter { $0.value.kind == .requests && $0.value.idleSince != nil }
        let counts = Dictionary(idle.values.map { ($0.client, 1) }, uniquingKeysWith: +)
        func order(_ id: Int, _ entry: Entry) -> (Int, Int, Int64, Int) {
            (entry.hasRequested ? 1 : 0, -(counts[entry.client] ?? 0), entry.idleSince ?? 0, id)
        }
        return idle.min { order($0.key, $0.value) < order($1.key, $1.value) }?.key
    }

    /// The connection of a kind that has made no progress for the longest time, of a client if one is given.
    private func oldest(_ kind: Kind, of client: Client? = nil) -> Int? {
        var found: (id: Int, since: Int64)?
        for (id, entry) in entries where entry.kind == kind && (client == nil || entry.client == client) {
            guard let since = entry.idleSince else { continue }
            if let former = found, (former.since, former.id) < (since, id) { continue }
            found = (id, since)
        }
        return found?.id
    }

    /// Notes since when a connection makes no progress; `nil` if a request is answered.
    mutating func setIdle(_ id: Int, since: Int64?) {
        entries[id]?.idleSince = since
        if since == nil { entries[id]?.hasRequested = true }
    }

    /// Makes a connection a stream. If there are too many streams, one whose reader reads nothing is removed; the caller closes it.
    mutating func beginStream(_ id: Int) -> Admission {
        guard var entry = entries[id], entry.kind == .requests else { return .refused }
        var victim: Int?
        if streams >= limits.streams {
            victim = oldest(.stream)
            guard let victim else { return .refused }
            remove(victim)
        }
        remove(id)
        (entry.kind, entry.idleSince) = (.stream, nil)
        enter(id, entry)
        return .accepted(replacing: victim)
    }

    mutating func remove(_ id: Int) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        numberOfKind[entry.kind, default: 1] -= 1
        let number = (numberOf[entry.client] ?? 1) - 1
        numberOf[entry.client] = number > 0 ? number : nil
    }
}
