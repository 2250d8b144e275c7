import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Pacing
import Testing

/// Tasks that are suspended and resumed at random moments while their responses arrive: 40 tasks, or `NETWATCH_SUSPENSIONS` of
/// them. A failure prints its seed; `NETWATCH_SUSPENSION_SEED` repeats it.
@Suite(.timeLimit(.minutes(20))) struct SuspensionStressTests {
    private static let count = ProcessInfo.processInfo.environment["NETWATCH_SUSPENSIONS"].flatMap { Int($0) } ?? 40
    private static let seed = ProcessInfo.processInfo.environment["NETWATCH_SUSPENSION_SEED"].flatMap { UInt64($0) }
    private static let head =
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        + "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Padding: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nContent-Length: 5\r\n\r\nhello"

    /// A response whose head is sent in pieces.
    private static func reply(_ random: inout SplitMix64) -> StubResponse {
        var segments: [StubBody.Segment] = []
        var remaining = Array(head.utf8)[...]
        while !remaining.isEmpty {
            let count = Int.random(in: 1...60, using: &random)
            segments += [
                .bytes(Array(remaining.prefix(count))), .wait(.delay(.microseconds(Int.random(in: 0...300, using: &random)))),
            ]
            remaining = remaining.dropFirst(count)
        }
        var reply = StubResponse.raw(StubBody(segments))
        reply.connectionUse = .keepAlive
        return reply
    }

    @Test(arguments: [1, 2, 4, 8]) func `suspending and resuming while the response head arrives finishes every task`(
        threads: Int
    )
        async throws
    {
        let seed = Self.seed ?? UInt64.random(in: 0 ... .max)
        let draws = Locked(SplitMix64(seed: seed))
        let server = try TestServer { _ in draws.withLock { Self.reply(&$0) } }
        let session = try HTTPSessionManager(configuration: localConfiguration { $0.requestTimeout = .seconds(60) })
        let count = Self.count / 4
        for number in 0..<count {
            let request =
                number % 2 == 0
                ? TransferRequest(url: server.url())
                : TransferRequest(url: server.url(), method: .post, body: .data(Data(repeating: 65, count: 100)))
            let task = session.dataTask(for: request)
            let limit = draws.withLock { Int.random(in: 0...3_000, using: &$0) }
            await withTaskGroup(of: Void.self) { group in
                for thread in 0..<threads {
                    group.addTask {
                        var random = SplitMix64(seed: seed &+ UInt64(number * 8 + thread))
                        let end = ContinuousClock.now + .microseconds(limit)
                        repeat {
                            if Bool.random(using: &random) { task.suspend() } else { task.resume() }
                        } while ContinuousClock.now < end
                    }
                }
            }
            task.resume()
            // A task that got stuck would fail after its request timeout.
            let response = try await task.response
            expectEqual(String(decoding: response.data, as: UTF8.self), "hello", "seed \(seed), task \(number)")
        }
    }
}
