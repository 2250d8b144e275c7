import EventLoop
import Expectations
import Glibc
import Testing

@testable import HTTPSession

/// Sockets in the order of libcurl's reports. Each test gives a number that was closed to another socket.
@Suite(.timeLimit(.minutes(5)), .serialized) struct WatchedSocketsTests {
    private let watched: WatchedSockets

    init() throws { watched = try WatchedSockets() }

    /// A socket and its peer.
    private final class Pair {
        private(set) var socket: Int32
        private let peer: Int32
        /// Near the limit: the other suites have a thousand descriptors at a time.
        private static let lowest: Int32 = {
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            return Int32(clamping: min(limit.rlim_cur, 1 << 20)) - 64
        }()

        /// `number` is an open descriptor that the socket replaces; by default the socket gets a number that no other test gets.
        init(replacing number: Int32? = nil) throws {
            var ends: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
            socket = number.map { dup2(ends[0], $0) } ?? fcntl(ends[0], F_DUPFD_CLOEXEC, Self.lowest)
            peer = ends[1]
            Glibc.close(ends[0])
            try #require(socket >= 0)
        }

        func send() { _ = Glibc.send(peer, "x", 1, 0) }
        deinit { Glibc.close(peer) }
    }

    /// The sockets of which libcurl is notified. Waits for one event.
    private func notified() -> [Int32] {
        let ready = watched.wait(until: MonotonicClock.now() + 60_000_000_000)
        return ready.map { watched.socket(of: $0) }.filter { watched.isInUse($0) }
    }

    private var hasEvent: Bool { !watched.wait(until: MonotonicClock.now()).isEmpty }

    @Test func `an event of an idle socket removes it from the loop until it is watched again`() throws {
        let pair = try Pair()
        defer { _ = watched.close(pair.socket) }
        try watched.made(pair.socket)
        try watched.watch(pair.socket, for: .read)
        watched.release(pair.socket)
        pair.send()
        expectEqual(notified(), [])
        #expect(!hasEvent)
        try watched.watch(pair.socket, for: .read)
        expectEqual(notified(), [pair.socket])
    }

    @Test func `an idle socket that is watched again has its events`() throws {
        let pair = try Pair()
        defer { _ = watched.close(pair.socket) }
        try watched.made(pair.socket)
        for _ in 0..<3 {
            try watched.watch(pair.socket, for: .read)
            watched.release(pair.socket)
        }
        pair.send()
        try watched.watch(pair.socket, for: .read)
        expectEqual(notified(), [pair.socket])
        try watched.watch(pair.socket, for: .write)
        expectEqual(watched.wait(until: nil).map(\.isReadable), [false])
    }

    @Test func `a new socket with the number of a closed idle one is watched`() throws {
        let first = try Pair()
        try watched.made(first.socket)
        try watched.watch(first.socket, for: .read)
        watched.release(first.socket)
        expectEqual(watched.close(first.socket), 0)
        let second = try Pair()
        defer { _ = watched.close(second.socket) }
        try #require(second.socket == first.socket)
        try watched.made(second.socket)
        try watched.watch(second.socket, for: .read)
        second.send()
        expectEqual(notified(), [second.socket])
    }

    @Test func `a new socket has the events of a connecting one with its number that was closed without a report`() throws {
        let first = try Pair()
        try watched.made(first.socket)
        try watched.watch(first.socket, for: .write)
        let second = try Pair(replacing: first.socket)
        defer { _ = watched.close(second.socket) }
        #expect(!hasEvent)
        try watched.made(second.socket)
        expectEqual(notified(), [second.socket])
    }

    @Test(arguments: ["never made", "connecting"])
    func `a socket of the resolver is watched although a released one with its number was closed without a report`(
        _ kind: String
    ) throws {
        let first = try Pair()
        if kind == "connecting" {
            try watched.made(first.socket)
            try watched.watch(first.socket, for: .write)
        } else {
            try watched.watch(first.socket, for: .read)
        }
        watched.release(first.socket)
        let second = try Pair(replacing: first.socket)
        try watched.watch(second.socket, for: .read)
        watched.release(second.socket)
        let third = try Pair(replacing: first.socket)
        defer { _ = watched.close(third.socket) }
        try watched.watch(third.socket, for: .read)
        third.send()
        expectEqual(notified(), [third.socket])
    }
}
