import CLinux
import EventLoop
import Expectations
import Glibc
import NetworkLab
import Testing

@testable import Reachability

/// TLS handshakes of attempts without a place, with a server that accepts connections and says nothing.
@Suite(.requiresNamespaces) struct WaitingHandshakeTests {
    private static let limit = TCPProber.unplacedHandshakeLimit

    /// A prober, and the first results of its connections.
    private final class Bench {
        var loop: EventLoop
        var prober = TCPProber()
        let port: UInt16
        private let server: Int32
        /// The server's sockets.
        private var accepted: [Int32] = []
        /// The numbers of the attempts whose connections are established, in order.
        private(set) var connected: [UInt64] = []
        private(set) var ended: [ProbeResult] = []

        init() throws {
            let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isListening = withUnsafeMutablePointer(to: &name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(server, $0, size) == 0 && listen(server, 1_024) == 0 && getsockname(server, $0, &size) == 0
                }
            }
            try #require(isListening)
            loop = try EventLoop()
            self.server = server
            port = UInt16(bigEndian: name.sin_port)
        }

        deinit {
            for socket in accepted + [server] { close(socket) }
        }

        /// Returns the number of connections on which the server has received the start of a handshake, and of those on which it waits for one.
        /// The kernel may still deliver the last segments, so it is read until it is the expected one, or for ten seconds.
        func handshakes(expecting expected: [Int]) -> [Int] {
            let end = MonotonicClock.now() + 10_000_000_000
            var counts = [0, 0]
            repeat {
                while case let socket = accept(server, nil, nil), socket >= 0 { accepted.append(socket) }
                var sockets = accepted.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
                poll(&sockets, nfds_t(sockets.count), 1)
                let open = sockets.filter { Int32($0.revents) & (POLLHUP | POLLERR) == 0 }
                counts = [open.count { $0.revents != 0 }, open.count { $0.revents == 0 }]
            } while counts != expected && MonotonicClock.now() < end
            return counts
        }

        func start(_ id: UInt64, hasPlace: Bool = false, deadline: Int64) throws {
            let endpoint = try Endpoint("tls://127.0.0.1:\(port)")
            var attempt = ProbeAttempt(
                id: id, address: IPAddress(v4: 0x7f00_0001), port: port, latestStart: deadline - 30_000_000_000,
                plan: probePlan(endpoint, ProbeSettings()), deadline: deadline)
            attempt.hasHandshakePlace = hasPlace
            if let result = prober.start(attempt, on: loop, now: .read()) { ended.append(result) }
        }

        /// Runs until so many connections are established.
        func run(untilConnected count: Int) {
            let end = MonotonicClock.now() + 10_000_000_000
            while connected.count < count, MonotonicClock.now() < end {
                for ready in loop.wait(until: end) {
                    guard let result = prober.ready(ready, on: loop, now: .read()) else { continue }
                    if result.errno == 0, result.levels == nil { connected.append(result.id) } else { ended.append(result) }
                }
            }
        }
    }

    @Test func `a handshake without a place waits until another one ends, and one with a place begins at once`() throws {
        try ProbeNamespace().perform {
            let bench = try Bench()
            let deadline = MonotonicClock.now() + 60_000_000_000
            for id in 1...UInt64(Self.limit + 2) { try bench.start(id, deadline: deadline) }
            bench.run(untilConnected: Self.limit + 2)
            expectEqual(bench.handshakes(expecting: [Self.limit, 2]), [Self.limit, 2])
            try bench.start(1_000, hasPlace: true, deadline: deadline)
            bench.run(untilConnected: Self.limit + 3)
            expectEqual(bench.handshakes(expecting: [Self.limit + 1, 2]), [Self.limit + 1, 2])

            // An ended attempt without a place makes room for another one.
            let first = try #require(bench.connected.first)
            bench.prober.cancel(first, on: bench.loop)
            var results = bench.prober.startWaiting(on: bench.loop, now: .read())
            expectEqual(bench.handshakes(expecting: [Self.limit + 1, 1]), [Self.limit + 1, 1])
            // One with a place does not.
            bench.prober.cancel(1_000, on: bench.loop)
            results += bench.prober.startWaiting(on: bench.loop, now: .read())
            expectEqual(bench.handshakes(expecting: [Self.limit, 1]), [Self.limit, 1])
            bench.prober.closeAll()
            #expect(bench.handshakes(expecting: [0, 0]) == [0, 0] && bench.ended == [] && results == [])
        }
    }

    @Test func `a handshake that waits for half of its deadline is no result, and the others are`() throws {
        try ProbeNamespace().perform {
            let bench = try Bench()
            let now = MonotonicClock.now()
            for id in 1...UInt64(Self.limit + 1) { try bench.start(id, deadline: now + 60_000_000_000) }
            bench.run(untilConnected: Self.limit + 1)
            let due = bench.prober.levelDeadline ?? .max
            expectEqual(due, now + 30_000_000_000)
            let late = Moment(monotonicNanoseconds: due, wallClockNanoseconds: due)
            let results = bench.prober.expireLevels(on: bench.loop, now: late)
            #expect(results.count == 1 && results.first?.call == ProbeResult.queue)
            let next = bench.prober.levelDeadline
            expectEqual(next, now + 60_000_000_000)
            let started = bench.prober.startWaiting(on: bench.loop, now: .read())
            #expect(started == [] && bench.handshakes(expecting: [Self.limit, 0]) == [Self.limit, 0])
        }
    }
}
