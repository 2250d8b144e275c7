/// The open connections by kind and address, and the choice of those that are closed for others. A limit of connections never keeps
/// clients out that send requests: the oldest waiting connection is closed for them.
struct ConnectionTable: Sendable {
    /// The decision about a new connection.
    enum Admission: Hashable, Sendable {
        case accepted
        /// Another connection, which waits for a request, is closed for the new one.
        case replaces(Int)
        /// Only requests for the state of the service are answered.
        case reserved
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

    fileprivate struct Entry: Sendable {
        var client: Client
        var isStream = false
        var isReserved = false
        var idleSince: Int64?
    }

    private let limits: WebLimits
    private var entries: [Int: Entry] = [:]
    private var numberOf: [Client: Int] = [:]
    private(set) var streams = 0
    private(set) var reserved = 0

    init(limits: WebLimits) { self.limits = limits }

    /// The number of connections for pages and documents.
    var requests: Int { entries.count - streams - reserved }

    /// Decides about a connection, and enters it if it is not refused. The caller removes the one that it replaces.
    mutating func admit(_ id: Int, _ client: Client, at now: Int64) -> Admission {
        var admission = Admission.accepted
        if case .address = client, (numberOf[client] ?? 0) >= limits.connectionsOfAddress {
            guard let victim = victim(of: client) else { return .refused }
            admission = .replaces(victim)
        } else if requests >= limits.connections {
            if let heaviest, let victim = victim(of: heaviest) {
                admission = .replaces(victim)
            } else if reserved < limits.reserve {
                admission = .reserved
            } else {
                return .refused
            }
        }
        entries[id] = Entry(client: client, isReserved: admission == .reserved, idleSince: now)
        numberOf[client, default: 0] += 1
        if admission == .reserved { reserved += 1 }
        return admission
    }

    /// The client with the most connections that wait for a request.
    private var heaviest: Client? {
        var waiting: [Client: Int] = [:]
        for entry in entries.values where entry.isReplaceable { waiting[entry.client, default: 0] += 1 }
        return waiting.max { $0.value < $1.value }?.key
    }

    /// The connection of a client that has waited for the longest time.
    private func victim(of client: Client) -> Int? {
        let waiting = entries.lazy.filter { $0.value.isReplaceable && $0.value.client == client }
        return waiting.min { ($0.value.idleSince ?? .max, $0.key) < ($1.value.idleSince ?? .max, $1.key) }?.key
    }

    /// Notes since when a connection waits for a request; `nil` if it answers one.
    mutating func setIdle(_ id: Int, since: Int64?) { entries[id]?.idleSince = since }

    /// Makes a connection a stream. - Returns: `false` if there are too many streams.
    mutating func beginStream(_ id: Int) -> Bool {
        guard let entry = entries[id], !entry.isStream, !entry.isReserved, streams < limits.streams else { return false }
        entries[id]?.isStream = true
        streams += 1
        return true
    }

    mutating func remove(_ id: Int) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        if entry.isStream { streams -= 1 }
        if entry.isReserved { reserved -= 1 }
        let number = (numberOf[entry.client] ?? 1) - 1
        numberOf[entry.client] = number > 0 ? number : nil
    }
}

extension ConnectionTable.Entry {
    fileprivate var isReplaceable: Bool { idleSince != nil && !isStream && !isReserved }
}
