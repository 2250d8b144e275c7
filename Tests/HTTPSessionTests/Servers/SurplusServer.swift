import EventLoop
import Foundation
import Glibc
import Pacing

/// A plain HTTP/1.1 server that answers each request with its path, and sends a complete response that nobody asked for up to
/// ``maximumDelay`` behind a response on the same connection.
final class SurplusServer: Sendable {
    /// When the surplus of a response is sent, relative to the next request.
    enum Timing: CaseIterable, Sendable {
        /// By a timer, whether or not another request has arrived meanwhile; requests are answered at once.
        case timer
        /// Before the server reads the next request, as a server does that waits for the end of what it sends.
        case beforeNextRead
    }

    /// Nanoseconds.
    static let maximumDelay: Int64 = 4_000_000
    private let listener: LoopbackListener
    private let sent = Locked(0)

    /// How many surplus responses were sent.
    var surplusCount: Int { sent.withLock { $0 } }

    /// One of `interval` responses, drawn at random, has a surplus. Throws if there is no socket.
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

        /// Reads what has come, and answers it.
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
                    // The descriptor lasts until its surplus is sent, whatever becomes of the conversation.
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
