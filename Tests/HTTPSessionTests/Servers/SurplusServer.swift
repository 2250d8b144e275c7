import EventLoop
import Foundation
import Glibc
import Pacing

/// A plain HTTP/1.1 server that answers each request with its path, and sends a surplus response after some of the responses.
///
/// When an element of ``turns`` arrives, the bytes that the server sends after that response are in the client's socket.
final class SurplusServer: Sendable {
    /// The paths of the requests, each after its response and the surplus response behind it were sent.
    let turns: AsyncStream<String>
    private let listener: LoopbackListener
    private let sent = Locked(0)

    /// The number of surplus responses sent.
    var surplusCount: Int { sent.withLock { $0 } }

    /// Sends a surplus response after one of `interval` responses, chosen at random. Throws if the socket cannot be opened.
    init(every interval: Int, seed: UInt64) throws {
        let sent = sent
        let (turns, turn) = AsyncStream.makeStream(of: String.self)
        self.turns = turns
        listener = try LoopbackListener { client, number in
            var random = SplitMix64(seed: seed &+ UInt64(number))
            var one: Int32 = 1
            setsockopt(client, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
            var received: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while case let count = recv(client, &buffer, buffer.count, 0), count > 0 {
                received += buffer.prefix(count)
                while let end = received.firstRange(of: Array("\r\n\r\n".utf8)) {
                    let target = String(decoding: received.prefix(end.lowerBound), as: UTF8.self).split(separator: " ")[1]
                    received.removeFirst(end.upperBound)
                    guard LoopbackListener.respond(target.dropFirst(), to: client) else { return }
                    if Int.random(in: 0..<interval, using: &random) == 0 {
                        guard LoopbackListener.respond("surplus", to: client) else { return }
                        sent.withLock { $0 += 1 }
                    }
                    turn.yield(String(target.dropFirst()))
                }
            }
        }
    }

    func url(_ path: String) throws -> URL { try listener.url(path) }
}
