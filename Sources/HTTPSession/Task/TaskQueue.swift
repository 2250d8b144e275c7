package import ByteComparison

/// Decides which waiting task may start: by priority, then in order of arrival. The session, each host, and concurrent name
/// lookups have limits.
///
/// libcurl receives only the tasks that may run, because thousands of waiting handles in a multi handle cost time in every turn.
package struct TaskQueue: Sendable {
    /// The destination of transfers. Transfers to equal hosts may share connections.
    package struct Host: Hashable, Sendable {
        /// The hash of the other fields, computed once: the queue looks a host up a dozen times for each task.
        private let fingerprint: Int
        @ExactString package private(set) var scheme: String
        @ExactString package private(set) var name: String
        package let port: Int
        /// Whether the name has to be resolved: it is not an address, and no override exists.
        package let needsLookup: Bool
        /// Whether each transfer uses a connection of its own, even if the host multiplexes.
        package let isExclusive: Bool

        package init(scheme: String, name: String, port: Int, needsLookup: Bool, isExclusive: Bool = false) {
            self.scheme = scheme
            self.name = name
            self.port = port
            self.needsLookup = needsLookup
            self.isExclusive = isExclusive
            var hasher = Hasher()
            hasher.combine(_scheme)
            hasher.combine(_name)
            hasher.combine(port)
            hasher.combine(isExclusive)
            fingerprint = hasher.finalize()
        }

        package func hash(into hasher: inout Hasher) { hasher.combine(fingerprint) }

        /// This host, for transfers with connections of their own.
        package var exclusive: Host { isExclusive ? self : sibling }
        /// The other line to the same host.
        fileprivate var sibling: Host {
            Host(scheme: scheme, name: name, port: port, needsLookup: needsLookup, isExclusive: !isExclusive)
        }
    }

    package typealias ID = UInt64

    package struct Limits: Hashable, Sendable {
        package var total: Int
        package var perHost: Int
        /// The most concurrent streams to a host that has spoken HTTP/2.
        package var perMultiplexedHost: Int
        package var lookups: Int
        /// The lifetime of a lookup's result (`CURLOPT_DNS_CACHE_TIMEOUT`), in nanoseconds.
        package var lookupLifetime: Int64
        /// The time for which the thread of an abandoned lookup counts as busy, in nanoseconds: resolv.conf(5) allows 5 s per
        /// server.
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
        /// Whether a connection to the host speaks HTTP/2, even before the server has announced its stream limit.
        var hasHTTP2Connection = false
        var resolvedUntil = Int64.min
        /// The task that resolves the name; others of the same host wait for its result.
        var resolver: ID?

        init(host: Host) { self.host = host }

        var isIdle: Bool { running == 0 && waiting.allSatisfy { $0.first == nil } }
    }

    private let limits: Limits
    // An array, whose elements change in place: changing a dictionary's value costs a heap allocation.
    private var lines: [Line] = []
    /// The index of each host's line in ``lines``.
    private var indices: [Host: Int] = [:]
    /// The index of the line to which the latest task was added. Most tasks ask for the same line a dozen times, and many tasks have the same host.
    private var latestIndex = 0
    private var positions: [ID: (host: Host, priority: Int, ticket: UInt64)] = [:]
    private var lastTicket: UInt64 = 0
    private var hasExclusiveLines = false
    private var turn = 0
    private var lookups = 0
    private var abandonedLookups: [Int64] = []
    /// The number of running tasks.
    package private(set) var running = 0
    /// The number of suspended transfers that have yielded their places and have kept their connections.
    package private(set) var yielded = 0
    /// The number of waiting tasks.
    package var waiting: Int { positions.count }

    package init(limits: Limits) { self.limits = limits }

    /// Adds a task at the end of its host's line, or at the front.
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
        positions[id] = (host, priority.rawValue, lastTicket)
    }

    private mutating func line(to host: Host) -> Int {
        if let index = index(of: host) {
            latestIndex = index
            return index
        }
        latestIndex = lines.count
        indices[host] = lines.count
        lines.append(Line(host: host))
        if host.isExclusive { hasExclusiveLines = true }
        return lines.count - 1
    }

    private func index(of host: Host) -> Int? {
        latestIndex < lines.count && lines[latestIndex].host == host ? latestIndex : indices[host]
    }

    /// Removes a waiting task. - Returns: whether it was waiting.
    @discardableResult
    package mutating func remove(_ id: ID) -> Bool {
        guard let position = positions.removeValue(forKey: id) else { return false }
        guard let index = index(of: position.host) else { return true }
        lines[index].waiting[position.priority].remove(position.ticket)
        removeIfIdle(index)
        return true
    }

    /// Returns the next task that may start. It then counts as running.
    package mutating func admit(now: Int64) -> ID? {
        guard !positions.isEmpty else { return nil }
        // This runs even if no task may start: ``deadline`` must not stay in the past.
        abandonedLookups.removeAll { $0 <= now }
        guard running + yielded < limits.total else { return nil }
        for priority in TransferRequest.Priority.allCases.reversed() {
            // The hosts take turns, so that one with a long line does not delay the others.
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
                positions[id] = nil
                running += 1
                return id
            }
        }
        return nil
    }

    /// The waiting tasks of a host.
    package func waiting(for host: Host) -> [ID] { positions.filter { $0.value.host == host }.map(\.key) }

    /// The time at which ``admit(now:)`` may return another task without a further event; `nil` if only an event can change that.
    package var deadline: Int64? { positions.isEmpty ? nil : abandonedLookups.min() }

    private func isFull(_ index: Int) -> Bool {
        lines[index].isMultiplexed
            ? lines[index].running >= limits.perMultiplexedHost
            : lines[index].running + siblingConnections(of: index) >= limits.perHost
    }

    /// Whether a transfer to this host holds a place for which a task waits.
    package func isWanted(_ host: Host) -> Bool {
        guard !positions.isEmpty, running + yielded < limits.total else { return false }
        return [host, host.sibling].contains { host in
            guard let index = indices[host] else { return false }
            return isFull(index) && lines[index].waiting.contains { $0.first != nil }
        }
    }

    /// Frees the place of a suspended transfer, which keeps its connection. It counts no longer for its host, but for the total.
    ///
    /// - Returns: Whether it has done so: not for a task that resolves the name of its host.
    package mutating func yield(_ id: ID, from host: Host) -> Bool {
        guard running > 0, let index = index(of: host), lines[index].running > 0, lines[index].resolver != id else {
            return false
        }
        running -= 1
        lines[index].running -= 1
        yielded += 1
        return true
    }

    /// A transfer that has yielded its place has ended.
    package mutating func releaseYielded() { yielded -= 1 }

    private func mayStart(_ index: Int, _ now: Int64) -> Bool {
        guard !isFull(index) else { return false }
        guard needsLookup(index, now) else { return true }
        return lines[index].resolver == nil && lookups + abandonedLookups.count < limits.lookups
    }

    /// The host's connections that the other line to it uses.
    private func siblingConnections(of index: Int) -> Int {
        guard hasExclusiveLines, let sibling = indices[lines[index].host.sibling] else { return 0 }
        return lines[sibling].isMultiplexed ? min(1, lines[sibling].running) : lines[sibling].running
    }

    private func needsLookup(_ index: Int, _ now: Int64) -> Bool {
        lines[index].host.needsLookup && lines[index].resolvedUntil <= now
    }

    /// The task has an address or a connection: its host's name is resolved.
    package mutating func nameResolved(_ id: ID, to host: Host, now: Int64) {
        guard host.needsLookup, let index = index(of: host) else { return }
        lines[index].resolvedUntil = now + limits.lookupLifetime
        endLookup(id, index)
    }

    /// Whether the task is the one that resolves the host's name.
    package func isResolving(_ id: ID, _ host: Host) -> Bool { index(of: host).map { lines[$0].resolver == id } == true }

    /// Expires the results of all lookups: another network may have other name servers.
    package mutating func invalidateNames() {
        for index in lines.indices where lines[index].host.needsLookup { lines[index].resolvedUntil = .min }
    }

    /// Records whether the host's latest response came over HTTP/2; if so, its requests share a connection.
    package mutating func setMultiplexed(_ host: Host, _ isMultiplexed: Bool = true) {
        guard !host.isExclusive, let index = index(of: host) else { return }
        lines[index].isMultiplexed = isMultiplexed
        // An HTTP/2 connection may still exist after a response over HTTP/1.1.
        if isMultiplexed { lines[index].hasHTTP2Connection = true }
    }

    /// Records that a connection to the host speaks HTTP/2.
    package mutating func noteHTTP2(_ host: Host) {
        if let index = index(of: host) { lines[index].hasHTTP2Connection = true }
    }

    /// Whether connections to the host may be shared.
    package func sharesConnections(_ host: Host) -> Bool {
        index(of: host).map { lines[$0].isMultiplexed || lines[$0].hasHTTP2Connection } == true
    }

    /// Frees the slot of a task. `isAbandoned`: the transfer was abandoned, possibly during its name lookup.
    package mutating func release(_ id: ID, from host: Host, isAbandoned: Bool, now: Int64) {
        guard running > 0, let index = index(of: host), lines[index].running > 0 else { return }
        running -= 1
        lines[index].running -= 1
        if lines[index].resolver == id {
            endLookup(id, index)
            if isAbandoned { abandonedLookups.append(now + limits.abandonedLookup) }
        }
        removeIfIdle(index)
    }

    private mutating func endLookup(_ id: ID, _ index: Int) {
        guard lines[index].resolver == id else { return }
        lines[index].resolver = nil
        lookups -= 1
    }

    /// Removes a host without tasks if there are many. Few hosts are kept, for what is known of them. The last line moves to the
    /// freed index.
    private mutating func removeIfIdle(_ index: Int) {
        guard lines.count > 1_000, lines[index].isIdle else { return }
        indices[lines[index].host] = nil
        let last = lines.removeLast()
        guard index < lines.count else { return }
        lines[index] = last
        indices[last.host] = index
    }
}

/// A first-in, first-out queue with removal from the middle. A removed entry stays until its turn. Its ticket identifies it,
/// because the same task may be enqueued again before that.
private struct FIFO: Sendable {
    struct Entry: Sendable {
        let id: UInt64
        let ticket: UInt64
    }

    private var entries: [Entry] = []
    private var head = 0
    /// The entries before all of ``entries``, the first one last.
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
        // Removed entries are dropped, so that they do not pile up behind a first entry that waits for long.
        guard removed.count > 64, removed.count * 2 > entries.count - head + preferred.count else { return }
        entries = entries[head...].filter { !removed.contains($0.ticket) }
        preferred.removeAll { removed.contains($0.ticket) }
        head = 0
        removed = []
    }

    /// Skips removed entries, so that the first entry is a waiting one.
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
