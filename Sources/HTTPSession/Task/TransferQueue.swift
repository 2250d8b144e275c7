/// Which waiting task may start: by priority, then in the order they came, within the session's and each host's limits, and with a
/// limited number of name look-ups under way.
///
/// It stands before libcurl, which is given only what may run: thousands of handles that wait inside a multi handle cost it time at
/// every turn.
package struct TransferQueue: Sendable {
    /// Where transfers go to: they share connections when this is equal.
    package struct Host: Hashable, Sendable {
        /// Of the other fields, computed once: the queue looks a host up a dozen times for each task.
        private let fingerprint: Int
        package let scheme: String
        package let name: String
        package let port: Int
        /// Whether the name has to be looked up: it is no address and not overridden.
        package let needsLookup: Bool
        /// Whether each transfer has a connection of its own there, also where the host multiplexes.
        package let isAlone: Bool

        package init(scheme: String, name: String, port: Int, needsLookup: Bool, isAlone: Bool = false) {
            self.scheme = scheme
            self.name = name
            self.port = port
            self.needsLookup = needsLookup
            self.isAlone = isAlone
            var hasher = Hasher()
            hasher.combine(scheme)
            hasher.combine(name)
            hasher.combine(port)
            hasher.combine(isAlone)
            fingerprint = hasher.finalize()
        }

        package func hash(into hasher: inout Hasher) { hasher.combine(fingerprint) }

        /// The same host for those that are alone.
        package var alone: Host { isAlone ? self : sibling }
        /// The other line to the same host.
        fileprivate var sibling: Host {
            Host(scheme: scheme, name: name, port: port, needsLookup: needsLookup, isAlone: !isAlone)
        }
    }

    package typealias ID = UInt64

    package struct Limits: Hashable, Sendable {
        package var total: Int
        package var perHost: Int
        /// Streams at a time to a host that has shown to speak HTTP/2.
        package var perMultiplexedHost: Int
        package var lookups: Int
        /// How long a look-up's result is trusted (`CURLOPT_DNS_CACHE_TIMEOUT`), in nanoseconds.
        package var lookupLifetime: Int64
        /// How long the thread of an abandoned look-up is taken to be busy, in nanoseconds: resolv.conf(5) gives a server 5 s.
        package var abandonedLookup: Int64

        package init(
            total: Int, perHost: Int, perMultiplexedHost: Int = 100, lookups: Int, lookupLifetime: Int64 = 60_000_000_000,
            abandonedLookup: Int64 = 10_000_000_000
        ) {
            self.total = total
            self.perHost = perHost
            self.perMultiplexedHost = perMultiplexedHost
            self.lookups = lookups
            self.lookupLifetime = lookupLifetime
            self.abandonedLookup = abandonedLookup
        }
    }

    private struct Line: Sendable {
        let host: Host
        var waiting = [FIFO](repeating: FIFO(), count: TransferRequest.Priority.allCases.count)
        var running = 0
        var isMultiplexed = false
        /// Whether it will be, when the server has said how many streams it takes.
        var speaksHTTP2 = false
        var resolvedUntil = Int64.min
        /// The task that looks the name up: others of the same host wait for its result.
        var resolver: ID?

        init(host: Host) { self.host = host }

        var isIdle: Bool { running == 0 && waiting.allSatisfy { $0.first == nil } }
    }

    private let limits: Limits
    // Each is changed where it stands: a dictionary's values are changed through a heap allocation each.
    private var lines: [Line] = []
    /// Where each host's line stands in ``lines``.
    private var indices: [Host: Int] = [:]
    private var places: [ID: (host: Host, priority: Int, ticket: UInt64)] = [:]
    private var lastTicket: UInt64 = 0
    private var hasLinesAlone = false
    private var turn = 0
    private var lookups = 0
    private var abandoned: [Int64] = []
    /// Tasks under way.
    package private(set) var running = 0
    /// Tasks that wait.
    package var waiting: Int { places.count }

    package init(limits: Limits) { self.limits = limits }

    /// Puts a task at the end of its line, or before it.
    package mutating func add(_ id: ID, to host: Host, priority: TransferRequest.Priority, isFirst: Bool = false) {
        remove(id)
        let index = line(to: host)
        lastTicket += 1
        let entry = FIFO.Entry(id: id, ticket: lastTicket)
        if isFirst {
            lines[index].waiting[priority.rawValue].prepend(entry)
        } else {
            lines[index].waiting[priority.rawValue].append(entry)
        }
        places[id] = (host, priority.rawValue, lastTicket)
    }

    private mutating func line(to host: Host) -> Int {
        if let index = indices[host] { return index }
        indices[host] = lines.count
        lines.append(Line(host: host))
        if host.isAlone { hasLinesAlone = true }
        return lines.count - 1
    }

    /// Takes a waiting task out. - Returns: whether it was there.
    @discardableResult
    package mutating func remove(_ id: ID) -> Bool {
        guard let place = places.removeValue(forKey: id) else { return false }
        guard let index = indices[place.host] else { return true }
        lines[index].waiting[place.priority].remove(place.ticket)
        forget(index)
        return true
    }

    /// The next task that may start, which then counts as running.
    package mutating func admit(now: Int64) -> ID? {
        guard !places.isEmpty else { return nil }
        // Also where nothing may start: ``deadline`` must not stay in the past.
        abandoned.removeAll { $0 <= now }
        guard running < limits.total else { return nil }
        for priority in TransferRequest.Priority.allCases.reversed() {
            // Each host in turn, so that one with a long line does not keep the others waiting.
            for offset in lines.indices {
                let index = (turn + offset) % lines.count
                guard let id = lines[index].waiting[priority.rawValue].first, mayStart(index, now) else { continue }
                turn = index + 1
                lines[index].waiting[priority.rawValue].removeFirst()
                lines[index].running += 1
                if needsLookup(index, now) {
                    lines[index].resolver = id
                    lookups += 1
                }
                places[id] = nil
                running += 1
                return id
            }
        }
        return nil
    }

    /// The tasks in the host's line.
    package func waiting(for host: Host) -> [ID] { places.filter { $0.value.host == host }.map(\.key) }

    /// When ``admit(now:)`` may give more without another event; `nil`: only an event can change it.
    package var deadline: Int64? { places.isEmpty ? nil : abandoned.min() }

    private func mayStart(_ index: Int, _ now: Int64) -> Bool {
        if lines[index].isMultiplexed {
            guard lines[index].running < limits.perMultiplexedHost else { return false }
        } else {
            guard lines[index].running + siblingConnections(of: index) < limits.perHost else { return false }
        }
        guard needsLookup(index, now) else { return true }
        return lines[index].resolver == nil && lookups + abandoned.count < limits.lookups
    }

    /// What the other line to the same host has taken of the host's connections.
    private func siblingConnections(of index: Int) -> Int {
        guard hasLinesAlone, let sibling = indices[lines[index].host.sibling] else { return 0 }
        return lines[sibling].isMultiplexed ? min(1, lines[sibling].running) : lines[sibling].running
    }

    private func needsLookup(_ index: Int, _ now: Int64) -> Bool {
        lines[index].host.needsLookup && lines[index].resolvedUntil <= now
    }

    /// The task has an address to connect to, or a connection: its host's name is known.
    package mutating func lookedUp(_ id: ID, to host: Host, now: Int64) {
        guard host.needsLookup, let index = indices[host] else { return }
        lines[index].resolvedUntil = now + limits.lookupLifetime
        endLookup(id, index)
    }

    /// Whether the task is the one that looks its host's name up.
    package func looksUp(_ id: ID, _ host: Host) -> Bool { indices[host].map { lines[$0].resolver == id } == true }

    /// The network is another one: so may be what its name servers say.
    package mutating func forgetNames() {
        for index in lines.indices where lines[index].host.needsLookup { lines[index].resolvedUntil = .min }
    }

    /// Whether the host's latest answer came over HTTP/2: its requests share a connection then.
    package mutating func multiplexes(_ host: Host, _ isMultiplexed: Bool = true) {
        guard !host.isAlone, let index = indices[host] else { return }
        lines[index].isMultiplexed = isMultiplexed
        // A connection of HTTP/2 may be there yet.
        if isMultiplexed { lines[index].speaksHTTP2 = true }
    }

    /// A connection to the host speaks HTTP/2.
    package mutating func speaksHTTP2(_ host: Host) {
        if let index = indices[host] { lines[index].speaksHTTP2 = true }
    }

    /// Whether connections to the host may be shared.
    package func mayShare(_ host: Host) -> Bool {
        indices[host].map { lines[$0].isMultiplexed || lines[$0].speaksHTTP2 } == true
    }

    /// The task is no longer under way. `isAbandoned`: it was given up, maybe while its name was looked up.
    package mutating func left(_ id: ID, from host: Host, isAbandoned: Bool, now: Int64) {
        guard running > 0, let index = indices[host], lines[index].running > 0 else { return }
        running -= 1
        lines[index].running -= 1
        if lines[index].resolver == id {
            endLookup(id, index)
            if isAbandoned { abandoned.append(now + limits.abandonedLookup) }
        }
        forget(index)
    }

    private mutating func endLookup(_ id: ID, _ index: Int) {
        guard lines[index].resolver == id else { return }
        lines[index].resolver = nil
        lookups -= 1
    }

    /// A host without tasks is kept while there are few, for what is known of it. The last line takes its place.
    private mutating func forget(_ index: Int) {
        guard lines.count > 1_000, lines[index].isIdle else { return }
        indices[lines[index].host] = nil
        let last = lines.removeLast()
        guard index < lines.count else { return }
        lines[index] = last
        indices[last.host] = index
    }
}

