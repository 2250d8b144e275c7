internal import EventLoop
internal import Glibc
internal import Pacing

/// A search for the routers on the way to a server, without privilege: one TCP SYN to the server's port for each hop limit (`IP_TTL`,
/// `IPV6_UNICAST_HOPS`), all at the same time. A router that discards one reports it by ICMP, and the socket's error queue names the
/// router (ip(7), IP_RECVERR).
///
/// Routers limit their ICMP messages (RFC 1812 section 4.3.2.8), and some send none. Missing hops are therefore normal.
package final class HopSweep: Sendable {
    /// An answer to the SYN with a hop limit.
    struct Answer: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            /// A router discarded the SYN because of its hop limit (ICMP type 11, ICMPv6 type 3).
            case exceeded
            /// A router reports another failure.
            case refused
            /// The server accepted or refused the connection.
            case server
        }

        var limit: Int
        var kind: Kind
        var sender: IPAddress
        var roundTrip: Duration
    }

    /// The time for all answers.
    package static let timeLimit = Duration.seconds(1)

    private let found = Locked<[Hop]>([])
    private let thread: LoopThread

    /// Starts a sweep on a thread of its own, inside `namespace`. The result is `nil` if the system refuses the thread, or the entry into
    /// the namespace. `isOwn` returns whether an address belongs to this machine, which reports failures of its own by ICMP.
    package init?(
        to target: HopSearch.Destination, in namespace: NetworkNamespace?, isOwn: @escaping @Sendable (IPAddress) -> Bool,
        timeLimit: Duration = HopSweep.timeLimit
    ) {
        let started = try? LoopThread(name: "hops", namespace: namespace?.path) { [found] () throws(LoopError) in
            return {
                var sockets = Sockets(target)
                let answers = sockets.answers(within: timeLimit)
                let hops = HopSweep.hops(from: answers.filter { !isOwn($0.sender) || $0.kind == .server }, to: target.address)
                found.withLock { $0 = hops }
            }
        }
        guard let started else { return nil }
        thread = started
    }

    /// Waits for the end of the sweep, and returns the hops in the order of their distance.
    package func hops() -> [Hop] {
        thread.join()
        return found.withLock { $0 }
    }

    /// Returns the hops that answered, in the order of their distance.
    ///
    /// A router reports another failure than an exceeded limit only for SYNs that it would have forwarded, so its distance is one less
    /// than the lowest of their limits.
    static func hops(from answers: [Answer], to server: IPAddress) -> [Hop] {
        var hops: [Hop] = []
        for answer in answers.sorted(by: { $0.limit < $1.limit }) {
            let isServer = answer.kind == .server || answer.sender == server
            switch answer.kind {
            case .exceeded where !isServer:
                hops.append(Hop(answer.sender, distance: answer.limit, roundTrip: answer.roundTrip))
            case .exceeded, .refused, .server:
                guard !hops.contains(where: { $0.address == answer.sender }) else { continue }
                let distance = isServer ? answer.limit : max(1, answer.limit - 1)
                hops.append(Hop(answer.sender, distance: distance, roundTrip: answer.roundTrip, isServer: isServer))
            }
        }
        return hops.sorted { $0.distance < $1.distance }
    }
}

/// The sockets of a sweep, one for each hop limit. They are closed with this value.
private struct Sockets: ~Copyable {
    private struct Socket {
        var limit: Int
        var descriptor: Int32
        var started: Int64
    }

    private let target: HopSearch.Destination
    private var open: [Socket] = []

    init(_ target: HopSearch.Destination) {
        self.target = target
    }

    deinit {
        for socket in open { close(socket.descriptor) }
    }

    /// Sends the SYNs, and returns the answers that arrive within the time limit.
    mutating func answers(within timeLimit: Duration) -> [HopSweep.Answer] {
        let deadline = MonotonicClock.now().addingSaturated(timeLimit.saturatingNanoseconds)
        var answers: [HopSweep.Answer] = []
        for limit in 1...Hop.limits {
            guard let socket = start(limit) else { continue }
            // An ICMP message may arrive while connect(2) runs.
            if let answer = answer(to: socket) {
                answers.append(answer)
                close(socket.descriptor)
            } else {
                open.append(socket)
            }
        }
        while !open.isEmpty {
            let left = deadline - MonotonicClock.now()
            guard left > 0 else { break }
            var polled = open.map { pollfd(fd: $0.descriptor, events: Int16(POLLOUT), revents: 0) }
            guard poll(&polled, nfds_t(polled.count), Int32(clamping: left / 1_000_000 + 1)) > 0 || errno == EINTR else { break }
            var waiting: [Socket] = []
            for (socket, entry) in zip(open, polled) {
                if entry.revents == 0 {
                    waiting.append(socket)
                    continue
                }
                if let answer = answer(to: socket) { answers.append(answer) }
                close(socket.descriptor)
            }
            open = waiting
            // The server has answered, so higher limits show nothing else.
            if let reached = answers.filter({ $0.kind == .server }).map(\.limit).min(),
                open.allSatisfy({ $0.limit > reached })
            {
                break
            }
        }
        return answers
    }

    private func start(_ limit: Int) -> Socket? {
        let started = MonotonicClock.now()
        return HopLimitedSocket.open(target, hopLimit: limit).map { Socket(limit: limit, descriptor: $0, started: started) }
    }

    /// Returns the answer that a socket has; `nil` if it has none, or a failure of this machine.
    private func answer(to socket: Socket) -> HopSweep.Answer? {
        let roundTrip = Duration.nanoseconds(max(0, MonotonicClock.now() - socket.started))
        guard let answer = HopLimitedSocket.answer(of: socket.descriptor, target.address.family) else { return nil }
        let (kind, sender): (HopSweep.Answer.Kind, IPAddress) =
            switch answer {
            case .exceeded(let router): (.exceeded, router)
            case .refused(let router): (.refused, router)
            case .destination: (.server, target.address)
            }
        return HopSweep.Answer(limit: socket.limit, kind: kind, sender: sender, roundTrip: roundTrip)
    }
}
