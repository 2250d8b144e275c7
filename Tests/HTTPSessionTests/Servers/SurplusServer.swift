import EventLoop
import Foundation
import Glibc
import Pacing

/// A plain HTTP/1.1 server that answers each request with its path, and sends a surplus response up to ``maximumDelay`` after a
/// response on the same connection.
final class SurplusServer: Sendable {
    /// The time at which the surplus response is sent, relative to the next request.
    enum Timing: CaseIterable, Sendable {
        /// By a timer, regardless of further requests; requests are answered immediately.
        case timer
        /// Before the server reads the next request, like a server that finishes its writes before it reads.
        case beforeNextRead
    }

    /// The longest delay of a surplus response, in nanoseconds.
    static let maximumDelay: Int64 = 4_000_000
    private let listener: LoopbackListener
    private let sent = Locked(0)

    /// The number of surplus responses sent.
    var surplusCount: Int { sent.withLock { $0 } }

    /// Sends a surplus response after one of `interval` responses, chosen at random. Throws if the socket cannot be opened.
    init(_ timing: Timing, every interval: Int, seed: UInt64) throws {
        let sent = sent
        listener = try LoopbackListener { client, number in
            var conversation = Conversation(
                client: client, timing: timing, interval: interval, random: SplitMix64(seed: seed &+ UInt64(number)))
            conversation.run { sent.withLock { $0 += 1 } }
        }
    }

    func url(_ path: String) throws -> URL { try listener.url(path) }

    private struct Conversation {
        let client: Int32
        let timing: Timing
        let interval: Int
        var random: SplitMix64
        var received: [UInt8] = []

        mutating func run(noteSurplus: @escaping @Sendable () -> Void) {
            var one: Int32 = 1
            setsockopt(client, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
            while serve(noteSurplus) {}
        }

        /// Reads the received bytes and answers the requests in them.
        private mutating func serve(_ noteSurplus: @escaping @Sendable () -> Void) -> Bool {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = recv(client, &buffer, buffer.count, 0)
            guard count > 0 else { return false }
            received += buffer.prefix(count)
            while let end = received.firstRange(of: Array("\r\n\r\n".utf8)) {
                let target = String(decoding: received.prefix(end.lowerBound), as: UTF8.self).split(separator: " ")[1]
                received.removeFirst(end.upperBound)
                let body = target.dropFirst()
                guard LoopbackListener.respond(body, to: client) else { return false }
                guard Int.random(in: 0..<interval, using: &random) == 0 else { continue }
                let delay = Int64.random(in: 0...SurplusServer.maximumDelay, using: &random)
                switch timing {
                case .timer:
                    // The duplicate descriptor stays open until the surplus response is sent, even if the conversation ends.
                    let client = dup(client)
                    Thread.detachNewThread {
                        usleep(UInt32(delay / 1_000))
                        if LoopbackListener.respond("surplus", to: client) { noteSurplus() }
                        close(client)
                    }
                case .beforeNextRead:
                    usleep(UInt32(delay / 1_000))
                    guard LoopbackListener.respond("surplus", to: client) else { return false }
                    noteSurplus()
                }
            }
            return true
        }
    }
}