/// First in, first out, with removal from the middle. What is removed stays until its turn comes; it is known by its ticket, because
/// the same task may be back in line before that.
private struct FIFO: Sendable {
    struct Entry: Sendable {
        let id: UInt64
        let ticket: UInt64
    }

    private var entries: [Entry] = []
    private var head = 0
    /// Those that stand before all of ``entries``, the last one first.
    private var preferred: [Entry] = []
    private var removed: Set<UInt64> = []

    var first: UInt64? { preferred.last?.id ?? (head < entries.count ? entries[head].id : nil) }

    mutating func append(_ entry: Entry) { entries.append(entry) }

    mutating func prepend(_ entry: Entry) { preferred.append(entry) }

    mutating func removeFirst() {
        if preferred.popLast() == nil { head += 1 }
        skip()
    }

    mutating func remove(_ ticket: UInt64) {
        removed.insert(ticket)
        skip()
        // A first one that waits for long does not make a heap of those behind it that have gone.
        guard removed.count > 64, removed.count * 2 > entries.count - head + preferred.count else { return }
        entries = entries[head...].filter { !removed.contains($0.ticket) }
        preferred.removeAll { removed.contains($0.ticket) }
        head = 0
        removed = []
    }

    /// The first one is always one that waits.
    private mutating func skip() {
        while let entry = preferred.last {
            guard removed.remove(entry.ticket) != nil else { return }
            preferred.removeLast()
        }
        while head < entries.count, removed.remove(entries[head].ticket) != nil { head += 1 }
        if head > 32, head * 2 > entries.count {
            entries.removeFirst(head)
            head = 0
        }
    }
}
