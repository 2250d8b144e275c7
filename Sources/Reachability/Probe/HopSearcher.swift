internal import EventLoop
internal import Glibc
internal import Pacing

/// The connections of searches for answers from behind first hops (``HopSearch``), on the loop's thread and inside its network
/// namespace. Every search has a reply.
struct HopSearcher: ~Copyable {
    /// The tokens of the searcher's descriptors.
    private static let tokens: Range<UInt64> = (1 << 61)..<(1 << 62)
    /// The duration of a search in nanoseconds. It is less than the time that a silent probe leaves for questions.
    static let patience: Int64 = 650_000_000
    /// The time for which late answers are awaited, in nanoseconds. The kernel would send each SYN again after a second.
    static let lifetime: Int64 = 950_000_000
    /// The maximum number of sockets: 64, but at most an eighth of the descriptors that this process may open.
    private let limit = min(64, max(DescriptorUse.currentLimit / 8, 1))

    private struct Connection {
        let descriptor: Int32
        let hop: Neighbor.Key
        /// The hop limit; `nil` for a connection to a target that answered before.
        let hopLimit: Int?
        let target: Int?
        let address: IPAddress
        let started: Int64
    }

    private struct Running {
        let started: Int64
        var tokens: [UInt64] = []
        var isOver = false
    }

    private var connections: [UInt64: Connection] = [:]
    private var running: [Neighbor.Key: Running] = [:]
    private var next = HopSearcher.tokens.lowerBound

    deinit {
        for connection in connections.values { Glibc.close(connection.descriptor) }
    }

    /// Returns whether a ready descriptor's token belongs, or belonged, to the searcher.
    static func owns(_ token: UInt64) -> Bool { tokens.contains(token) }

    /// The time at which ``tick(on:now:)`` is due, in nanoseconds; `nil` if no search runs.
    var deadline: Int64? { running.values.map(Self.due).min() }

    private static func due(_ search: Running) -> Int64 {
        search.started.addingSaturated(search.isOver ? lifetime : patience)
    }

    /// Starts a search. One behind the same hop that waits for late answers ends.
    ///
    /// - Returns: the reply if no packet can be sent, otherwise `nil`.
    mutating func start(_ search: HopSearch, on loop: borrowing EventLoop, now: Int64) -> HopSearchReply? {
        finish(search.hop, on: loop)
        var started = Running(started: now)
        for limit in search.limits {
            open(search.silent, search.hop, hopLimit: limit, target: nil, &started, on: loop, now)
        }
        for other in search.others {
            open(other.destination, search.hop, hopLimit: nil, target: other.target.number, &started, on: loop, now)
        }
        guard !started.tokens.isEmpty else { return HopSearchReply(wasSent: false) }
        running[search.hop] = started
        return nil
    }

    private mutating func open(
        _ destination: HopSearch.Destination, _ hop: Neighbor.Key, hopLimit: Int?, target: Int?, _ search: inout Running,
        on loop: borrowing EventLoop, _ now: Int64
    ) {
        guard connections.count < limit, let descriptor = HopLimitedSocket.open(destination, hopLimit: hopLimit) else { return }
        do { try loop.add(descriptor, interest: .write, token: next) } catch {
            Glibc.close(descriptor)
            return
        }
        connections[next] = Connection(
            descriptor: descriptor, hop: hop, hopLimit: hopLimit, target: target, address: destination.address, started: now)
        search.tokens.append(next)
        next = next + 1 < Self.tokens.upperBound ? next + 1 : Self.tokens.lowerBound
    }

    /// Handles a descriptor that the loop reported.
    ///
    /// - Returns: the first hop and the answer; `nil` if there is none yet.
    mutating func ready(
        _ ready: EventLoop.Ready, on loop: borrowing EventLoop, now: Int64
    ) -> (hop: Neighbor.Key, reply: HopSearchReply)? {
        guard let connection = connections[ready.token] else { return nil }
        let answer = HopLimitedSocket.answer(of: connection.descriptor, connection.address.family)
        end(ready.token, on: loop)
        let sender: IPAddress
        switch answer {
        case .exceeded(let router): sender = router
        case .destination: sender = connection.address
        // The distance of a router that reports something else is not known: it may be the first hop, by another of its addresses.
        case .refused, nil: return nil
        }
        let found = HopSearchReply.Answer(
            sender, limit: connection.hopLimit, target: connection.target, roundTripNanoseconds: max(0, now - connection.started))
        return (connection.hop, HopSearchReply(found))
    }

    /// Ends the searches whose time is over, and the wait for late answers.
    mutating func tick(on loop: borrowing EventLoop, now: Int64) -> [(hop: Neighbor.Key, reply: HopSearchReply)] {
        guard let deadline, deadline <= now else { return [] }
        var replies: [(Neighbor.Key, HopSearchReply)] = []
        for (hop, search) in running.sorted(by: { $0.key.interface < $1.key.interface }) where Self.due(search) <= now {
            if search.isOver {
                finish(hop, on: loop)
            } else {
                running[hop]?.isOver = true
                replies.append((hop, HopSearchReply()))
            }
        }
        return replies
    }

    /// Ends all searches without replies.
    mutating func closeAll() {
        for connection in connections.values { Glibc.close(connection.descriptor) }
        (connections, running) = ([:], [:])
    }

    private mutating func finish(_ hop: Neighbor.Key, on loop: borrowing EventLoop) {
        for token in running.removeValue(forKey: hop)?.tokens ?? [] { end(token, on: loop) }
    }

    private mutating func end(_ token: UInt64, on loop: borrowing EventLoop) {
        guard let connection = connections.removeValue(forKey: token) else { return }
        loop.remove(connection.descriptor)
        Glibc.close(connection.descriptor)
    }
}
